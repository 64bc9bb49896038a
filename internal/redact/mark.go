package redact

import "strings"

const (
	markBegin = "[REDACTED:"
	markEnd   = "]"
	maxName   = 64
)

// Mark returns what stands in place of the value called name.
func Mark(name string) string { return markBegin + markName(name) + markEnd }

// markName returns name in letters that a mark can hold.
func markName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 0x80 && markByte(byte(r)) {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "SECRET"
	}
	return name[:min(len(name), maxName)]
}

func markByte(c byte) bool {
	return alphanumeral(c) || c == '_' || c == '-' || c == '.'
}

// FindMark returns the first mark that text holds.
func FindMark(text string) (mark string, found bool) {
	for {
		i := strings.Index(text, markBegin)
		if i < 0 {
			return "", false
		}
		text = text[i:]
		n := len(markBegin)
		for n < len(text) && markByte(text[n]) {
			n++
		}
		if size := n - len(markBegin); size > 0 && size <= maxName && strings.HasPrefix(text[n:], markEnd) {
			return text[:n+1], true
		}
		text = text[len(markBegin):]
	}
}
