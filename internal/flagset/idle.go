package flagset

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Idle tells of flags of the command line that do nothing here, each in one
// line: a root that does not exist, which is left out, and a variable that is
// not set. Most often they are slips, and what comes of them is seen much later.
// Roots that are spelled with ~ are not looked at.
func (f *Flags) Idle() []string {
	var lines []string
	for _, c := range f.changes {
		why := ""
		switch c.Key {
		case "allow-read", "allow-write":
			if _, err := os.Stat(c.Value); errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(c.Value, "~") {
				why = "it is not there"
			}
		case "env", "redact":
			if _, set := os.LookupEnv(c.Value); !set && !strings.Contains(c.Value, "=") {
				why = "the variable is not set here"
			}
		}
		if why != "" {
			lines = append(lines, "--"+c.Key+" "+c.Value+" does nothing: "+why)
		}
	}
	return lines
}
