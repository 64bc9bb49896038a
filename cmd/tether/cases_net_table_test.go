package main

// netCases says of each case of the categories NET and SSRF, and of those about
// the network among the false positives, whether it holds: an empty text means
// yes, a text is the limit.
var netCases = map[string]string{
	"EC-091": "",
	"EC-092": "",
	"EC-093": "",
	"EC-095": "",
	"EC-097": "",
	"EC-098": "",
	"EC-099": "",
	"EC-101": "",
	"EC-105": "",
	"EC-106": "",
	"EC-107": "",
	"EC-109": "",
	"EC-110": "",
	"EC-112": "",
	"EC-115": "",
	"EC-120": "",
	"EC-121": "",
	"EC-127": "",
	"EC-206": "",
	"EC-211": "limit: where the gate is a proxy, Node before 24 does not know of it, and Java, which is told of it by JAVA_TOOL_OPTIONS, was not tried",
}
