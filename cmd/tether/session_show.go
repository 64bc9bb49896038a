package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/internal/flagset"
)

func (a *sessionArgs) list(rest []string) error {
	if err := operands(rest, 0, "nothing more is"); err != nil {
		return err
	}
	return inStore(func(s *tether.Sessions) error {
		list, err := s.List()
		if err != nil {
			return err
		}
		if a.json {
			return writeJSON(a.std.out, list)
		}
		for _, i := range list {
			live := ""
			if i.Live {
				live = "  in use"
			}
			where := ""
			if st, err := s.State(i.ID); err != nil {
				where = flagset.Message(err)
			} else {
				where = st.Workspace
			}
			fmt.Fprintf(a.std.out, "%-26s %s  %s%s\n", i.ID, i.Modified.Format(time.DateTime), printable(where), live)
		}
		return nil
	})
}

// jsonPermissions is what is in force. Fields are only ever added.
type jsonPermissions struct {
	Session  string      `json:"session"`
	Mode     string      `json:"mode"`
	Approval string      `json:"approval"`
	Preset   fact.Preset `json:"preset"`
	Origin   fact.Origin `json:"origin,omitempty"`
}

func permissionsOf(id string, p fact.Permissions) jsonPermissions {
	return jsonPermissions{id, p.Mode.String(), p.Approval.String(), p.Preset, p.Origin}
}

// jsonSession is a session's state. Fields are only ever added.
type jsonSession struct {
	jsonPermissions
	World     string      `json:"world"`
	Workspace string      `json:"workspace"`
	Parent    string      `json:"parent,omitempty"`
	Turns     []string    `json:"turns"`
	Running   []fact.Fact `json:"running"`
	Asks      []fact.Fact `json:"asks"`
	Grants    []jsonGrant `json:"grants"`
	Children  []string    `json:"children"`
	Facts     int         `json:"facts"`
}

type jsonGrant struct {
	ID    string     `json:"id"`
	Grant fact.Grant `json:"grant"`
	By    fact.Actor `json:"by"`
	Why   string     `json:"why,omitempty"`
	Since time.Time  `json:"since"`
	// State is in-force, spent, revoked or expired.
	State string `json:"state"`
}

func (a *sessionArgs) show(rest []string) error {
	return inStore(func(store *tether.Sessions) error {
		id, err := one(store, rest)
		if err != nil {
			return err
		}
		st, err := store.State(id)
		if err != nil {
			return err
		}
		j := jsonSession{World: st.World, Workspace: st.Workspace, Parent: st.Parent, Turns: []string{}, Running: append([]fact.Fact{}, st.Running...),
			Asks: append([]fact.Fact{}, st.Asks...), Grants: []jsonGrant{}, Children: []string{}, Facts: st.Facts}
		// Nothing falls back on a default here: whoever opens the session says it.
		j.jsonPermissions = permissionsOf(id, st.Permissions(fact.Default{}))
		for _, t := range st.Turns {
			j.Turns = append(j.Turns, t.ID)
		}
		for _, c := range st.Children {
			j.Children = append(j.Children, c.ID)
		}
		for _, h := range st.Grants {
			j.Grants = append(j.Grants, jsonGrant{h.ID, h.Grant, h.By, h.Why, h.Since, grantState(st, h)})
		}
		if a.json {
			return writeJSON(a.std.out, j)
		}
		a.print(j)
		return nil
	})
}

func grantState(st fact.State, h fact.Held) string {
	switch {
	case h.Revoked:
		return "revoked"
	case h.Spent:
		return "spent"
	}
	for _, live := range st.InForce("", time.Now()) {
		if live.ID == h.ID {
			return "in-force"
		}
	}
	return "expired"
}

func (a *sessionArgs) print(j jsonSession) {
	w := a.std.out
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, printable(fmt.Sprintf(format, args...)))
	}
	line("session", "%s", j.Session)
	line("workspace", "%s (%s)", j.Workspace, j.World)
	if j.Parent != "" {
		line("parent", "%s", j.Parent)
	}
	if j.Mode == "nothing" {
		line("mode", "not chosen yet")
	} else {
		line("mode", "%s, approval %s, preset %s", j.Mode, j.Approval, strings.TrimSpace(string(j.Preset)+" "+string(j.Origin)))
	}
	for _, t := range j.Turns {
		line("turn", "%s is open", t)
	}
	for _, r := range j.Running {
		line("no outcome", "%s  %s", r.ID, r.What)
	}
	for _, q := range j.Asks {
		line("asked", "%s  %s", q.ID, grantText(q.Grant))
	}
	for _, g := range j.Grants {
		line("grant", "%s  %s, for %s%s; %s", g.ID, grantText(&g.Grant), scopeText(g.Grant), whyText(g.By, g.Why), g.State)
	}
	for _, c := range j.Children {
		line("child", "%s", c)
	}
	line("facts", "%d", j.Facts)
}

// grantText says what a grant opens, in one line.
func grantText(g *fact.Grant) string {
	switch {
	case g == nil:
		return ""
	case g.Path != "" && g.Write:
		return "read and write " + g.Path + " and what lies below"
	case g.Path != "":
		return "read " + g.Path + " and what lies below"
	case g.Host != "":
		return "connect to " + g.Host
	case g.Mode != "":
		return "enter the mode " + g.Mode
	}
	return "run exactly: " + tether.CommandLine(g.Command)
}

func scopeText(g fact.Grant) string {
	if g.Expires.IsZero() {
		return string(g.Scope)
	}
	return string(g.Scope) + " until " + g.Expires.Local().Format(time.DateTime)
}

func whyText(by fact.Actor, why string) string {
	if why == "" {
		return ", by " + string(by)
	}
	return ", by " + string(by) + ": " + why
}

// jsonFact is a fact as the log prints it.
type jsonFact struct {
	Seq  uint64    `json:"seq"`
	Fact fact.Fact `json:"fact"`
}

func (a *sessionArgs) log(rest []string) error {
	return inStore(func(s *tether.Sessions) error {
		id, err := one(s, rest)
		if err != nil {
			return err
		}
		var all []tether.Recorded
		var wrong error
		for r, err := range s.Facts(id) {
			if err != nil {
				wrong = err // what could be verified before is shown all the same
				break
			}
			all = append(all, r)
		}
		if a.lines > 0 && len(all) > a.lines {
			all = all[len(all)-a.lines:]
		}
		for _, r := range all {
			if a.json {
				if err := writeJSON(a.std.out, jsonFact{r.Seq, r.Fact}); err != nil {
					return err
				}
				continue
			}
			fmt.Fprintln(a.std.out, printable(factLine(r)))
		}
		return wrong
	})
}

// factLine is a fact on one line.
func factLine(r tether.Recorded) string {
	f := r.Fact
	parts := []string{fmt.Sprintf("%4d %s %-17s", r.Seq, f.Time.Local().Format(time.DateTime), f.Kind)}
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(f.ID)
	switch f.Kind {
	case fact.Start:
		add(f.Workspace)
		if f.Parent != "" {
			add("child of " + f.Parent)
		}
	case fact.Mode, fact.ChildRun:
		add(f.Mode)
		if f.Ended {
			add("ended")
		}
	case fact.PresetSet:
		add(string(f.Preset) + " (" + string(f.Origin) + ")")
	case fact.ApprovalSet:
		add(f.Approval)
	case fact.Outcome:
		if f.Code == "" {
			add(fmt.Sprintf("exit %d", f.Exit))
		}
	case fact.Ask, fact.GrantGiven:
		add(grantText(f.Grant))
		if f.Kind == fact.GrantGiven && f.Grant != nil {
			add("for " + scopeText(*f.Grant))
		}
	case fact.Finding:
		add(f.Path)
	}
	add(string(f.Code))
	add(f.What)
	if f.Rule != "" {
		add("(" + f.Rule + ")")
	}
	if f.Why != "" {
		add("why: " + f.Why)
	}
	return strings.Join(parts, " ")
}
