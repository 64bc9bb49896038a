package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// allIndex says that an index is [@] or [*].
func allIndex(x syntax.ArithmExpr) bool {
	w, ok := x.(*syntax.Word)
	return ok && (w.Lit() == "@" || w.Lit() == "*")
}

// arithm looks at an arithmetic expression. The shell evaluates the text of a
// variable again, and a subscript in it may run a command; so every variable
// in one must be seen to hold a number.
func (l *look) arithm(x syntax.ArithmExpr, in dirs) {
	for x != nil && !l.done {
		switch e := x.(type) {
		case *syntax.BinaryArithm:
			l.arithm(e.Y, in)
			x = e.X
		case *syntax.UnaryArithm:
			x = e.X
		case *syntax.ParenArithm:
			x = e.X
		case *syntax.Word:
			if e != nil {
				l.arithmParts(e.Parts, in)
			}
			return
		default:
			l.unsure("an arithmetic expression that Bash does not have")
			return
		}
	}
}

func (l *look) arithmParts(parts []syntax.WordPart, in dirs) {
	const why = "arithmetic over a text that is not seen to be a number"
	l.parts(parts, in)
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if syntax.ValidName(p.Value) && !l.numberVariable(p.Value) || strings.ContainsAny(p.Value, "`$[\\") {
				l.unsure(why)
			}
		case *syntax.SglQuoted:
			if p.Dollar || strings.ContainsAny(p.Value, "`$[\\") {
				l.unsure(why)
			}
		case *syntax.DblQuoted:
			l.arithmParts(p.Parts, in)
		case *syntax.ParamExp:
			if !p.Length && (p.Param == nil || !bareParam(p) && p.Index == nil || !l.numberVariable(p.Param.Value)) {
				l.unsure(why)
			}
		case *syntax.CmdSubst:
			if !l.numeric(p) {
				l.unsure("arithmetic over the output of a command")
			}
		}
	}
}

func (l *look) numberVariable(name string) bool {
	switch name {
	case "?", "#", "$", "!":
		return true
	}
	v := l.vars[name]
	if v == nil {
		switch name {
		case "REPLY", "OPTARG", "MAPFILE", "DIRSTACK", "FUNCNAME", "_":
			return false
		}
		return syntax.ValidName(name) && !l.tainted
	}
	if v.opaque {
		return false
	}
	for _, t := range v.values {
		if span(t.text, "0123456789+- ", len(t.text)) != len(t.text) {
			return false
		}
	}
	return true
}

// arithmAsPOSIX: to a shell without (( )) it is a command in two subshells.
func (l *look) arithmAsPOSIX(x syntax.ArithmExpr) {
	syntax.Walk(x, func(n syntax.Node) bool {
		if lit, ok := n.(*syntax.Lit); ok {
			if why := denied(lit.Value, nil); why != "" {
				l.deny(lit.Value + ": " + why)
			}
		}
		return true
	})
}
