package main

// guardCases says of each case of the category GUARD, and of those about
// command lines that must work, whether it holds: an empty text means yes, a
// text is the limit. Their tests are in internal/guard.
var guardCases = map[string]string{
	"EC-151": "",
	"EC-152": "",
	"EC-153": "",
	"EC-154": "",
	"EC-155": "",
	"EC-157": "",
	"EC-158": "",
	"EC-161": "",
	"EC-163": "",
	"EC-217": "",
	"EC-219": "",
	"EC-220": "",
	"EC-221": "",
	"EC-223": "",
}

// gateCases says the same of the category GATE. Their tests are in
// internal/filegate.
var gateCases = map[string]string{
	"EC-137": "",
	"EC-138": "",
	"EC-139": "",
	"EC-140": "",
	"EC-143": "",
	"EC-144": "",
	"EC-145": "",
	"EC-146": "",
	"EC-150": "",
}
