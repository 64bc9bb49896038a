package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what one piece of shell text defines. Assignments are collected
// from the whole text first, in whatever order they may run: a variable has
// one of the values that are written down, or is opaque.
type scope struct {
	vars  map[string]*variable
	calls map[string][]call // by function: the functions it calls
	// set holds the names that surely have one of their values at this point
	// of the walk; without that, a variable may also be empty. "f()" stands
	// for the function f. trail is what was added, in order, to go back.
	set   map[string]bool
	trail []string
	// pwd is the current folder, when it is known.
	pwd string
	// tainted: variables may come from outside text that we have seen.
	tainted bool
}

type variable struct {
	values []token
	opaque bool
}

// call is one function's call of another; spawn says that it makes a process.
type call struct {
	name  string
	spawn bool
}

func newScope() *scope { return &scope{} }

func (s *scope) function(name string) bool { _, ok := s.calls[name]; return ok }

// settle says that name surely has a value from here on; back undoes.
func (s *scope) settle(name string) {
	if s.set == nil {
		s.set = map[string]bool{}
	}
	if !s.set[name] {
		s.set[name] = true
		s.trail = append(s.trail, name)
	}
}

func (s *scope) back(to int) {
	for _, n := range s.trail[to:] {
		delete(s.set, n)
	}
	s.trail = s.trail[:to]
}

func (s *scope) variable(name string) *variable {
	if s.vars == nil {
		s.vars = map[string]*variable{}
	}
	v := s.vars[name]
	if v == nil {
		v = &variable{}
		s.vars[name] = v
	}
	return v
}

func (s *scope) cloud(name string) { s.variable(name).opaque = true }

func (s *scope) give(name string, vals ...token) {
	v := s.variable(name)
	for _, t := range vals {
		// No braces in a value: they are expanded before variables.
		t.kind = strings.ReplaceAll(t.kind, string(rune(plain)), string(rune(value)))
		v.values = append(v.values, t)
	}
	if len(v.values) > maxAlternatives {
		v.opaque = true
	}
}

// values are the texts that a plain $name may stand for.
func (s *scope) values(pe *syntax.ParamExp) ([]token, bool) {
	if pe.Param == nil {
		return nil, false
	}
	name := pe.Param.Value
	if pe.Length && !pe.Excl && pe.Index == nil {
		return []token{{text: "0", kind: string(rune(number))}}, true
	}
	if !bareParam(pe) {
		return nil, false
	}
	switch name {
	case "?", "#", "$", "!", "RANDOM", "SECONDS", "LINENO", "PPID", "UID", "EUID", "BASHPID":
		if s.vars[name] == nil {
			return []token{{text: "0", kind: string(rune(number))}}, true
		}
		return nil, false
	case "PWD":
		if s.vars[name] == nil && s.pwd != "" {
			return []token{quoted(s.pwd)}, true
		}
		return nil, false
	}
	v := s.vars[name]
	if v == nil || v.opaque || len(v.values) == 0 || !ownName(name) {
		return nil, false
	}
	if s.set[name] {
		return v.values, true
	}
	return append([]token{{}}, v.values...), true
}

func bareParam(pe *syntax.ParamExp) bool {
	return pe.Param != nil && pe.Flags == nil && !pe.Excl && !pe.Length && !pe.Width && !pe.IsSet &&
		pe.Split == syntax.OptUnset && pe.GlobSubst == syntax.OptUnset && pe.RcExpand == syntax.OptUnset &&
		pe.NestedParam == nil && pe.Index == nil && len(pe.Modifiers) == 0 && pe.Slice == nil &&
		pe.Repl == nil && pe.Names == 0 && pe.Exp == nil
}

// ownName says that the variable is the text's own: neither the shell nor a
// usual environment gives it a value.
func ownName(name string) bool {
	switch name {
	case "HOME", "PWD", "OLDPWD", "PATH", "USER", "LOGNAME", "SHELL", "TMPDIR", "TMP", "TEMP", "LANG", "TERM",
		"TZ", "CI", "IFS", "ENV", "REPLY", "MAPFILE", "COPROC", "OPTARG", "OPTIND", "DIRSTACK", "FUNCNAME",
		"GROUPS", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "PIPESTATUS", "RANDOM", "SECONDS", "LINENO",
		"SRANDOM", "EPOCHSECONDS", "EPOCHREALTIME", "SHLVL", "SHELLOPTS", "COLUMNS", "LINES", "_":
		return false
	}
	for _, p := range [...]string{"BASH", "LC_", "COMP_", "READLINE_", "HIST", "XDG_"} {
		if strings.HasPrefix(name, p) {
			return false
		}
	}
	return syntax.ValidName(name)
}

// collect reads all definitions in f.
func (s *scope) collect(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			s.collectAssign(n)
		case *syntax.DeclClause:
			s.collectDecl(n)
		case *syntax.ForClause:
			s.collectFor(n)
		case *syntax.FuncDecl:
			s.collectFunc(n)
		case *syntax.CoprocClause:
			if n.Name != nil {
				for _, t := range s.one(n.Name) {
					s.cloud(t.text)
					s.cloud(t.text + "_PID")
				}
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil &&
				(n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				s.cloud(n.Param.Value)
			}
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && assigns(n.Op) {
				s.give(w.Lit(), token{text: "0", kind: string(rune(number))})
			}
		case *syntax.UnaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && (n.Op == syntax.Inc || n.Op == syntax.Dec) {
				s.give(w.Lit(), token{text: "0", kind: string(rune(number))})
			}
		case *syntax.Redirect:
			if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
				s.cloud(strings.Trim(n.N.Value, "{}"))
			}
		case *syntax.CallExpr:
			s.collectCall(n)
		}
		return true
	})
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

func (s *scope) collectAssign(a *syntax.Assign) {
	switch {
	case a.Name == nil:
	case a.Append, a.Index != nil, a.Array != nil:
		s.cloud(a.Name.Value)
	case a.Naked: // local x: empty, or what it was
		s.cloud(a.Name.Value)
	case a.Value == nil:
		s.give(a.Name.Value, token{})
	default:
		if t, ok := s.fixed(a.Value); ok {
			s.give(a.Name.Value, t)
		} else {
			s.cloud(a.Name.Value)
		}
	}
}

// fixed expands a word that holds no variable.
func (s *scope) fixed(w *syntax.Word) (token, bool) {
	if !variableFree(w.Parts) {
		return token{}, false
	}
	ts := s.one(w)
	if len(ts) != 1 || !ts[0].known() {
		return token{}, false
	}
	t := ts[0]
	if strings.HasPrefix(t.text, "~") || strings.Contains(t.text, ":~") {
		return token{}, false
	}
	return t, true
}

func variableFree(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.ParamExp:
			return false
		case *syntax.DblQuoted:
			if !variableFree(p.Parts) {
				return false
			}
		}
	}
	return true
}

func (s *scope) collectDecl(d *syntax.DeclClause) {
	for _, a := range d.Args {
		if a.Name == nil && a.Value != nil {
			for _, t := range s.one(a.Value) {
				if strings.HasPrefix(t.text, "-") || strings.HasPrefix(t.text, "+") {
					if strings.ContainsAny(t.text, "aAilnuc") {
						for _, b := range d.Args {
							if b.Name != nil {
								s.cloud(b.Name.Value)
							}
						}
					}
					continue
				}
				s.cloud(strings.SplitN(strings.SplitN(t.text, "=", 2)[0], "[", 2)[0])
			}
		}
	}
}

func (s *scope) collectFor(f *syntax.ForClause) {
	w, ok := f.Loop.(*syntax.WordIter)
	if !ok {
		return
	}
	if f.Select || !w.InPos.IsValid() {
		s.cloud(w.Name.Value)
		return
	}
	for _, item := range w.Items {
		if !variableFree(item.Parts) {
			s.cloud(w.Name.Value)
			return
		}
		for _, t := range s.words(item) {
			if !t.known() || strings.HasPrefix(t.text, "~") {
				s.cloud(w.Name.Value)
				return
			}
			s.give(w.Name.Value, t)
		}
	}
}

// collectCall clouds what builtins assign to.
func (s *scope) collectCall(c *syntax.CallExpr) {
	at := -1
	for i, w := range c.Args {
		switch bareText(w) {
		case "read", "mapfile", "readarray", "printf", "getopts", "local", "declare", "typeset", "export",
			"readonly", "unset", "wait", "let":
			at = i
		}
		if at >= 0 {
			break
		}
	}
	if at < 0 {
		return
	}
	for _, w := range c.Args[at+1:] {
		for _, t := range s.one(w) {
			name := strings.TrimPrefix(t.text, "-v")
			s.cloud(name[:span(name, nameChars, len(name))])
		}
	}
}

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// bareText is the text of a word of literals and quotes, and empty otherwise.
func bareText(w *syntax.Word) string {
	if len(w.Parts) == 1 {
		if l, ok := w.Parts[0].(*syntax.Lit); ok && strings.IndexByte(l.Value, '\\') < 0 {
			return l.Value
		}
	}
	if !variableFree(w.Parts) {
		return ""
	}
	ts := newScope().one(w)
	if len(ts) != 1 || !ts[0].known() {
		return ""
	}
	return ts[0].text
}

func (s *scope) collectFunc(f *syntax.FuncDecl) {
	if f.Name == nil {
		return
	}
	if s.calls == nil {
		s.calls = map[string][]call{}
	}
	var spawn []bool
	var calls []call
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		if n == nil {
			spawn = spawn[:len(spawn)-1]
			return true
		}
		in := len(spawn) > 0 && spawn[len(spawn)-1]
		switch n := n.(type) {
		case *syntax.Stmt:
			in = in || n.Background || n.Coprocess
		case *syntax.BinaryCmd:
			in = in || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Subshell, *syntax.CoprocClause:
			in = true
		case *syntax.CallExpr:
			for _, w := range n.Args {
				if t := bareText(w); t != "" {
					calls = append(calls, call{t, in})
				}
			}
		}
		spawn = append(spawn, in)
		return true
	})
	s.calls[f.Name.Value] = append(s.calls[f.Name.Value], calls...)
}

// bomb says that some function comes back to itself by way of a new process.
func (s *scope) bomb() bool {
	for name, calls := range s.calls {
		for _, c := range calls {
			if c.spawn && s.reaches(c.name, name, map[string]bool{}) {
				return true
			}
		}
	}
	return false
}

func (s *scope) reaches(from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, c := range s.calls[from] {
		if s.reaches(c.name, to, seen) {
			return true
		}
	}
	return false
}
