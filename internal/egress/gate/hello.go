package gate

import (
	"bytes"
	"encoding/binary"
)

// kind is what a client's first bytes show.
type kind uint8

const (
	unclear kind = iota // too few bytes yet
	opaque              // neither of the two
	tlsKind
	httpKind
)

// mostHello bounds a TLS client's first message.
const mostHello = 32 << 10

// look says what the first bytes of a client are.
func look(b []byte) kind {
	if len(b) == 0 {
		return unclear
	}
	if b[0] == 0x16 {
		switch {
		case len(b) < 2:
			return unclear
		case b[1] == 3:
			return tlsKind
		}
		return opaque
	}
	return lookText(b)
}

// lookText says whether a client speaks HTTP as some server reads it: servers
// skip empty lines and blanks before a request, and take methods of any letters.
// What it finds is judged by readRequest, which reads in one way only.
func lookText(b []byte) kind {
	text := bytes.TrimLeft(b, "\r\n\t ")
	if len(text) == 0 {
		return until(b)
	}
	const longest = 20 // of a method in use
	for i, c := range text[:min(len(text), longest)] {
		if c == ' ' && i > 0 {
			return httpKind
		}
		if !('A' <= c && c <= 'Z') {
			break
		}
	}
	if !token(string(text[:1])) {
		return opaque
	}
	line, _, whole := bytes.Cut(text, []byte("\n"))
	if whole {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	for i, c := range line {
		if (c < ' ' && c != '\t' || c == 0x7f) && (whole || c != '\r' || i < len(line)-1) {
			return opaque // no server takes it for a request
		}
	}
	switch {
	case !whole:
		return until(b)
	case bytes.Contains(bytes.ToUpper(line), []byte("HTTP/")):
		return httpKind
	}
	return opaque
}

// until bounds how long a first line is waited for: longer than any that a
// server takes, it is refused as HTTP that cannot be read.
func until(b []byte) kind {
	if len(b) > mostHead {
		return httpKind
	}
	return unclear
}

// hello is what a TLS client's first message says of where it goes.
type hello struct {
	// name is the name that is asked for; empty without one.
	name string
	// encrypted says that another name may be hidden in it.
	encrypted bool
}

// readHello reads a client's first message (RFC 8446, 4.1.2), which may come in
// several records. done is false while bytes are missing; ok is false for what
// is none.
func readHello(b []byte) (h hello, done, ok bool) {
	var message []byte
	for {
		if len(b) < 5 {
			return h, false, true
		}
		size := int(binary.BigEndian.Uint16(b[3:]))
		if b[0] != 0x16 || b[1] != 3 || size == 0 || size > 1<<14 {
			return h, true, false
		}
		if len(b) < 5+size {
			return h, false, true
		}
		message = append(message, b[5:5+size]...)
		b = b[5+size:]
		if len(message) >= 4 {
			if message[0] != 1 {
				return h, true, false
			}
			want := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if want > mostHello {
				return h, true, false
			}
			if len(message) >= 4+want {
				h, ok = parseHello(message[4 : 4+want])
				return h, true, ok
			}
		}
	}
}

// reader takes parts off a message; bad stays true once one was missing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) num(n int) int {
	v := 0
	for _, c := range r.take(n) {
		v = v<<8 | int(c)
	}
	return v
}

// part takes a length of n bytes and as many bytes.
func (r *reader) part(n int) *reader { return &reader{b: r.take(r.num(n))} }

func parseHello(b []byte) (h hello, ok bool) {
	r := &reader{b: b}
	r.take(2 + 32) // version and random
	r.part(1)      // session
	r.part(2)      // ciphers
	r.part(1)      // compressions
	if r.bad {
		return hello{}, false
	}
	if len(r.b) == 0 {
		return h, true
	}
	const serverName, encryptedHello, encryptedName = 0, 0xfe0d, 0xffce
	extensions := r.part(2)
	if r.bad || len(r.b) != 0 {
		return hello{}, false
	}
	seen := false
	for len(extensions.b) > 0 {
		id, body := extensions.num(2), extensions.part(2)
		if extensions.bad {
			return hello{}, false
		}
		switch id {
		case encryptedHello, encryptedName:
			h.encrypted = true
		case serverName:
			list := body.part(2)
			kind, name := list.num(1), list.part(2)
			if seen || body.bad || len(body.b) != 0 || list.bad || len(list.b) != 0 || kind != 0 || len(name.b) == 0 {
				return hello{}, false // twice, or more than one name
			}
			seen, h.name = true, string(name.b)
		}
	}
	return h, true
}
