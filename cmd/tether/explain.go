package main

import (
	"fmt"

	"github.com/tether-sandbox/tether"
)

func explainVerb(args []string, std stdio) (int, error) {
	f := newFlags("explain")
	f.Operands = " [[--] CMD [ARG...]]"
	argv, err := f.Parse(args, std.out)
	if err != nil {
		return f.failed(err, std)
	}
	f.Looks = true
	s, err := f.Open(background)
	if err != nil {
		return f.failed(err, std)
	}
	defer s.Close()
	e, err := s.Explain(background, tether.Command{Args: argv})
	if err != nil {
		return f.failed(err, std)
	}
	if f.json {
		return 0, writeJSON(std.out, e)
	}
	w := std.out
	fmt.Fprintf(w, "profile    %s\nworkspace  %s\nstarts in  %s\nnetwork    %s\n", e.Profile, printable(e.Workspace), printable(e.Dir), e.Network)
	if e.Guard != "" {
		fmt.Fprintln(w, "guard     ", printable(e.Guard))
	}
	section := func(title string, lines []string) {
		if len(lines) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", title)
		for _, l := range lines {
			fmt.Fprintln(w, " ", printable(l))
		}
	}
	section("set by", originLines(f.Origins))
	section("shown", e.Shown)
	section("hidden", e.Hidden)
	section("locked", e.Locked)
	section("environment", e.Environment)
	section("steps", e.Steps)
	fmt.Fprintln(w)
	printReport(w, e.Report)
	return 0, nil
}
