package main

// nsCases says of each case of the category NS whether it holds: an empty text
// means yes, a text is the limit.
var nsCases = map[string]string{
	"EC-050": "",
	"EC-051": "",
	"EC-052": "",
	"EC-053": "",
	"EC-055": "",
	"EC-058": "",
	"EC-059": "limit: processes, file sizes and time are bounded as asked, and scratch space by half of the memory for each " +
		"folder; memory as a whole is not bounded, and --max-memory is refused. The grade of limits says so.",
	"EC-060": "",
	"EC-061": "",
	"EC-063": "",
	"EC-064": "",
	"EC-065": "",
	"EC-069": "",
}
