package stream

import (
	"io"
	"unicode/utf8"
)

// maxHeld bounds a control sequence that must be seen whole before it may
// pass. Kitty's image chunks, the longest in wide use, have 4 KiB.
const maxHeld = 16 << 10

const (
	bel = 0x07
	enq = 0x05
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

// replacement is U+FFFD as it goes to the terminal.
const replacement = "\xef\xbf\xbd"

// Dropped counts what a Filter kept from the terminal.
type Dropped struct {
	Clipboard int // sequences that read or write the user's clipboard
	Reports   int // requests whose answer would be typed into the input
	Other     int // everything else that is not known to be harmless
}

// Filter is an io.Writer that passes a command's output on to a terminal
// without what could reach beyond the command's own window: sequences that set
// the clipboard, that make the terminal type text of the command's choosing or
// read the screen, that hand files, macros or print jobs to the terminal, and
// those that carry any of these through a multiplexer. sequence.go says which,
// and why.
//
// What it promises about its output, whatever the input and however it was cut
// into writes:
//   - it is valid UTF-8 and holds no C1 control but NEL; an invalid byte or an
//     8-bit control becomes U+FFFD, as a UTF-8 terminal would show it;
//   - ENQ does not occur, and ESC only begins a complete sequence that passed,
//     so that no two harmless pieces join into a harmful one;
//   - a string sequence (OSC, DCS, APC) passes only if its kind is known to be
//     harmless and no control character occurs in it;
//   - valid UTF-8 text, C0 controls, colours, cursor movement, modes and titles
//     pass unchanged.
//
// It assumes a terminal in UTF-8 mode, and keeps it there. In a terminal that
// reads Latin-1 some letters are controls, and the promise does not hold. Time
// is linear in the input and memory bounded. Not safe for concurrent use.
type Filter struct {
	w       io.Writer
	state   state
	intro   byte   // of a string: the byte after ESC, as in "]" for OSC
	held    []byte // the sequence so far, from ESC on
	heading bool   // of a string: not yet past its head, see flows
	spoilt  bool   // held cannot pass any more; wait for its end
	flowing bool   // held has passed; its payload is passed as it comes
	begun   []byte // an unfinished UTF-8 character at the end of a write
	out     []byte
	dropped Dropped
	modes   modes
}

type state uint8

const (
	ground    state = iota
	escape          // after ESC and any intermediates
	control         // inside a CSI sequence
	str             // inside OSC, DCS, APC, SOS, PM or a screen title
	strEscape       // after ESC inside a string
)

// NewFilter returns a Filter that writes to w, at most once per Write.
func NewFilter(w io.Writer) *Filter { return &Filter{w: w} }

// Dropped returns what was kept from the terminal so far.
func (f *Filter) Dropped() Dropped { return f.dropped }

// Write filters p. What cannot be judged yet waits for the next Write.
func (f *Filter) Write(p []byte) (int, error) {
	n := len(p)
	if len(f.begun) > 0 {
		p = append(f.begun, p...)
		f.begun = nil
	}
	f.out = f.out[:0]
	f.feed(p)
	return n, f.flush()
}

// Close ends the output: an unfinished sequence is dropped, and one whose
// payload was already passing is ended. It does not close the writer below.
func (f *Filter) Close() error {
	f.out = f.out[:0]
	for range f.begun {
		f.char(utf8.RuneError, nil)
	}
	f.begun = nil
	if f.state != ground {
		f.abandon()
	}
	return f.flush()
}

// Undo returns what takes the terminal out of the modes that the output left
// on: alternate screen, mouse and focus reports (which would go on typing into
// the next program), bracketed paste, a hidden cursor, colours.
func (f *Filter) Undo() []byte { return f.modes.undo() }

func (f *Filter) flush() error {
	if len(f.out) == 0 {
		return nil
	}
	_, err := f.w.Write(f.out)
	return err
}

func (f *Filter) feed(p []byte) {
	for len(p) > 0 {
		if f.state == ground {
			n := plain(p)
			f.out = append(f.out, p[:n]...)
			if p = p[n:]; len(p) == 0 {
				return
			}
		}
		if p[0] < utf8.RuneSelf {
			f.ascii(p[0])
			p = p[1:]
			continue
		}
		if !utf8.FullRune(p) {
			f.begun = append(f.begun[:0], p...)
			return
		}
		r, n := utf8.DecodeRune(p)
		f.char(r, p[:n])
		p = p[n:]
	}
}

// plain returns the length of the beginning of p that needs no thought.
func plain(p []byte) int {
	i := 0
	for i < len(p) {
		c := p[i]
		if c < utf8.RuneSelf {
			if c == esc || c == enq {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		if n == 1 || c1(r) {
			return i
		}
		i += n
	}
	return i
}

// c1 tells whether r is an 8-bit control that the filter does not let pass.
// NEL is a line feed by another name and occurs in texts.
func c1(r rune) bool { return r >= 0x80 && r <= 0x9f && r != 0x85 }

// char takes a character beyond ASCII; b are its bytes.
func (f *Filter) char(r rune, b []byte) {
	bad := r == utf8.RuneError && len(b) < 3 || c1(r)
	switch f.state {
	case str:
		switch {
		case bad || f.flowing:
			f.spoil()
		default:
			f.hold(b...)
		}
		return
	case strEscape, escape, control:
		f.abandon()
	}
	if bad {
		f.out = append(f.out, replacement...)
		return
	}
	f.out = append(f.out, b...)
}

func (f *Filter) ascii(c byte) {
	switch f.state {
	case ground:
		f.atGround(c)
	case escape, control:
		f.inSequence(c)
	case str:
		f.inString(c)
	case strEscape:
		if c == '\\' {
			f.endString(esc, '\\')
			return
		}
		f.abandon()
		f.begin()
		f.inSequence(c)
	}
}

func (f *Filter) atGround(c byte) {
	switch c {
	case esc:
		f.begin()
	case enq:
		f.count(dropReport)
	default:
		f.out = append(f.out, c)
	}
}

// begin starts a sequence at an ESC.
func (f *Filter) begin() {
	f.state, f.spoilt, f.flowing = escape, false, false
	f.held = append(f.held[:0], esc)
}

// inSequence takes a byte after ESC or inside a CSI sequence. Terminals obey
// a C0 control there at once and go on with the sequence; so it passes first.
func (f *Filter) inSequence(c byte) {
	switch {
	case c == esc:
		f.abandon()
		f.begin()
	case c == can || c == sub:
		f.abandon()
	case c == enq:
		f.count(dropReport)
	case c < ' ':
		f.out = append(f.out, c)
	case c == del: // ignored by terminals
	case f.state == escape && len(f.held) == 1 && introduces(c):
		f.hold(c)
		f.intro, f.state, f.heading = c, str, true
	case f.state == escape && len(f.held) == 1 && c == '[':
		f.hold(c)
		f.state = control
	case f.state == escape && c < '0' || f.state == control && c < '@':
		f.hold(c)
	default:
		f.hold(c)
		v := dropOther
		switch {
		case f.spoilt:
		case f.state == control:
			v = judgeControl(f.held)
		default:
			v = judgeEscape(f.held)
		}
		f.finish(v)
	}
}

// introduces tells whether ESC c begins a string that runs to ST.
func introduces(c byte) bool {
	switch c {
	case ']', 'P', '_', '^', 'X', 'k':
		return true
	}
	return false
}

func (f *Filter) inString(c byte) {
	switch {
	case c == esc:
		f.state = strEscape
	case c == bel && f.intro == ']':
		f.endString(bel)
	case c == can || c == sub:
		f.abandon()
	case f.flowing && (c >= ' ' && c < del || c == '\r' || c == '\n'):
		f.out = append(f.out, c)
	case c < ' ' || c == del:
		f.spoil()
	default:
		f.hold(c)
		switch {
		case f.spoilt:
		case consolePalette(f.intro, f.held):
			f.finish(dropOther)
		case f.heading && endsHead(f.intro, c):
			f.heading = false
			if flows(f.intro, f.held) {
				f.out = append(f.out, f.held...)
				f.flowing = true
			}
		}
	}
}

// consolePalette tells whether held is one of the Linux console's own OSC
// sequences. No ST follows them, and the text after them must not be lost.
func consolePalette(intro byte, held []byte) bool {
	return intro == ']' && (held[2] == 'R' || held[2] == 'P' && len(held) == len("\x1b]Pnrrggbb"))
}

// hold adds to the sequence; one that gets too long cannot pass any more.
func (f *Filter) hold(b ...byte) {
	if f.spoilt {
		return
	}
	if len(f.held)+len(b) > maxHeld {
		f.spoil()
		return
	}
	f.held = append(f.held, b...)
}

// spoil marks the sequence as one that cannot pass. It still runs to its end.
func (f *Filter) spoil() {
	if f.flowing {
		f.out = append(f.out, esc, '\\')
		f.flowing = false
	}
	f.spoilt = true
}

func (f *Filter) endString(terminator ...byte) {
	switch {
	case f.flowing && !f.spoilt:
		f.out = append(f.out, terminator...)
		f.state, f.flowing = ground, false
		f.held = f.held[:0]
	case f.spoilt:
		f.abandon()
	default:
		v := judgeString(f.intro, f.held[2:])
		f.held = append(f.held, terminator...)
		f.finish(v)
	}
}

// finish ends a complete sequence as v says.
func (f *Filter) finish(v verdict) {
	if v == keep {
		f.out = append(f.out, f.held...)
		f.modes.note(f.held)
	} else {
		f.count(v)
	}
	f.state = ground
	f.held = f.held[:0]
}

// abandon drops a sequence that was cut off or spoilt.
func (f *Filter) abandon() {
	switch {
	case f.flowing:
		f.out = append(f.out, esc, '\\')
		f.flowing = false
	case f.state == str || f.state == strEscape:
		v := judgeString(f.intro, f.held[2:])
		if v == keep {
			v = dropOther
		}
		f.count(v)
	}
	f.state = ground
	f.held = f.held[:0]
}

func (f *Filter) count(v verdict) {
	switch v {
	case dropClipboard:
		f.dropped.Clipboard++
	case dropReport:
		f.dropped.Reports++
	default:
		f.dropped.Other++
	}
}
