// Package systemd asks a systemd manager for one thing: a transient scope for
// processes of the caller, delegated to the caller. It speaks as much of D-Bus
// (https://dbus.freedesktop.org/doc/dbus-specification.html) as that takes.
package systemd

import (
	"encoding/binary"
	"errors"
)

// Scope is a transient scope.
type Scope struct {
	// Unit is its name and ends with .scope; Description is for people.
	Unit, Description string
	// PIDs are the processes that it is made for, which move into it.
	PIDs []uint32
}

// Types of messages, and codes of the fields of their headers.
const (
	methodCall, methodReturn, methodError = 1, 2, 3

	fieldPath, fieldInterface, fieldMember, fieldErrorName = 1, 2, 3, 4
	fieldReplySerial, fieldDestination, fieldSignature     = 5, 6, 8
)

// hello is the first call on a bus, by which it gives the caller a name.
func hello(serial uint32) []byte {
	return call(serial, "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", "org.freedesktop.DBus", "", nil)
}

// start asks for a scope (org.freedesktop.systemd1(5), StartTransientUnit).
func (s Scope) start(serial uint32) []byte {
	var b buffer
	b.str(s.Unit)
	b.str("fail") // what to do about a unit of this name: there is none
	b.array(8, func() {
		b.property("Description", "s", func() { b.str(s.Description) })
		b.property("Delegate", "b", func() { b.num(1) })
		b.property("CollectMode", "s", func() { b.str("inactive-or-failed") })
		b.property("PIDs", "au", func() {
			b.array(4, func() {
				for _, pid := range s.PIDs {
					b.num(pid)
				}
			})
		})
	})
	b.array(8, func() {}) // no other units
	const name = "org.freedesktop.systemd1"
	return call(serial, "/org/freedesktop/systemd1", name+".Manager", "StartTransientUnit", name, "ssa(sv)a(sa(sv))", b)
}

func call(serial uint32, path, iface, member, destination, signature string, body []byte) []byte {
	b := buffer{'l', methodCall, 0, 1}
	b.num(uint32(len(body)))
	b.num(serial)
	b.array(8, func() {
		for _, f := range [...]struct {
			code     byte
			kind, of string
		}{{fieldPath, "o", path}, {fieldInterface, "s", iface}, {fieldMember, "s", member}, {fieldDestination, "s", destination}, {fieldSignature, "g", signature}} {
			if f.of == "" {
				continue
			}
			b.pad(8)
			b = append(b, f.code)
			b.signature(f.kind)
			if f.kind == "g" {
				b.signature(f.of)
			} else {
				b.str(f.of)
			}
		}
	})
	b.pad(8)
	return append(b, body...)
}

// buffer is a message, or a body, in little endian.
type buffer []byte

func (b *buffer) pad(to int) {
	for len(*b)%to != 0 {
		*b = append(*b, 0)
	}
}

func (b *buffer) num(n uint32) {
	b.pad(4)
	*b = binary.LittleEndian.AppendUint32(*b, n)
}

func (b *buffer) str(s string) {
	b.num(uint32(len(s)))
	*b = append(append(*b, s...), 0)
}

func (b *buffer) signature(s string) {
	*b = append(append(append(*b, byte(len(s))), s...), 0)
}

// array writes the length of what fill writes, without the space before its first
// element.
func (b *buffer) array(align int, fill func()) {
	b.num(0)
	at := len(*b)
	b.pad(align)
	first := len(*b)
	fill()
	binary.LittleEndian.PutUint32((*b)[at-4:], uint32(len(*b)-first))
}

func (b *buffer) property(name, signature string, value func()) {
	b.pad(8)
	b.str(name)
	b.signature(signature)
	value()
}

// headLen is how much of a message says how long it is, mostMessage how long one
// may be that we read.
const (
	headLen     = 16
	mostMessage = 1 << 20
)

var errMessage = errors.New("malformed message on the bus")

// size is the length of a whole message, of its head.
func size(head []byte) (int, error) {
	if len(head) < headLen {
		return 0, errMessage
	}
	order, err := orderOf(head)
	if err != nil {
		return 0, err
	}
	body, fields := uint64(order.Uint32(head[4:])), uint64(order.Uint32(head[12:]))
	n := headLen + (fields+7)/8*8 + body
	if n > mostMessage {
		return 0, errMessage
	}
	return int(n), nil
}

func orderOf(m []byte) (binary.ByteOrder, error) {
	switch {
	case m[3] != 1:
		return nil, errMessage
	case m[0] == 'l':
		return binary.LittleEndian, nil
	case m[0] == 'B':
		return binary.BigEndian, nil
	}
	return nil, errMessage
}

// answer is what we look at of a message.
type answer struct {
	kind byte
	to   uint32 // the serial of the call
	// name is an error's, text the first word of a body that begins with one.
	name, text string
}

// parse reads a whole message. It never panics, whatever the bytes.
func parse(m []byte) (answer, error) {
	if n, err := size(m); err != nil || n != len(m) {
		return answer{}, errMessage
	}
	order, err := orderOf(m)
	if err != nil {
		return answer{}, err
	}
	a := answer{kind: m[1]}
	end := headLen + int(order.Uint32(m[12:]))
	r := reader{order: order, m: m[:end], at: headLen}
	signature := ""
	for r.at < end {
		r.pad(8)
		code := r.byte()
		kind := r.signature()
		var text string
		var number uint32
		switch kind {
		case "s", "o":
			text = r.str()
		case "g":
			text = r.signature()
		case "u":
			number = r.num()
		default:
			return answer{}, errMessage
		}
		switch code {
		case fieldErrorName:
			a.name = text
		case fieldReplySerial:
			a.to = number
		case fieldSignature:
			signature = text
		}
		if r.bad {
			return answer{}, errMessage
		}
	}
	if len(signature) > 0 && signature[0] == 's' {
		r = reader{order: order, m: m, at: (end + 7) / 8 * 8}
		if a.text = r.str(); r.bad {
			return answer{}, errMessage
		}
	}
	return a, nil
}

// reader reads values of a message; bad says that there was one that does not fit.
type reader struct {
	order binary.ByteOrder
	m     []byte
	at    int
	bad   bool
}

// take returns the next n bytes, zeros where there are none.
func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.m)-r.at {
		r.bad = true
		return make([]byte, min(max(n, 0), 8))
	}
	b := r.m[r.at : r.at+n]
	r.at += n
	return b
}

func (r *reader) pad(to int) { r.take((to - r.at%to) % to) }

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) num() uint32 {
	r.pad(4)
	return r.order.Uint32(r.take(4))
}

func (r *reader) str() string {
	n := r.num()
	if n > mostMessage {
		r.bad = true
		return ""
	}
	s := string(r.take(int(n)))
	r.byte()
	return s
}

func (r *reader) signature() string {
	s := string(r.take(int(r.byte())))
	r.byte()
	return s
}
