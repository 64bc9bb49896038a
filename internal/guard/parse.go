package guard

import (
	"errors"
	"io"
	"runtime"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxFrames bounds the parser's own recursion. A level of nesting costs it
// about eight frames.
const maxFrames = 4000

var errDeep = errors.New("it is nested too deeply")

// parse reads src as Bash.
func parse(src string) (*syntax.File, error) {
	p := syntax.NewParser(syntax.Variant(syntax.LangBash))
	f, err := p.Parse(&watched{r: strings.NewReader(src)}, "")
	if errors.Is(err, errDeep) {
		return nil, errDeep
	}
	return f, err
}

// watched hands text to the recursive parser and stops it when its stack has
// grown too deep: the parser has no limit of its own, and a stack that
// overflows ends the process, past any recover. The parser asks for at most
// 1 KiB at a time, which bounds what it can add between two checks.
type watched struct{ r *strings.Reader }

func (w *watched) Read(b []byte) (int, error) {
	var pc [1]uintptr
	if runtime.Callers(maxFrames, pc[:]) > 0 {
		return 0, errDeep
	}
	return w.r.Read(b)
}

var _ io.Reader = (*watched)(nil)
