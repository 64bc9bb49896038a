package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// dirs are the folders that may be current at a point of the text, absolute
// and clean. A value is never changed in place. More than maxDirs stand for
// too many to follow.
type dirs []string

const (
	maxDirs = 16
	maxPath = 4096
)

func (d dirs) with(e dirs) dirs {
	out := d
	for _, x := range e {
		if len(out) <= maxDirs && !slices.Contains(out, x) {
			out = append(out[:len(out):len(out)], x)
		}
	}
	return out
}

// outcome is where a command may leave the shell: after success, after
// failure.
type outcome struct{ ok, fail dirs }

func stay(in dirs) outcome { return outcome{in, in} }

func (o outcome) any() dirs { return o.ok.with(o.fail) }

const maxWork = 64 // second looks at loops and functions, altogether

func (l *look) stmts(list []*syntax.Stmt, in dirs) dirs {
	return l.list(list, in).any()
}

// list is the outcome of a list, which is that of its last statement.
func (l *look) list(list []*syntax.Stmt, in dirs) outcome {
	out := stay(in)
	for _, s := range list {
		if l.done {
			return out
		}
		out = l.stmt(s, out.any())
	}
	return out
}

// apart analyses what may not run, or runs in a shell of its own, so that
// what it assigns is not sure afterwards.
func (l *look) apart(f func()) {
	mark := len(l.trail)
	f()
	l.back(mark)
}

func (l *look) stmt(s *syntax.Stmt, in dirs) outcome {
	if l.done {
		return stay(in)
	}
	if len(in) > maxDirs {
		in = l.lose(in)
	}
	for _, r := range s.Redirs {
		l.redirect(r, in)
	}
	if s.Cmd == nil {
		return stay(in)
	}
	if s.Background || s.Coprocess || s.Disown {
		l.apart(func() { l.cmd(s.Cmd, in) })
		return stay(in)
	}
	out := l.cmd(s.Cmd, in)
	if s.Negated {
		out.ok, out.fail = out.fail, out.ok
	}
	return out
}

// lose gives up on following the current folder.
func (l *look) lose(in dirs) dirs {
	l.opaque("the current folder may be one of too many", "write paths from "+show(l.start[0]))
	l.lost = true
	return in[:1]
}

func (l *look) cmd(c syntax.Command, in dirs) (out outcome) {
	out = stay(in)
	switch c := c.(type) {
	case *syntax.CallExpr:
		return l.call(c, in)
	case *syntax.BinaryCmd:
		if c.Op == syntax.AndStmt || c.Op == syntax.OrStmt {
			return l.chain(c, in)
		}
		return l.pipeline(c, in)
	case *syntax.Block:
		return l.list(c.Stmts, in)
	case *syntax.Subshell:
		l.apart(func() { l.stmts(c.Stmts, in) })
	case *syntax.IfClause:
		var after dirs
		rest, mark, first := in, len(l.trail), true
		for ; c != nil && !l.done; c = c.Else {
			if c.ThenPos.IsValid() {
				cond := l.list(c.Cond, rest)
				if first {
					mark = len(l.trail) // an elif's condition may not run
				}
				first = false
				l.apart(func() { after = after.with(l.stmts(c.Then, cond.ok)) })
				rest = cond.fail
			} else {
				l.apart(func() { after = after.with(l.stmts(c.Then, rest)) })
				rest = nil
			}
		}
		l.back(mark)
		return stay(after.with(rest))
	case *syntax.WhileClause:
		return stay(l.loop(in, func(d dirs) dirs {
			var end dirs
			l.apart(func() {
				cond := l.list(c.Cond, d)
				end = cond.any().with(l.stmts(c.Do, cond.any()))
			})
			return end
		}))
	case *syntax.ForClause:
		return stay(l.forLoop(c, in))
	case *syntax.CaseClause:
		l.text(c.Word, in)
		after := in
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				l.text(p, in)
			}
			// ;& and ;;& run on into the next: begin anywhere before.
			l.apart(func() { after = after.with(l.stmts(item.Stmts, after)) })
		}
		return stay(after)
	case *syntax.FuncDecl:
		l.funcDecl(c, in)
	case *syntax.ArithmCmd:
		l.arithm(c.X, in)
		l.arithmAsPOSIX(c.X)
	case *syntax.LetClause:
		for _, e := range c.Exprs {
			l.arithm(e, in)
		}
	case *syntax.TestClause:
		l.test(c.X, in)
	case *syntax.DeclClause:
		l.decl(c, in)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			return l.stmt(c.Stmt, in)
		}
	case *syntax.CoprocClause:
		l.apart(func() { l.stmt(c.Stmt, in) })
	default:
		l.unparsed("a construct that the guard does not know")
	}
	return out
}

// chain evaluates a && b || c from left to right; long ones are deep on the
// left, so they are walked, not descended.
func (l *look) chain(c *syntax.BinaryCmd, in dirs) outcome {
	var links []*syntax.BinaryCmd
	var first *syntax.Stmt
	for {
		links = append(links, c)
		first = c.X
		b, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.AndStmt && b.Op != syntax.OrStmt || len(first.Redirs) > 0 || first.Negated {
			break
		}
		c = b
	}
	out := l.stmt(first, in)
	mark := len(l.trail)
	for i := len(links) - 1; i >= 0 && !l.done; i-- {
		if links[i].Op == syntax.AndStmt {
			next := l.stmt(links[i].Y, out.ok)
			out = outcome{next.ok, out.fail.with(next.fail)}
			continue
		}
		l.back(mark)
		next := l.stmt(links[i].Y, out.fail)
		l.back(mark)
		out = outcome{out.ok.with(next.ok), next.fail}
	}
	l.back(mark)
	return out
}

// pipeline looks at each part as a shell of its own. Only some shells run the
// last one in the shell itself.
func (l *look) pipeline(c *syntax.BinaryCmd, in dirs) outcome {
	var parts []*syntax.Stmt
	flat := func(s *syntax.Stmt) {
		for {
			b, ok := s.Cmd.(*syntax.BinaryCmd)
			if !ok || b.Op == syntax.AndStmt || b.Op == syntax.OrStmt || len(s.Redirs) > 0 {
				parts = append(parts, s)
				return
			}
			if x, ok := b.X.Cmd.(*syntax.BinaryCmd); ok && x.Op != syntax.AndStmt && x.Op != syntax.OrStmt {
				// Deep on the left: take the spine apart from its end.
				spine := []*syntax.Stmt{b.Y}
				s = b.X
				for {
					x, ok := s.Cmd.(*syntax.BinaryCmd)
					if !ok || x.Op == syntax.AndStmt || x.Op == syntax.OrStmt || len(s.Redirs) > 0 {
						break
					}
					spine = append(spine, x.Y)
					s = x.X
				}
				parts = append(parts, s)
				for i := len(spine) - 1; i > 0; i-- {
					parts = append(parts, spine[i])
				}
				s = spine[0]
				continue
			}
			parts = append(parts, b.X)
			s = b.Y
		}
	}
	flat(&syntax.Stmt{Cmd: c})
	out := in
	before := l.find0
	for i, p := range parts {
		_, simple := p.Cmd.(*syntax.CallExpr)
		l.find0 = i > 0 && simple && len(p.Redirs) == 0 && !l.function("find") && listsBelow(parts[i-1])
		l.apart(func() {
			end := l.stmt(p, in).any()
			if i == len(parts)-1 {
				out = out.with(end)
			}
		})
	}
	l.find0 = before
	return stay(out)
}

// loop evaluates a body that may run any number of times.
func (l *look) loop(in dirs, body func(dirs) dirs) dirs {
	for {
		out := in.with(body(in))
		if l.done || len(out) == len(in) {
			return out
		}
		if l.work++; l.work > maxWork || len(out) > maxDirs {
			return l.lose(out)
		}
		in = out
	}
}

func (l *look) forLoop(c *syntax.ForClause, in dirs) dirs {
	name := ""
	switch h := c.Loop.(type) {
	case *syntax.WordIter:
		for _, w := range h.Items {
			l.inspectWord(w, in)
			for _, t := range l.words(w) {
				// An item is a path as likely as not, whatever uses it.
				if t.known() {
					l.path(t, in)
				}
			}
		}
		l.assigned(h.Name.Value, token{}, in)
		if !c.Select {
			name = h.Name.Value
		}
	case *syntax.CStyleLoop:
		l.arithm(h.Init, in)
		l.arithm(h.Cond, in)
		l.arithm(h.Post, in)
	}
	return l.loop(in, func(d dirs) (end dirs) {
		l.apart(func() {
			if name != "" {
				l.settle(name)
			}
			end = l.stmts(c.Do, d)
		})
		return end
	})
}

func (l *look) funcDecl(c *syntax.FuncDecl, in dirs) {
	if c.Name == nil { // an anonymous function, which Bash does not have
		l.unparsed("a function without a name")
		return
	}
	name := c.Name.Value
	if changesFolder(c.Body) && l.o.Mode == Enforce {
		l.opaque("the function "+show(name)+" changes the current folder", "cd outside of functions, or in a subshell: ( cd DIR && ... )")
	}
	// A body may run anywhere later; folders that are current only then are
	// looked at from the call.
	l.apart(func() { l.stmt(c.Body, in) })
	if l.bodies == nil {
		l.bodies = map[string][]body{}
	}
	l.bodies[name] = append(l.bodies[name], body{c.Body, in})
	// The parser takes f() { ...; } | x for a function with a pipe in its
	// body; to a shell it is a pipe with a definition in it, gone afterwards.
	switch c.Body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell:
		l.settle(name + "()")
	}
}

// body is a function's body and the folders it has been looked at from.
type body struct {
	stmt *syntax.Stmt
	from dirs
}

// invoke looks at a function's bodies from the folders that are new to them.
func (l *look) invoke(name string, in dirs) {
	for i, b := range l.bodies[name] {
		all := b.from.with(in)
		if len(all) == len(b.from) {
			continue
		}
		if l.work++; l.work > maxWork {
			l.lose(in)
			return
		}
		l.bodies[name][i].from = all
		l.apart(func() { l.stmt(b.stmt, all) })
	}
}

// changesFolder says that a cd may reach the caller's shell.
func changesFolder(s *syntax.Stmt) bool {
	found := false
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.CallExpr:
			for _, w := range n.Args {
				switch bareText(w) {
				case "cd", "pushd", "popd", "chdir":
					found = true
				}
			}
		}
		return !found
	})
	return found
}

// listsBelow says that a command writes nothing but NUL-terminated relative
// paths that begin with a dot: find . ... -print0.
func listsBelow(s *syntax.Stmt) bool {
	c, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) < 3 || len(s.Redirs) > 0 || bareText(c.Args[0]) != "find" {
		return false
	}
	at := bareText(c.Args[1])
	if at != "." && !strings.HasPrefix(at, "./") {
		return false
	}
	printed := false
	for i, w := range c.Args[2:] {
		t := bareText(w)
		switch t {
		case "":
			return false
		case "-print0":
			printed = i == len(c.Args)-3
		case "-print", "-printf", "-ls", "-exec", "-execdir", "-ok", "-okdir", "-o", "-or", ",":
			return false
		}
		// Another starting point, before the first test.
		if i == 0 && !strings.HasPrefix(t, "-") {
			return false
		}
	}
	return printed
}
