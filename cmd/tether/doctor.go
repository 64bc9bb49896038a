package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
)

func doctorVerb(args []string, std stdio) (int, error) {
	set := flag.NewFlagSet("doctor", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	fix := set.Bool("fix", false, "print the commands that raise the grades, and nothing else")
	asJSON := set.Bool("json", false, "print one JSON object")
	if err := parseSimple(set, args, std.out); err != nil {
		return 0, err
	}
	d, err := tether.Diagnose(background)
	if err != nil {
		return 0, err
	}
	status := 1
	for _, p := range d.Providers {
		if p.Works {
			status = 0
		}
	}
	switch {
	case *asJSON:
		return status, writeJSON(std.out, d)
	case *fix:
		for _, f := range d.Facts {
			if !f.Good && f.Fix != "" {
				fmt.Fprintf(std.out, "# %s\n%s\n", printable(f.What), f.Fix)
				if f.Then != "" {
					fmt.Fprintf(std.out, "# %s\n", printable(f.Then))
				}
			}
		}
		return 0, nil
	}
	raised := ""
	for _, g := range d.Grades {
		line := fmt.Sprintf("%-8s %-8s", g.Guarantee, g.Grade)
		if g.Reason != "" {
			line += " " + g.Reason
		}
		fmt.Fprintln(std.out, printable(strings.TrimRight(line, " ")))
		switch {
		case g.Raise == "":
		case g.Raise == raised:
			fmt.Fprintln(std.out, "      raise it: as above")
		default:
			fmt.Fprintln(std.out, "      raise it:", strings.ReplaceAll(g.Raise, "\n", "\n      "))
			raised = g.Raise
		}
	}
	fmt.Fprintln(std.out)
	for _, f := range d.Facts {
		mark := "ok  "
		if !f.Good {
			mark = "low "
		}
		fmt.Fprintln(std.out, mark, printable(f.What))
		if f.Good {
			continue
		}
		if f.Fix != "" {
			fmt.Fprintln(std.out, "      raise it:", strings.ReplaceAll(f.Fix, "\n", "\n      "))
		}
		if f.Then != "" {
			fmt.Fprintln(std.out, "      "+printable(f.Then))
		}
	}
	for _, p := range d.Providers {
		if !p.Works {
			fmt.Fprintf(std.out, "\nprovider %s does not work here: %s: %s\n", p.Name, p.Code, printable(p.Why))
			if p.Hint != "" {
				fmt.Fprintln(std.out, "  hint:", printable(p.Hint))
			}
			continue
		}
		fmt.Fprintf(std.out, "\nprovider %s works (tried with --no-network)\n", p.Name)
		if p.Accept != "" {
			fmt.Fprintln(std.out, "  it holds less than is required, and is taken with: --provider", p.Name, p.Accept)
		}
		for _, g := range p.Report.Grades {
			line := fmt.Sprintf("  %-8s %-8s %s", g.Guarantee, g.Grade, g.Means)
			if g.Reason != "" {
				line += " (" + g.Reason + ")"
			}
			fmt.Fprintln(std.out, printable(line))
		}
		switch p.Gate {
		case "veth":
			fmt.Fprintln(std.out, "  gate     veth: every program's connections are judged (tried with --network gated)")
		case "proxy":
			fmt.Fprintln(std.out, printable("  gate     proxy: only programs that know of proxies get out, because "+p.GateWhy+" (tried with --network gated)"))
		default:
			fmt.Fprintln(std.out, printable("  gate     does not work here: "+p.GateWhy+"; --no-network and --network open do"))
		}
	}
	return status, nil
}

// parseSimple parses the flags of a verb that takes no arguments.
func parseSimple(set *flag.FlagSet, args []string, out io.Writer) error {
	set.Usage = func() {}
	err := set.Parse(args)
	switch {
	case err == flag.ErrHelp:
		(&flagset.Flags{Set: set}).Help(out)
		return flagset.ErrHelp
	case err != nil:
		return flagset.Wrong(set, err)
	case set.NArg() > 0:
		return fault.New(fault.UsageInvalid, fmt.Sprintf("tether %s takes no argument %q", set.Name(), set.Arg(0))).WithHint("tether " + set.Name() + " -h")
	}
	return nil
}
