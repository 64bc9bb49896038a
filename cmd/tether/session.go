package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
	"github.com/tether-sandbox/tether/policy"
)

const sessionUsage = `usage: tether session list                   the recorded sessions
       tether session show [ID]              what holds in one (default: the one that changed last)
       tether session log [ID] [-n N]        what happened in it
       tether session verify [ID] [--head HEAD]
                                             whether its log is as it was written
       tether session mode ID MODE [--why TEXT]
                                             read-only, workspace-write or full-access
       tether session preset ID PRESET [--why TEXT]
                                             read-only, workspace-write or danger-full-access:
                                             mode and approval policy together
       tether session grant ID --read PATH | --write PATH | --host HOST:PORT | --mode MODE | -- WORD...
                            [--for once|session|project] [--expires TIME] [--why TEXT]
                                             open one thing more; prints the grant's name
       tether session revoke ID GRANT [--why TEXT]
                                             take a grant back
       tether session rm ID...               remove sessions that nobody uses, with their /tmp

--expires TIME is from now on, such as 1h30m. --json prints objects.
`

// sessionArgs are the flags of every session verb.
type sessionArgs struct {
	set *flag.FlagSet
	std stdio

	json                    bool
	head                    string
	lines                   int
	read, write, host, mode string
	scope, why              string
	expires                 time.Duration
	removed                 []string // what rm removed so far; nil for other words
}

func sessionVerb(args []string, std stdio) (int, error) {
	if len(args) == 0 {
		return 0, fault.New(fault.UsageInvalid, "session needs one more word, such as list or show").WithHint("tether session -h")
	}
	if args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(std.out, sessionUsage)
		return 0, flagset.ErrHelp
	}
	name, a := args[0], &sessionArgs{std: std, set: flag.NewFlagSet("session", flag.ContinueOnError)}
	a.set.SetOutput(io.Discard)
	a.set.Usage = func() {}
	a.set.BoolVar(&a.json, "json", false, "")
	do := map[string]func([]string) error{"list": a.list, "show": a.show, "log": a.log, "verify": a.verify, "mode": a.enter,
		"preset": a.preset, "grant": a.grant, "revoke": a.revoke, "rm": a.remove}[name]
	switch name {
	case "log":
		a.set.Func("n", "", a.count)
	case "verify":
		a.set.StringVar(&a.head, "head", "", "")
	case "mode", "preset", "revoke":
		a.set.StringVar(&a.why, "why", "", "")
	case "grant":
		for flag, to := range map[string]*string{"read": &a.read, "write": &a.write, "host": &a.host, "mode": &a.mode, "why": &a.why} {
			a.set.StringVar(to, flag, "", "")
		}
		a.set.StringVar(&a.scope, "for", string(fact.Session), "")
		a.set.Func("expires", "", func(text string) (err error) {
			if a.expires, err = time.ParseDuration(text); err != nil || a.expires <= 0 {
				return errors.New("a time to come is wanted, such as 90s or 1h30m")
			}
			return nil
		})
	}
	if do == nil {
		return 0, fault.New(fault.UsageInvalid, fmt.Sprintf("tether session cannot %q; it can list, show, log, verify, mode, preset, grant, revoke and rm", name)).
			WithHint("tether session -h")
	}
	rest, err := a.parse(args[1:])
	if err == nil {
		err = do(rest)
	}
	return a.failed(err)
}

// failed tells of a failure in the form that was asked for.
func (a *sessionArgs) failed(err error) (int, error) {
	if err == nil || !a.json || errors.Is(err, flagset.ErrHelp) {
		return 0, err
	}
	told := map[string]any{"error": errorObject(err)}
	if a.removed != nil {
		told["removed"] = a.removed
	}
	_ = writeJSON(a.std.out, told)
	return exitOurs, nil
}

// parse reads flags that come before and after the operands. What follows -- are
// operands.
func (a *sessionArgs) parse(args []string) ([]string, error) {
	var rest []string
	for {
		err := a.set.Parse(args)
		if err == flag.ErrHelp {
			fmt.Fprint(a.std.out, sessionUsage)
			return nil, flagset.ErrHelp
		}
		if err != nil {
			return nil, flagset.Wrong(a.set, err)
		}
		left := a.set.Args()
		if n := len(args) - len(left); n > 0 && args[n-1] == "--" || len(left) == 0 {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}

// count reads how many of the last are meant: none of them is no answer.
func (a *sessionArgs) count(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("a number from 1 is wanted")
	}
	a.lines = n
	return nil
}

func operands(rest []string, n int, what string) error {
	if len(rest) == n {
		return nil
	}
	return fault.New(fault.UsageInvalid, fmt.Sprintf("%s wanted, not %d words", what, len(rest))).WithHint("tether session -h")
}

// one returns the session that is meant: the one that is named, or else the one
// that changed last.
func one(s *tether.Sessions, rest []string) (string, error) {
	switch len(rest) {
	case 0:
		return s.Last()
	case 1:
		return rest[0], nil
	}
	return "", operands(rest, 1, "one ID is")
}

// inStore calls f with the store.
func inStore(f func(*tether.Sessions) error) error {
	s, err := tether.OpenSessions(nil)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

// typed is the answer of a person who typed exactly what is asked, and has no
// terminal to be asked on: it is as good as typing the grant.
type typed struct{}

// Approve is yes, once, to a mode.
func (typed) Approve(_ context.Context, q tether.Question) (tether.Answer, error) {
	if q.Grant.Mode == "" {
		return tether.Answer{}, nil
	}
	return tether.Answer{Scope: fact.Once, By: fact.Person, Why: "typed"}, nil
}

// inSession calls f with a session that exists. Where there is no terminal, the
// one who answers is without.
func inSession(id string, without tether.Approver, f func(*tether.Session) error) error {
	return inStore(func(store *tether.Sessions) error {
		asker := without
		if a := terminal(); a != nil {
			asker = a
		}
		s, err := store.Open(background, id, asker)
		if err != nil {
			return err
		}
		defer s.Close()
		return f(s)
	})
}

// request is a person's word. Whoever is inside a sandbox never gets here: the
// store is not there.
func (a *sessionArgs) request() tether.Request { return tether.Request{By: fact.Person, Why: a.why} }

func (a *sessionArgs) enter(rest []string) error {
	if err := operands(rest, 2, "ID and MODE are"); err != nil {
		return err
	}
	to, err := policy.ParseProfile(rest[1])
	if err != nil {
		return err
	}
	return inSession(rest[0], typed{}, func(s *tether.Session) error { return a.then(s, rest[0], s.EnterMode(background, to, a.request())) })
}

func (a *sessionArgs) preset(rest []string) error {
	if err := operands(rest, 2, "ID and PRESET are"); err != nil {
		return err
	}
	p, err := fact.ParsePreset(rest[1])
	if err != nil {
		return err
	}
	return inSession(rest[0], typed{}, func(s *tether.Session) error { return a.then(s, rest[0], s.SelectPreset(background, p, a.request())) })
}

// then tells what holds after a change.
func (a *sessionArgs) then(s *tether.Session, id string, err error) error {
	if err != nil {
		return err
	}
	p, err := s.Permissions()
	if err != nil || !a.json {
		return err
	}
	return writeJSON(a.std.out, permissionsOf(id, p))
}

func (a *sessionArgs) grant(rest []string) error {
	if len(rest) == 0 {
		return operands(rest, 1, "ID is")
	}
	g := fact.Grant{Path: a.read, Host: a.host, Mode: a.mode, Command: rest[1:], Scope: fact.Scope(a.scope)}
	if a.write != "" {
		if a.read != "" {
			return fault.New(fault.UsageInvalid, "a path is granted to read or to write").WithHint("tether session grant " + rest[0] + " --write " + a.write)
		}
		g.Path, g.Write = a.write, true
	}
	if len(g.Command) == 0 {
		g.Command = nil
	}
	if g.Path != "" {
		path, err := filepath.Abs(g.Path)
		if err != nil {
			return err
		}
		g.Path = path
	}
	if a.expires > 0 {
		g.Expires = time.Now().Add(a.expires)
	}
	return inSession(rest[0], nil, func(s *tether.Session) error {
		id, err := s.Grant(background, g, a.request())
		if err != nil {
			return err
		}
		if a.json {
			return writeJSON(a.std.out, map[string]any{"session": rest[0], "id": id, "grant": g})
		}
		fmt.Fprintln(a.std.out, id)
		return nil
	})
}

func (a *sessionArgs) revoke(rest []string) error {
	if err := operands(rest, 2, "ID and GRANT are"); err != nil {
		return err
	}
	return inSession(rest[0], nil, func(s *tether.Session) error {
		err := s.Revoke(background, rest[1], a.request())
		if e, ok := errors.AsType[*fault.Error](err); ok && e.Hint == "" {
			err = e.WithHint("tether session show " + rest[0])
		}
		if err != nil || !a.json {
			return err
		}
		return writeJSON(a.std.out, map[string]string{"session": rest[0], "revoked": rest[1]})
	})
}

func (a *sessionArgs) remove(rest []string) error {
	if len(rest) == 0 {
		return operands(rest, 1, "ID is")
	}
	return inStore(func(s *tether.Sessions) error {
		a.removed = []string{}
		for _, id := range rest {
			if err := s.Remove(id); err != nil {
				return err
			}
			a.removed = append(a.removed, id)
		}
		if a.json {
			return writeJSON(a.std.out, map[string]any{"removed": a.removed})
		}
		return nil
	})
}

func (a *sessionArgs) verify(rest []string) error {
	return inStore(func(s *tether.Sessions) error {
		if len(rest) == 0 && a.head != "" {
			id, _, _ := strings.Cut(a.head, ":")
			rest = []string{id}
		}
		id, err := one(s, rest)
		if err != nil {
			return err
		}
		v, err := s.Verify(id, a.head)
		if err != nil {
			return err
		}
		if a.json {
			return writeJSON(a.std.out, v)
		}
		fmt.Fprintf(a.std.out, "%d facts in %d records, as they were written\nhead %s\n", v.Facts, v.Records, v.Head)
		if v.Torn > 0 {
			fmt.Fprintf(a.std.out, "%d bytes that a crash left behind them are dropped by the next writer\n", v.Torn)
		}
		return nil
	})
}
