package main

// ipcCases says of each case of the category IPC whether it holds: an empty
// text means yes, a text is the limit.
var ipcCases = map[string]string{
	"EC-070": "",
	"EC-071": "",
	"EC-072": "",
	"EC-073": "",
	"EC-074": "",
	"EC-076": "",
	"EC-078": "",
	"EC-079": "",
	"EC-081": "",
}
