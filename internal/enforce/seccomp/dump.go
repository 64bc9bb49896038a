package seccomp

import (
	"fmt"
	"strings"
)

// Disassemble prints a program, one instruction a line, with absolute targets:
// for golden files, for people, and for explain. Instructions that [Compile]
// does not use are printed in hex.
func Disassemble(prog []Insn) string {
	var b strings.Builder
	for at, i := range prog {
		fmt.Fprintf(&b, "%4d  %s\n", at, i.text(at))
	}
	return b.String()
}

func (i Insn) text(at int) string {
	next := uint32(at) + 1
	switch i.Code {
	case opLoad:
		return "load  " + field(i.K)
	case opAnd:
		return fmt.Sprintf("and   %#x", i.K)
	case opJump:
		return fmt.Sprintf("jump  %d", next+i.K)
	case opIfEq:
		return fmt.Sprintf("if == %#x then %d else %d", i.K, next+uint32(i.Jt), next+uint32(i.Jf))
	case opIfGE:
		return fmt.Sprintf("if >= %d then %d else %d", i.K, next+uint32(i.Jt), next+uint32(i.Jf))
	case opReturn:
		if i.K == retAllow {
			return "allow"
		}
		if i.K&0xffff0000 == retErrno {
			return "refuse " + Errno(i.K).String()
		}
		if i.tells() {
			return "tell, refuse " + Errno(i.K).String()
		}
	}
	return fmt.Sprintf("%#04x %d %d %#x", i.Code, i.Jt, i.Jf, i.K)
}

func field(offset uint32) string {
	switch {
	case offset == dataNumber:
		return "number"
	case offset == dataArch:
		return "arch"
	case offset >= dataArgs && offset < dataArgs+48 && offset%4 == 0:
		half := "low"
		if offset%8 == 4 {
			half = "high"
		}
		return fmt.Sprintf("arg%d.%s", (offset-dataArgs)/8, half)
	}
	return fmt.Sprintf("[%d]", offset)
}
