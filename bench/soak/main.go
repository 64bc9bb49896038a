// Command soak sends connections through the gate over a link that loses and
// delays packets, and counts those that do not come through whole. It lives in a
// network namespace that its caller made (script/soak-gate), and makes a second
// one for the server; nothing of the machine's network is touched.
//
// The link is a pair of TUN devices with this program between them, so that it
// needs no module of the kernel.
package main

import (
	"fmt"
	"os"
)

// clientWord makes this program the client that runs inside.
const clientWord = "soak-client"

func main() {
	var err error
	if len(os.Args) == 4 && os.Args[1] == clientWord {
		err = client(os.Args[2], os.Args[3])
	} else {
		err = soak(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
