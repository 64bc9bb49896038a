package flagset

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/tether-sandbox/tether/fault"
)

// Tell prints an error as every failure of ours is printed: its code and what
// happened, and the hint, if there is one.
func Tell(w io.Writer, err error) {
	fmt.Fprintf(w, "tether: %s\n", Message(err))
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(w, "hint: %s\n", Printable(hint))
	}
}

// Message returns "CODE: what happened" for any error.
func Message(err error) string {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return Printable(err.Error())
	}
	return string(fault.CodeOf(err)) + ": " + Printable(err.Error())
}

// Printable keeps control characters of foreign text, such as file names, away
// from the terminal, and those that change the order or the look of the rest.
func Printable(s string) string {
	clean := func(r rune) rune {
		if r == '\t' || r == '\n' {
			return ' '
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '?'
		}
		return r
	}
	return strings.Map(clean, s)
}
