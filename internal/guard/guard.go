// Package guard reads a command line before it runs and says what it looks
// like: whether it leaves the workspace, names something no agent should run,
// or cannot be told at all.
//
// It is pure: it reads no file, runs nothing and resolves no link. Therefore
// it sees text and nothing behind it. What a program does that it starts (a
// script in the workspace, a Makefile, a test), where a link leads, and which
// program a name finds, it does not know; a command line that it lets pass is
// no proof of anything. That takes a kernel provider.
//
// Where a kernel provider holds the policy ([Advise]), what the guard sees is
// a note, and only the inspection allowlist of a read-only policy refuses. As
// a provider of its own ([Enforce]) the guard refuses what lies outside, what
// is on the denylist, and everything that it cannot analyse. "Cannot analyse"
// is wide on purpose: a variable or substitution in a path, a program read
// from a pipe, code handed to an interpreter.
//
// What a command takes for text is no path: the words of echo and printf, the
// pattern of grep, the program of awk and sed, a commit's message. So
// `echo docker run -v /data:/data x` is fine where the command itself is not.
// Scripts in the workspace may be started (make, python3 x.py, sh x.sh), links
// in it may lead out, and a glob may match a name that looks like an option:
// these are limits of a look at text, not oversights.
//
// The text is read as Bash, and where that matters also as what a POSIX shell
// would make of it. [LookArgv] takes words as they are: nothing is expanded.
package guard

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// Mode says what a finding does.
type Mode int

// The modes, from strict to wide.
const (
	// Enforce is the provider "guard": no kernel holds the policy, so every
	// finding refuses.
	Enforce Mode = iota
	// Advise is the look under a kernel provider: a finding is a note, and
	// only the inspection allowlist refuses.
	Advise
)

// Options say what the command line is looked at for. The zero value enforces,
// allows inspection commands only and has no folder to stay in.
type Options struct {
	Mode Mode
	// Commands is policy.Inspection to apply the read-only allowlist, and
	// policy.Any for every profile but read-only.
	Commands policy.Commands
	// Workspace is the canonical path of the workspace.
	Workspace string
	// Roots are further canonical folders whose paths are fine.
	Roots []string
	// Dir is the current folder of the command; empty means Workspace.
	Dir string
}

// Kind says what a note is about.
type Kind int

// The kinds.
const (
	// Opaque: it cannot be told what this does.
	Opaque Kind = iota
	// Outside: a path outside the workspace and the roots.
	Outside
	// Denylisted: a command or a shape that the denylist names.
	Denylisted
	// NotInspection: not on the read-only allowlist.
	NotInspection
)

// String returns the kind as reports print it.
func (k Kind) String() string {
	switch k {
	case Opaque:
		return "opaque"
	case Outside:
		return "outside"
	case Denylisted:
		return "denylisted"
	case NotInspection:
		return "not-inspection"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Note is one thing that was seen.
type Note struct {
	Kind Kind
	What string
}

// Verdict is what the guard says. Refused is false when it has no objection.
type Verdict struct {
	Refused bool
	// Code is fault.CommandDenied when Refused, and empty otherwise.
	Code fault.Code
	// Reason is one line; Hint is what to write or type instead, if anything.
	Reason, Hint string
	// Notes are the first findings, at most maxNotes, in the order of the
	// text. A refusal ends the look, so that later ones may be missing.
	Notes []Note
	// Unanalysable says that something in the line could not be told.
	Unanalysable bool
}

// Err returns the refusal as an error with a code, and nil without one.
func (v Verdict) Err() error {
	if !v.Refused {
		return nil
	}
	return fault.New(v.Code, v.Reason).WithHint(v.Hint)
}

const (
	maxNotes  = 32
	maxSource = 256 << 10 // bytes of shell text that are read; Linux passes 128 KiB in one argument
	maxNested = 8         // shell text within shell text: sh -c "sh -c ..."
)

// LookShell looks at shell text: what `sh -c` gets.
func LookShell(src string, o Options) Verdict {
	l := newLook(o)
	l.guarded(func() { l.shell(src, l.start) })
	return l.verdict()
}

// LookArgv looks at a program and its arguments, which no shell will read.
// When the program is a shell with -c, its text is looked at as shell text,
// through any number of wrappers (env, nice, timeout, ...).
func LookArgv(argv []string, o Options) Verdict {
	l := newLook(o)
	if len(argv) == 0 {
		l.refuse(Opaque, "there is no command", "")
		return l.verdict()
	}
	args := make([]token, len(argv))
	for i, a := range argv {
		if strings.IndexByte(a, 0) >= 0 {
			l.opaque("an argument holds a NUL byte", "")
			return l.verdict()
		}
		args[i] = quoted(a)
	}
	l.argv = true
	l.guarded(func() { l.command(args, l.start) })
	return l.verdict()
}

const ownFault = "the guard failed on this command line, which is a fault of Tether's own"

// guarded turns a panic, of the parser on text that nobody tried before, into
// a finding: hostile text must not end the program that embeds us.
func (l *look) guarded(f func()) {
	defer func() {
		if recover() != nil {
			l.unparsed(ownFault)
		}
	}()
	f()
}

// look is one look at one command line.
type look struct {
	o     Options
	roots []string
	start dirs
	notes []Note
	// refusal is the first finding that refuses; done stops the walk.
	refusal *Verdict
	done    bool
	murky   bool

	*scope
	nested int
	// argv: the words come from no shell, so builtins do not exist.
	argv    bool
	wrapped int
	// find0: standard input is a NUL-separated list of paths below the
	// current folder.
	find0  bool
	bodies map[string][]body
	work   int
	// lost: the current folder is no longer followed, which was reported.
	lost bool
}

func newLook(o Options) *look {
	l := &look{o: o, scope: newScope()}
	for _, r := range append([]string{o.Workspace}, o.Roots...) {
		if path.IsAbs(r) {
			l.roots = append(l.roots, path.Clean(r))
		}
	}
	dir := o.Dir
	if dir == "" {
		dir = o.Workspace
	}
	switch {
	case !path.IsAbs(dir):
		l.start = dirs{"/"}
	default:
		l.start = dirs{path.Clean(dir)}
	}
	if !l.inside(l.start[0]) {
		l.outside("the current folder " + show(l.start[0]))
	}
	return l
}

// shell analyses text in a scope of its own.
func (l *look) shell(src string, in dirs) {
	if l.done {
		return
	}
	if l.nested >= maxNested {
		l.opaque("shell text within shell text, too deep", "")
		return
	}
	if why := unreadable(src); why != "" {
		l.unparsed(why)
		return
	}
	f, err := parse(src)
	if err != nil {
		l.unparsed("the command line cannot be parsed: " + err.Error())
		return
	}
	outer, argv, find0, bodies := l.scope, l.argv, l.find0, l.bodies
	l.scope, l.argv, l.find0, l.bodies = newScope(), false, false, nil
	l.scope.tainted = l.nested > 0
	l.nested++
	l.scope.collect(f)
	if l.scope.bomb() {
		l.deny("a function that starts itself over and over (fork bomb)")
	}
	l.stmts(f.Stmts, in)
	l.nested--
	l.scope, l.argv, l.find0, l.bodies = outer, argv, find0, bodies
}

// unreadable names the first thing in src on which shells disagree so early
// that no parse can be trusted.
func unreadable(src string) string {
	switch {
	case len(src) > maxSource:
		return "the command line is longer than 256 KiB"
	case strings.IndexByte(src, 0) >= 0:
		return "the command line holds a NUL byte"
	case strings.IndexByte(src, '\r') >= 0:
		return "the command line holds a carriage return"
	case !utf8.ValidString(src):
		return "the command line is not UTF-8"
	}
	return ""
}

func (l *look) unparsed(why string) {
	l.opaque(why, "")
	l.notInspection(why)
}

// note records a finding; see refuse for what makes it a refusal.
func (l *look) find(k Kind, reason, hint string) {
	if l.done {
		return
	}
	if k == Opaque {
		l.murky = true
	}
	refuses := l.o.Mode == Enforce
	if k == NotInspection {
		refuses = l.o.Commands == policy.Inspection
		if !refuses {
			return
		}
	}
	if refuses {
		l.refuse(k, reason, hint)
		return
	}
	n := Note{k, reason}
	if len(l.notes) >= maxNotes {
		return
	}
	for _, have := range l.notes {
		if have == n {
			return
		}
	}
	l.notes = append(l.notes, n)
}

func (l *look) refuse(k Kind, reason, hint string) {
	if l.done {
		return
	}
	if len(l.notes) < maxNotes {
		l.notes = append(l.notes, Note{k, reason})
	}
	l.murky = l.murky || k == Opaque
	l.refusal = &Verdict{Refused: true, Code: fault.CommandDenied, Reason: reason, Hint: hint}
	l.done = true
}

func (l *look) opaque(reason, hint string) { l.find(Opaque, reason, hint) }

func (l *look) outside(what string) {
	l.find(Outside, what+" is outside the workspace", "stay inside the workspace, or add the folder with --allow-read DIR")
}

func (l *look) deny(reason string) { l.find(Denylisted, reason, "") }

func (l *look) notInspection(reason string) {
	l.find(NotInspection, "read-only: "+reason, "--profile workspace-write, or --commands any")
}

func (l *look) verdict() Verdict {
	v := Verdict{}
	if l.refusal != nil {
		v = *l.refusal
	}
	v.Notes, v.Unanalysable = l.notes, l.murky
	return v
}

// show quotes s for a one-line message and keeps it short.
func show(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
