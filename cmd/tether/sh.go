package main

import (
	"os"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether"
)

// shVerb is a confined shell. Programs that start $SHELL -c CMD reach it by a
// link called tether-sh, or by tether -c. What a shell is given besides -c and
// a command goes to the real shell inside.
func shVerb(args []string, std stdio) (int, error) {
	f := newFlags("sh")
	own, rest := splitShell(args)
	more, err := f.parse(own, std.out)
	if err != nil {
		return 0, err
	}
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	return f.run(tether.Command{Args: slices.Concat([]string{shell}, more, rest)}, std)
}

// splitShell parts Tether's own flags, which are long, from the shell's, which
// start at the first short one or word.
func splitShell(args []string) (own, rest []string) {
	for i, a := range args {
		if !strings.HasPrefix(a, "--") || a == "--" || a == "--login" || a == "--norc" || a == "--noprofile" || a == "--posix" {
			return args[:i], args[i:]
		}
	}
	return args, nil
}
