package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// at says which folder $PWD is in words expanded next.
func (l *look) at(in dirs) {
	l.pwd = ""
	if len(in) == 1 {
		l.pwd = in[0]
	}
}

func (l *look) call(c *syntax.CallExpr, in dirs) outcome {
	for _, a := range c.Assigns {
		l.assign(a, in)
	}
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			if a.Name != nil && a.Index == nil && a.Array == nil && !a.Append {
				l.settle(a.Name.Value)
			}
		}
		return stay(in)
	}
	args := make([]token, 0, len(c.Args))
	for _, w := range c.Args {
		l.inspectWord(w, in)
		l.at(in)
		args = append(args, l.words(w)...)
	}
	if l.done {
		return stay(in)
	}
	return l.command(args, in)
}

// assign checks one NAME=value before a command or on its own.
func (l *look) assign(a *syntax.Assign, in dirs) {
	l.arithm(a.Index, in)
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			l.arithm(e.Index, in)
			if e.Value != nil {
				l.inspectWord(e.Value, in)
				l.at(in)
				for _, t := range l.words(e.Value) {
					l.assigned("", t, in)
				}
			}
		}
	}
	name := ""
	if a.Name != nil {
		name = a.Name.Value
	}
	if a.Value == nil {
		l.assigned(name, token{}, in)
		return
	}
	l.inspectWord(a.Value, in)
	l.at(in)
	for _, t := range l.one(a.Value) {
		l.assigned(name, t, in)
	}
}

// assigned checks a variable that gets a value (name may be empty).
func (l *look) assigned(name string, v token, in dirs) {
	if why := dangerousVariable(name); why != "" {
		l.opaque("the variable "+name+" "+why, "")
		l.notInspection("the variable " + name + " " + why)
	}
	if strings.Contains(v.text, "$(") || strings.IndexByte(v.text, '`') >= 0 {
		why := "a variable holds text that may become a command"
		l.opaque(why, "")
		l.notInspection(why)
	}
	l.reach(v, in, true)
}

func (l *look) redirect(r *syntax.Redirect, in dirs) {
	if r.Hdoc != nil {
		l.inspectWord(r.Hdoc, in)
	}
	if r.Word == nil || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		return
	}
	l.inspectWord(r.Word, in)
	if r.Op == syntax.WordHdoc {
		return
	}
	l.at(in)
	for _, t := range l.words(r.Word) {
		if r.Op == syntax.DplIn || r.Op == syntax.DplOut {
			if n := strings.TrimSuffix(t.text, "-"); t.known() && span(n, "0123456789", len(n)) == len(n) {
				continue
			}
			// Bash expands this word a second time, quotes or not.
			if strings.ContainsAny(t.text, "$`(<>\\") {
				l.unsure("a redirection to " + show(t.text))
			}
		}
		l.path(t, in)
		switch {
		case r.Op == syntax.RdrIn || r.Op == syntax.DplIn:
			if strings.HasPrefix(t.text, "/dev/tcp/") || strings.HasPrefix(t.text, "/dev/udp/") {
				l.notInspection("a redirection to the network")
			}
		case !t.exact() || !harmlessOut(t.text):
			l.notInspection("a redirection writes to " + show(t.text))
		}
	}
}

func harmlessOut(p string) bool { return p == "/dev/null" || p == "/dev/stdout" || p == "/dev/stderr" }

// text looks at a word whose text is nobody's path.
func (l *look) text(w *syntax.Word, in dirs) {
	if w != nil {
		l.inspectWord(w, in)
	}
}

// inspectWord looks at everything that expanding a word runs.
func (l *look) inspectWord(w *syntax.Word, in dirs) { l.parts(w.Parts, in) }

func (l *look) parts(parts []syntax.WordPart, in dirs) {
	for _, p := range parts {
		if l.done {
			return
		}
		switch p := p.(type) {
		case *syntax.DblQuoted:
			l.parts(p.Parts, in)
		case *syntax.CmdSubst:
			find0 := l.find0
			l.find0 = false
			l.apart(func() { l.stmts(p.Stmts, in) })
			l.find0 = find0
		case *syntax.ProcSubst:
			l.apart(func() { l.stmts(p.Stmts, in) })
		case *syntax.ArithmExp:
			l.arithm(p.X, in)
		case *syntax.ParamExp:
			l.param(p, in)
		case *syntax.ExtGlob:
			l.unsure("an extended glob, which not every shell reads as one")
		}
	}
}

// unsure is a thing that may run something unseen.
func (l *look) unsure(why string) {
	l.opaque(why, "")
	l.notInspection(why)
}

func (l *look) param(p *syntax.ParamExp, in dirs) {
	switch {
	case p.Flags != nil, p.NestedParam != nil, len(p.Modifiers) > 0:
		l.unsure("an expansion that Bash does not have")
	case p.Excl && p.Names == 0 && (p.Index == nil || !allIndex(p.Index)):
		l.unsure("an indirect expansion, ${!...}")
	case p.Exp != nil && p.Exp.Op == syntax.OtherParamOps && p.Exp.Word != nil && strings.Contains(bareText(p.Exp.Word), "P"):
		l.unsure("a prompt expansion, ${...@P}")
	}
	if !allIndex(p.Index) {
		l.arithm(p.Index, in)
	}
	if p.Slice != nil {
		l.arithm(p.Slice.Offset, in)
		l.arithm(p.Slice.Length, in)
	}
	if p.Repl != nil {
		l.text(p.Repl.Orig, in)
		l.text(p.Repl.With, in)
	}
	if p.Exp != nil && p.Exp.Word != nil {
		l.inspectWord(p.Exp.Word, in)
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			l.at(in)
			for _, t := range l.one(p.Exp.Word) {
				l.assigned(p.Param.Value, t, in)
			}
		}
	}
}

// test looks at the inside of [[ ]].
func (l *look) test(x syntax.TestExpr, in dirs) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		l.test(x.X, in)
	case *syntax.Word:
		l.text(x, in)
	case *syntax.UnaryTest:
		l.test(x.X, in)
		w, ok := x.X.(*syntax.Word)
		switch x.Op {
		case syntax.TsNot, syntax.TsParen, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsOptSet, syntax.TsFdTerm:
		case syntax.TsVarSet, syntax.TsRefVar:
			if !ok || !syntax.ValidName(bareText(w)) {
				l.unsure("a test of a variable whose name is no plain name")
			}
		default:
			l.testPath(x.X, in)
		}
	case *syntax.BinaryTest:
		l.test(x.X, in)
		l.test(x.Y, in)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, e := range [...]syntax.TestExpr{x.X, x.Y} {
				if w, ok := e.(*syntax.Word); ok {
					l.arithmParts(w.Parts, in)
				}
			}
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			l.testPath(x.X, in)
			l.testPath(x.Y, in)
		case syntax.TsBefore, syntax.TsAfter: // a POSIX shell redirects
			l.testPath(x.Y, in)
		}
	}
}

func (l *look) testPath(x syntax.TestExpr, in dirs) {
	w, ok := x.(*syntax.Word)
	if !ok {
		return
	}
	l.at(in)
	for _, t := range l.one(w) {
		l.path(t, in)
	}
}

// decl looks at export, declare, local, readonly, typeset.
func (l *look) decl(c *syntax.DeclClause, in dirs) {
	for _, a := range c.Args {
		if a.Name != nil {
			l.assign(a, in)
			if a.Value != nil && !a.Append && a.Index == nil {
				l.settle(a.Name.Value)
			}
			continue
		}
		if a.Value == nil {
			continue
		}
		l.inspectWord(a.Value, in)
		l.at(in)
		for _, t := range l.words(a.Value) {
			l.declWord(t, in)
		}
	}
}

// declWord is one word that a declaration builtin gets.
func (l *look) declWord(t token, in dirs) {
	if !t.exact() {
		l.unsure("a declaration whose name is made at run time")
		return
	}
	if strings.HasPrefix(t.text, "-") || strings.HasPrefix(t.text, "+") {
		if strings.ContainsAny(t.text, "ni") {
			l.unsure("a declaration that gives a variable a second meaning (-n, -i)")
		}
		return
	}
	n := span(t.text, nameChars, len(t.text))
	if n == len(t.text) {
		l.assigned(t.text, token{}, in)
		return
	}
	rest := strings.TrimPrefix(t.text[n:], "+")
	if n == 0 || !strings.HasPrefix(rest, "=") {
		l.unsure("a declaration of " + show(t.text))
		return
	}
	l.assigned(t.text[:n], t.from(len(t.text)-len(rest)+1), in)
}

// numeric says that a substitution gives a number or a bare name: no slash,
// no dot, nothing to expand again.
func (s *scope) numeric(c *syntax.CmdSubst) bool {
	if len(c.Stmts) != 1 || len(c.Stmts[0].Redirs) > 1 {
		return false
	}
	st := c.Stmts[0]
	for {
		b, ok := st.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe {
			break
		}
		st = b.Y
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 || st.Negated {
		return false
	}
	args := make([]string, len(call.Args))
	for i, w := range call.Args {
		if args[i] = bareText(w); args[i] == "" {
			return false
		}
	}
	if s.function(args[0]) {
		return false
	}
	switch args[0] {
	case "nproc":
		return true
	case "id":
		return len(args) == 2 && (args[1] == "-u" || args[1] == "-g")
	case "wc":
		return len(args) == 2 && strings.HasPrefix(args[1], "-") && !strings.HasPrefix(args[1], "--")
	case "date":
		return len(args) == 2 && strings.HasPrefix(args[1], "+") &&
			strings.Trim(args[1], "+%YmdHMSsNj_-") == ""
	case "git":
		return len(args) >= 3 && args[1] == "rev-parse" && args[len(args)-1] == "HEAD" &&
			(len(args) == 3 || len(args) == 4 && strings.HasPrefix(args[2], "--short"))
	}
	return false
}
