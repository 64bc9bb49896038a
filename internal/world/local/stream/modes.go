package stream

import (
	"bytes"
	"strconv"
)

// modes remembers which of a terminal's modes an output has left switched on.
type modes struct {
	set       uint32 // bit i: stickyMode(i) is on
	hidden    bool   // the cursor
	coloured  bool   // or bold, underlined and so on
	region    bool   // scrolling is limited to some lines
	charset   bool   // line drawing instead of letters
	keypad    bool   // application keys
	modifiers bool   // xterm's modifyOtherKeys and relatives
	flags     bool   // kitty's keyboard modes, set outright
	keys      int    // ... and pushed, not popped
}

// stickyMode lists the private modes that are off in an idle shell and would
// disturb it, in the order in which they are switched off: the reports first.
func stickyMode(i int) int {
	switch i {
	case 0:
		return 9
	case 1, 2, 3, 4, 5, 6, 7:
		return 999 + i // 1000 to 1006: mouse and focus
	case 8:
		return 1015
	case 9:
		return 1016
	case 10:
		return 2004 // bracketed paste
	case 11:
		return 2031 // reports of colour changes
	case 12:
		return 2048 // reports of size changes
	case 13:
		return 1 // cursor keys
	case 14:
		return 2026 // synchronized output
	case 15:
		return 6 // origin
	case 16:
		return 5 // reverse video
	case 17:
		return 1049 // alternate screen
	case 18:
		return 1047
	case 19:
		return 47
	}
	return 0
}

const stickyModes = 20

// note takes in a sequence that went to the terminal.
func (m *modes) note(seq []byte) {
	switch string(seq) {
	case "\x1bc", "\x1b[!p":
		// A reset leaves the alternate screen in some terminals only.
		*m = modes{set: m.set & (7 << 17)}
		return
	case "\x1b=":
		m.keypad = true
		return
	case "\x1b>":
		m.keypad = false
		return
	}
	if seq[1] == '(' {
		m.charset = seq[len(seq)-1] != 'B'
	}
	if seq[1] != '[' {
		return
	}
	private, params, inter, final, ok := splitControl(seq)
	if !ok || inter != "" {
		return
	}
	switch { // the frequent ones need no numbers
	case private == 0 && final == 'm':
		m.coloured = len(bytes.Trim(params, "0")) > 0
		return
	case private == 0:
		if final == 'r' {
			m.region = len(params) > 0
		}
		return
	}
	n := numbers(params)
	switch {
	case private == '>' && final == 'm':
		m.modifiers = true
	case private == '>' && final == 'u':
		m.keys = min(m.keys+1, 99)
	case private == '<' && final == 'u':
		m.keys = max(m.keys-max(n[0], 1), 0)
	case private == '=' && final == 'u':
		m.flags = true
	case private == '?' && (final == 'h' || final == 'l'):
		for _, mode := range n {
			m.switched(mode, final == 'h')
		}
	}
}

func (m *modes) switched(mode int, on bool) {
	if mode == 25 {
		m.hidden = !on
		return
	}
	for i := range stickyModes {
		if stickyMode(i) != mode {
			continue
		}
		if on {
			m.set |= 1 << i
		} else {
			m.set &^= 1 << i
		}
		return
	}
}

// undo returns the sequences that switch everything back.
func (m *modes) undo() []byte {
	var b []byte
	if m.keys > 0 {
		b = append(strconv.AppendInt(append(b, "\x1b[<"...), int64(m.keys), 10), 'u')
	}
	if m.flags {
		b = append(b, "\x1b[=0u"...)
	}
	if m.modifiers {
		b = append(b, "\x1b[>4m"...)
	}
	for i := range stickyModes {
		if m.set&(1<<i) != 0 {
			b = append(strconv.AppendInt(append(b, "\x1b[?"...), int64(stickyMode(i)), 10), 'l')
		}
	}
	if m.keypad {
		b = append(b, "\x1b>"...)
	}
	if m.charset {
		b = append(b, "\x1b(B"...)
	}
	if m.region {
		b = append(b, "\x1b7\x1b[r\x1b8"...) // the cursor stays where it is
	}
	if m.coloured {
		b = append(b, "\x1b[m"...)
	}
	if m.hidden {
		b = append(b, "\x1b[?25h"...)
	}
	return b
}
