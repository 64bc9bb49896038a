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
	f := newRunFlags("sh")
	f.Operands = " [-c CMD [ARG...]]"
	own, rest := f.splitShell(args)
	more, err := f.Parse(own, std.out)
	if err != nil {
		return f.failed(err, std)
	}
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	return f.run(tether.Command{Args: slices.Concat([]string{shell}, more, rest)}, std)
}

// splitShell parts Tether's own flags from the shell's arguments, which start at
// the first word that is none of ours. Flags that both have, such as -v, are
// ours as long as they come first.
func (f *flags) splitShell(args []string) (own, rest []string) {
	for i := 0; i < len(args); i++ {
		name, _, whole := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if args[i] == "--" {
			return args[:i], args[i+1:]
		}
		ours := f.Set.Lookup(name)
		help := name == "h" || name == "help"
		if !strings.HasPrefix(args[i], "-") || name == "" || name == "c" || ours == nil && !help {
			if strings.HasPrefix(args[i], "--") && !shellOption(name) {
				return args[:i+1], args[i+1:] // a mistake, which parse will name
			}
			return args[:i], args[i:]
		}
		if help || whole {
			continue
		}
		if b, ok := ours.Value.(interface{ IsBoolFlag() bool }); !ok || !b.IsBoolFlag() {
			i++ // its value
		}
	}
	return args, nil
}

// shellOption says whether a long option is one of bash.
func shellOption(name string) bool {
	switch name {
	case "login", "norc", "noprofile", "posix", "rcfile", "init-file", "restricted", "noediting":
		return true
	}
	return false
}
