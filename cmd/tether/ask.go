package main

import (
	"fmt"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// longest is the longest question, in bytes, that is put: what does not fit on a
// screen nobody has read.
const longest = 3000

// question is a question as it is put on a terminal. Everything that comes from
// outside is on a line of its own, with nothing in it that moves the cursor.
func question(q tether.Question) (string, error) {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-8s %s\n", name, printable(text))
		}
	}
	b.WriteString("\ntether: something needs your word\n")
	line("session", q.Session)
	line("about", q.Workspace)
	line("refused", q.Denied)
	line("wanted", q.Why)
	line("allow", grantText(&q.Grant))
	if len(q.Grant.Command) > 0 {
		line("", "this lifts the look at the command line; what the sandbox closes stays closed")
	}
	b.WriteString("allow it [o]nce (or [y]es), for this [s]ession, for this [p]roject? anything else is no: ")
	if b.Len() > longest {
		return "", fault.New(fault.ApprovalDenied, "the question is too long to be read on a terminal")
	}
	return b.String(), nil
}

// reply reads what was typed.
func reply(line string) tether.Answer {
	a := tether.Answer{By: fact.Person}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "o", "once", "y", "yes":
		a.Scope = fact.Once
	case "s", "session":
		a.Scope = fact.Session
	case "p", "project":
		a.Scope = fact.Project
	}
	return a
}
