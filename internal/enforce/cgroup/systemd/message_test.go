package systemd

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHello holds a call to bytes that were laid out by hand from the
// specification.
func TestHello(t *testing.T) {
	want := strings.Join([]string{
		"6c010001" + "00000000" + "01000000" + "6d000000", // little endian, call, version 1; body, serial, fields
		"01016f00" + "15000000" + hex.EncodeToString([]byte("/org/freedesktop/DBus")) + "00" + "0000",
		"02017300" + "14000000" + hex.EncodeToString([]byte("org.freedesktop.DBus")) + "00" + "000000",
		"03017300" + "05000000" + hex.EncodeToString([]byte("Hello")) + "00" + "0000",
		"06017300" + "14000000" + hex.EncodeToString([]byte("org.freedesktop.DBus")) + "00" + "000000",
	}, "")
	// The length of the fields, 109, leaves out what fills the last one up.
	if got := hex.EncodeToString(hello(1)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n, err := size(hello(1)); err != nil || n != len(hello(1)) {
		t.Errorf("says to be %d long, and is %d (%v)", n, len(hello(1)), err)
	}
}

func TestStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scope{Unit: rapid.StringMatching(`[a-z0-9-]{1,30}\.scope`).Draw(t, "unit"), Description: rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "description"),
			PIDs: rapid.SliceOfN(rapid.Uint32(), 0, 9).Draw(t, "pids")}
		m := s.start(7)
		a, err := parse(m)
		if err != nil || a.kind != methodCall || a.text != s.Unit {
			t.Fatalf("%+v: got %+v, %v", s, a, err)
		}
		// The processes are the last value, before an empty array.
		var list []byte
		for _, pid := range s.PIDs {
			list = binary.LittleEndian.AppendUint32(list, pid)
		}
		at := bytes.LastIndex(m, []byte("\x02au\x00"))
		rest := m[(at+4+3)/4*4:]
		if n := binary.LittleEndian.Uint32(rest); at < 0 || int(n) != len(list) || !bytes.HasPrefix(rest[4:], list) {
			t.Fatalf("%+v: the processes are not in %q", s, m)
		}
	})
}

func TestParse(t *testing.T) {
	reply := func(kind byte, order binary.ByteOrder, mark byte, name, text string) []byte {
		var fields, body []byte
		put := func(b *[]byte, n uint32) {
			for len(*b)%4 != 0 {
				*b = append(*b, 0)
			}
			*b = append(*b, 0, 0, 0, 0)
			order.PutUint32((*b)[len(*b)-4:], n)
		}
		word := func(b *[]byte, s string) {
			put(b, uint32(len(s)))
			*b = append(append(*b, s...), 0)
		}
		align := func() {
			for len(fields)%8 != 0 {
				fields = append(fields, 0)
			}
		}
		fields = append(fields, fieldReplySerial, 1, 'u', 0)
		put(&fields, 2)
		if name != "" {
			align()
			fields = append(fields, fieldErrorName, 1, 's', 0)
			word(&fields, name)
		}
		if text != "" {
			align()
			fields = append(fields, fieldSignature, 1, 'g', 0, 1, 's', 0)
			word(&body, text)
		}
		m := []byte{mark, kind, 0, 1}
		put(&m, uint32(len(body)))
		put(&m, 9)
		put(&m, uint32(len(fields)))
		align()
		return append(append(m, fields...), body...)
	}
	for _, c := range []struct {
		m    []byte
		want answer
	}{
		{reply(methodReturn, binary.LittleEndian, 'l', "", ""), answer{kind: methodReturn, to: 2}},
		{reply(methodReturn, binary.BigEndian, 'B', "", "/job/1"), answer{kind: methodReturn, to: 2, text: "/job/1"}},
		{reply(methodError, binary.LittleEndian, 'l', "a.b.Denied", "no"), answer{methodError, 2, "a.b.Denied", "no"}},
	} {
		if got, err := parse(c.m); err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v; want %+v", c.m, got, err, c.want)
		}
		for n := range c.m {
			if got, err := parse(c.m[:n]); err == nil {
				t.Errorf("the first %d bytes were read as %+v", n, got)
			}
		}
	}
	huge := hello(1)
	binary.LittleEndian.PutUint32(huge[4:], 1<<31)
	if _, err := size(huge[:headLen]); err == nil {
		t.Error("a message of 2 GiB was taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(hello(1))
	f.Add(Scope{Unit: "a.scope", PIDs: []uint32{1, 2}}.start(2))
	f.Add([]byte("l\x03\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x05\x01u\x00\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) >= headLen {
			if n, err := size(m); err == nil && (n < headLen || n > mostMessage) {
				t.Errorf("a message of %d bytes", n)
			}
		}
		if a, err := parse(m); err == nil && len(a.name)+len(a.text) > len(m) {
			t.Errorf("%+v is more than was said", a)
		}
	})
}
