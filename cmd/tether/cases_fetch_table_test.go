package main

// fetchCases says of each case about the fetch tool whether it holds: an empty
// text means yes, a text is the limit. Their tests lie with the package.
var fetchCases = map[string]string{
	"EC-096": "",
	"EC-114": "",
	"EC-117": "",
	"EC-118": "",
	"EC-119": "",
	"EC-122": "",
	"EC-124": "",
	"EC-125": "",
	"EC-130": "limit: more than 10 MiB is an error and no part of it is returned; of a page, the first MiB is converted to Markdown",
	"EC-131": "",
	"EC-132": "",
}
