package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
)

const whyUsage = `usage: tether why [ID] [-n N] [--json]

Prints the last N (10) things that were refused in a session, or in the one that
changed last, each with what would allow it or what to do instead. What the
kernel refuses by itself, such as to open a hidden file or to write outside of the
workspace, the command is told ("Permission denied"), and nothing records it.
`

// jsonWhy is one refusal. Fields are only ever added.
type jsonWhy struct {
	// Session is its id.
	Session string `json:"session"`
	// Time is when it was refused.
	Time time.Time `json:"time"`
	// Code is a stable one, see codes.md.
	Code fault.Code `json:"code"`
	// What was refused.
	What string `json:"what"`
	// Rule is why.
	Rule string `json:"rule,omitempty"`
	// Remedy is the one thing that would allow it.
	Remedy string `json:"remedy,omitempty"`
}

func whyVerb(args []string, std stdio) (int, error) {
	a := &sessionArgs{std: std, set: flag.NewFlagSet("why", flag.ContinueOnError), lines: 10}
	a.set.SetOutput(io.Discard)
	a.set.Usage = func() {}
	a.set.BoolVar(&a.json, "json", false, "")
	a.set.Func("n", "", a.count)
	for _, arg := range args {
		if arg == "-h" || arg == "--help" {
			fmt.Fprint(std.out, whyUsage)
			return 0, flagset.ErrHelp
		}
	}
	rest, err := a.parse(args)
	if err == nil && len(rest) > 1 {
		err = fault.New(fault.UsageInvalid, fmt.Sprintf("one ID is wanted, not %d words", len(rest))).WithHint("tether why -h")
	}
	if err != nil {
		return a.failed(err)
	}
	return a.failed(inStore(func(s *tether.Sessions) error {
		id, err := one(s, rest)
		if err != nil {
			return err
		}
		list := []jsonWhy{}
		for r, err := range s.Facts(id) {
			if err != nil {
				return err
			}
			if r.Fact.Kind == fact.Denial {
				list = append(list, whyOf(id, r.Fact))
			}
		}
		if len(list) > a.lines {
			list = list[len(list)-a.lines:]
		}
		if a.json {
			return writeJSON(std.out, list)
		}
		if len(list) == 0 {
			fmt.Fprintln(std.out, "nothing was refused in the session", id)
		}
		for _, d := range list {
			fmt.Fprintf(std.out, "%s  %s: %s\n", d.Time.Local().Format(time.DateTime), d.Code, printable(d.What))
			if d.Rule != "" {
				fmt.Fprintln(std.out, "  because", printable(d.Rule))
			}
			if d.Remedy != "" {
				fmt.Fprintln(std.out, "  hint:", printable(d.Remedy))
			}
		}
		return nil
	}))
}

func whyOf(id string, f fact.Fact) jsonWhy {
	d := jsonWhy{Session: id, Time: f.Time, Code: f.Code, What: f.What, Rule: f.Rule, Remedy: f.Remedy}
	if f.Grant != nil { // a question that was answered no
		d.What, d.Rule, d.Remedy = grantText(f.Grant), f.What, tether.GrantCommand(id, *f.Grant)
	}
	return d
}
