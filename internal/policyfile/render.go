package policyfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/policy"
)

// Render returns e as a policy file, each line with the layer that set it. The
// order is always the same.
//
// Read again and applied to policy.Default of the same workspace it gives the
// same policy and settings, if e passes Validate; lists may change their order.
// Not so for what TOML cannot hold: a value that is not UTF-8 is told in a
// comment.
func Render(e Effective) string {
	r := renderer{e: e}
	p := e.Policy
	if p.Workspace != "" {
		fmt.Fprintf(&r.b, "# workspace %s\n", quoted(p.Workspace))
	}
	r.scalar("profile", p.Profile.String())
	r.scalar("commands", p.Commands.String())
	if p.Reads.System {
		r.scalar("reads", "system")
	} else {
		r.list("reads", p.Reads.Only, true)
	}
	r.list("allow-read", p.Read, false)
	r.list("allow-write", p.Write, false)
	r.list("protect", p.Protect.Hidden, false)
	r.list("lock", p.Protect.Locked, false)
	r.list("allow-config", p.Protect.AllowConfig, false)
	if p.Nested {
		r.bare("nested", "true")
	}
	r.network(p.Network)
	if e.Fetch != "" {
		r.scalar("fetch", e.Fetch)
	}
	r.env(p.Env)
	r.list("redact", p.Env.Redact, false)
	r.scalar("home", p.Home.String())
	if p.Env.NoScrub {
		r.bare("no-scrub", "true")
	}
	r.limits(p.Limits)
	if e.Provider != "" {
		r.scalar("provider", e.Provider)
	}
	var accepted []string
	for _, g := range slices.Sorted(maps.Keys(p.Accept)) {
		accepted = append(accepted, g.String()+"="+strings.ToLower(p.Accept[g].String()))
	}
	r.list("accept", accepted, false)
	if e.Approval != "" {
		r.scalar("approval", e.Approval)
	}
	if e.Audit {
		r.bare("audit", "true")
	}
	return r.b.String()
}

type renderer struct {
	b strings.Builder
	e Effective
}

// from says which layer set a rule.
func (r *renderer) from(key, value string) string {
	o, ok := r.e.Origins.Of(key, value)
	switch {
	case !ok:
		return "built in"
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", clean(o.Layer), o.Line)
	}
	return clean(o.Layer)
}

// bare prints a value that is a TOML value as it is.
func (r *renderer) bare(key, value string) {
	fmt.Fprintf(&r.b, "%s = %s  # %s\n", key, value, r.from(key, value))
}

func (r *renderer) scalar(key, value string) {
	fmt.Fprintf(&r.b, "%s = %s  # %s\n", key, quoted(value), r.from(key, value))
}

// list prints one element a line, so that each has its layer.
func (r *renderer) list(key string, values []string, always bool) {
	from := func(v string) string { return r.from(key, v) }
	r.elements(key, values, always, quoted, from)
}

func (r *renderer) elements(key string, values []string, always bool, spell, from func(string) string) {
	if len(values) == 0 {
		if always {
			fmt.Fprintf(&r.b, "%s = []  # %s\n", key, from(""))
		}
		return
	}
	fmt.Fprintf(&r.b, "%s = [\n", key)
	for _, v := range values {
		if utf8.ValidString(v) {
			fmt.Fprintf(&r.b, "  %s,  # %s\n", spell(v), from(v))
		} else {
			fmt.Fprintf(&r.b, "  # %s cannot be written here: it is not UTF-8  # %s\n", strconv.Quote(v), from(v))
		}
	}
	r.b.WriteString("]\n")
}

func (r *renderer) network(n policy.Network) {
	r.scalar("network", n.Mode.String())
	// Which of them were listed as the base and which were added makes no
	// difference once the base is a list.
	key, allow := "only-host", n.Mode == policy.Gated && !n.Public
	if !allow {
		key = "allow-host"
	}
	from := func(v string) string {
		if _, ok := r.e.Origins.Of("allow-host", v); ok {
			return r.from("allow-host", v)
		}
		return r.from("only-host", v)
	}
	r.elements(key, n.Allow, allow, quoted, from)
	r.list("deny-host", n.Deny, false)
	if n.AnySNI {
		r.scalar("sni", "any")
	}
	if n.Upstream != "" {
		r.scalar("upstream", n.Upstream)
	}
	var ports []string
	for _, p := range n.Publish {
		ports = append(ports, strconv.Itoa(int(p)))
	}
	r.elements("publish", ports, false, func(s string) string { return s }, func(s string) string { return r.from("publish", s) })
}

// env prints the variables to set beside those to pass: in a table of its own a
// name that is a key, such as home, would look like a mistake.
func (r *renderer) env(e policy.Env) {
	vars := slices.Clone(e.Pass)
	for _, name := range slices.Sorted(maps.Keys(e.Set)) {
		vars = append(vars, name+"="+e.Set[name])
	}
	r.elements("env", vars, false, quoted, func(v string) string {
		if _, ok := r.e.Origins.Of("set-env", v); ok {
			return r.from("set-env", v)
		}
		return r.from("env", v)
	})
}

func (r *renderer) limits(l policy.Limits) {
	if l.Time > 0 {
		r.scalar("timeout", l.Time.String())
	}
	for _, e := range []struct {
		key   string
		bytes int64
	}{{"max-output", l.OutputBytes}, {"max-memory", l.MemoryBytes}, {"max-file-size", l.FileBytes}, {"max-scratch", l.ScratchBytes},
		{"min-free-disk", l.FreeDisk}} {
		if e.bytes > 0 {
			r.scalar(e.key, policy.SizeText(e.bytes))
		}
	}
	if l.CPU > 0 {
		r.scalar("max-cpu", l.CPU.String())
	}
	if l.Processes > 0 {
		r.bare("max-procs", strconv.FormatInt(l.Processes, 10))
	}
	if l.OpenFiles > 0 {
		r.bare("max-open-files", strconv.FormatInt(l.OpenFiles, 10))
	}
}

// quoted returns a TOML basic string.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case !strconv.IsPrint(c) && c <= 0xffff: // also what turns the direction of text
			fmt.Fprintf(&b, `\u%04X`, c)
		case !strconv.IsPrint(c):
			fmt.Fprintf(&b, `\U%08X`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// clean keeps a name in its comment: no control characters, no line's end.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
