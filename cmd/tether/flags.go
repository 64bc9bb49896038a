package main

import (
	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/flagset"
)

// flags are the flags of a verb that makes a policy and prints what came of it.
type flags struct {
	*flagset.Flags
	json    bool
	report  string
	verbose bool
	quiet   bool
	asker   *asker // the terminal of a recorded session, nil without one
}

// newFlags returns the flags of a verb.
func newFlags(verb string) *flags {
	f := &flags{Flags: flagset.New(verb)}
	f.Set.BoolVar(&f.json, "json", false, "print one JSON object")
	f.AddSession()
	f.Approver = func() tether.Approver {
		if f.asker = terminal(); f.asker == nil {
			return nil
		}
		return f.asker
	}
	return f
}

// newRunFlags returns the flags of a verb that runs a command and tells how it
// went.
func newRunFlags(verb string) *flags {
	f := newFlags(verb)
	f.Set.Lookup("json").Usage = "print one JSON object with the output and the report"
	f.Set.Func("report", "write the report as JSON to `FILE`, outside of what the command can write", f.Named("report", &f.report))
	f.Set.BoolVar(&f.verbose, "v", false, "print the report on stderr")
	f.Set.BoolVar(&f.quiet, "q", false, "leave out what is only worth knowing: the closing line on a terminal, flags that do nothing")
	return f
}
