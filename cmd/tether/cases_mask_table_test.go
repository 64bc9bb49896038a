package main

// maskCases says of each case of the category MASK whether it holds: an empty
// text means yes, a text is the limit.
var maskCases = map[string]string{
	"EC-001": "",
	"EC-002": "",
	"EC-004": "",
	"EC-005": "",
	"EC-009": "",
	"EC-010": "limit: what appears while a command runs is hidden from it when it is seen (from 0.2 s after the start " +
		"on), so that whoever waits for it can be faster. The report says so. The next command does not see it.",
	"EC-011": "",
	"EC-013": "limit: git's objects keep the content of a tracked file, where no mask reaches; a warning names the file and " +
		"the way out. The file itself is hidden.",
	"EC-014": "",
	"EC-015": "",
	"EC-016": "",
	"EC-017": "",
	"EC-019": "",
	"EC-021": "limit: no argument or environment of a process inside names a hidden file, but /proc/self/mountinfo lists " +
		"every mask as a mount, with its path.",
}
