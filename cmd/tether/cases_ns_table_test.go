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
	"EC-059": "limit: 4096 processes, and a share of the memory for each folder in memory, unless less is asked for; memory as a " +
		"whole is bounded once it is asked for, where a control group is to be had, and refused elsewhere; what a command writes to " +
		"the host's disks is looked at, and ends it before they are full. The grade of limits says so.",
	"EC-060": "",
	"EC-061": "",
	"EC-063": "",
	"EC-064": "",
	"EC-065": "",
	"EC-069": "",
}
