package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/tether-sandbox/tether"
)

func cleanVerb(args []string, std stdio) (int, error) {
	set := flag.NewFlagSet("clean", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	quarantine := set.Bool("quarantine", false, "also remove what was quarantined")
	if err := parseSimple(set, args, std.out); err != nil {
		return 0, err
	}
	removed, err := tether.Clean(*quarantine)
	for _, path := range removed {
		fmt.Fprintln(std.out, "removed", printable(path))
	}
	return 0, err
}
