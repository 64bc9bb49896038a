package flagset

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/typo"
)

// group is a part of the help of a verb that makes a policy.
type group struct {
	title string
	names string // of flags, in their order, with spaces between them
}

// groups puts the flags of New into the order in which they are looked for. What
// is in none is the verb's own.
func groups() []group {
	return []group{
		{"what the work is about", "workspace profile commands session"},
		{"files", "allow-read allow-write reads protect lock allow-config"},
		{"network", "no-network network allow-host only-host deny-host publish sni upstream fetch"},
		{"environment", "env home redact no-scrub"},
		{"limits", "timeout max-memory max-procs max-cpu max-open-files max-file-size max-scratch min-free-disk max-output"},
		{"how it is held", "provider accept nested no-sandbox"},
	}
}

// short are flags of one letter and what they are the same as.
func short(name string) string {
	switch name {
	case "C":
		return "workspace"
	case "p":
		return "profile"
	}
	return ""
}

// ofFetch are the flags of New that change what a verb does that fetches in its
// own process and starts nothing.
const ofFetch = " workspace profile session protect no-network network allow-host only-host deny-host upstream fetch env redact timeout "

// Help prints how the verb is used, with its flags. Where Fetches is set it
// lists those of New that mean something, and tells that the others are taken.
func (f *Flags) Help(out io.Writer) {
	fmt.Fprintf(out, "usage: tether %s [flags]%s\n", f.Set.Name(), f.Operands)
	known := map[string]bool{}
	for _, g := range groups() {
		for _, name := range strings.Fields(g.names) {
			known[name] = true
		}
	}
	var own []*flag.Flag
	f.Set.VisitAll(func(fl *flag.Flag) {
		if !known[fl.Name] && short(fl.Name) == "" {
			own = append(own, fl)
		}
	})
	f.list(out, "", own)
	for _, g := range groups() {
		var flags []*flag.Flag
		for _, name := range strings.Fields(g.names) {
			if fl := f.Set.Lookup(name); fl != nil && (!f.Fetches || strings.Contains(ofFetch, " "+name+" ")) {
				flags = append(flags, fl)
			}
		}
		f.list(out, g.title, flags)
	}
	if f.Fetches {
		fmt.Fprint(out, "\nThe other flags of tether run are taken, so that one line of flags serves both;\nthey are about commands and change nothing here.\n")
	}
}

// list prints some of the flags, if there are any.
func (f *Flags) list(out io.Writer, title string, flags []*flag.Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintln(out)
	if title != "" {
		fmt.Fprintln(out, title+":")
	}
	for _, fl := range flags {
		name, text := flag.UnquoteUsage(fl)
		spelled := dashed(fl.Name)
		for _, s := range []string{"C", "p"} {
			if short(s) == fl.Name && f.Set.Lookup(s) != nil {
				spelled = dashed(s) + ", " + spelled
			}
		}
		fmt.Fprintf(out, "  %-28s %s\n", strings.TrimSpace(spelled+" "+name), text)
	}
}

// dashed is a flag as people type it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// Wrong says what is wrong with the flags of a verb, when its flag set says err;
// the hint is the flag that was meant, if one comes near.
func Wrong(set *flag.FlagSet, err error) error {
	const undefined = "flag provided but not defined: -"
	what, hint := err.Error(), "tether "+set.Name()+" -h"
	if name, ok := strings.CutPrefix(what, undefined); ok {
		what = dashed(name) + " is not a flag of this verb"
		var names []string
		set.VisitAll(func(fl *flag.Flag) { names = append(names, fl.Name) })
		// Of one letter, anything would be near.
		if near := typo.Nearest(name, names); near != "" && len(name) > 2 {
			hint = dashed(near)
		}
	}
	if what, ok := strings.CutPrefix(what, "flag needs an argument: -"); ok {
		return fault.New(fault.UsageInvalid, dashed(what)+" needs a value").WithHint(hint)
	}
	// invalid value "x" for flag -depth: parse error
	for _, before := range []string{" for -", " for flag -"} {
		if i := strings.LastIndex(what, before); i >= 0 {
			name, why, _ := strings.Cut(what[i+len(before):], ": ")
			what = what[:i] + " for " + dashed(name) + ": " + why
		}
	}
	return fault.New(fault.UsageInvalid, what).WithHint(hint)
}
