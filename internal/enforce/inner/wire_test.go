package inner

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{Name}, true},
		{[]string{Name, Builder}, true},
		{[]string{Name, GateBuilder}, true},
		{[]string{Name, Joiner}, true},
		{[]string{Name, Joined}, true},
		{[]string{Name, OurJoiner}, true},
		{[]string{Name, OurJoined}, true},
		{[]string{"/proc/self/fd/5", Joined}, false},
		{[]string{"/proc/self/fd/5", Name}, true},
		{[]string{"/proc/self/fd/5", Builder}, false},
		{[]string{"tether", Builder}, false},
		{nil, false},
		{[]string{""}, false},
		{[]string{"tether"}, false},
		{[]string{"tether", Name}, false},
		{[]string{Name, "x"}, false},
		{[]string{Name, Name}, false},
		{[]string{"/proc/self/fd/5", Name, "x"}, false},
		{[]string{"/proc/self/fd/5"}, false},
		{[]string{"proc/self/fd/5", Name}, false},
		{[]string{"/tmp/" + Name}, false},
		{[]string{"run", "--", Name}, false},
	} {
		if got := Wanted(c.args); got != c.want {
			t.Errorf("%q: got %v, want %v", c.args, got, c.want)
		}
	}
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Message{Kind: Kind(rapid.Byte().Draw(t, "kind")), Errno: rapid.Int32().Draw(t, "errno"), Status: rapid.Uint32().Draw(t, "status"),
			// A step is one of our own words; what happened may name any file.
			Step: strings.ReplaceAll(rapid.String().Draw(t, "step"), "\x00", ""),
			What: string(rapid.SliceOf(rapid.Byte()).Draw(t, "what"))}
		got, err := DecodeMessage(m.Encode())
		if err != nil || got != m {
			t.Fatalf("got %+v (%v), want %+v", got, err, m)
		}
	})
}

func TestDecodeMessageRefuses(t *testing.T) {
	whole := Message{Kind: Exited, Status: 7}.Encode()
	for n := range whole {
		if m, err := DecodeMessage(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes: got %+v, want an error", n, len(whole), m)
		}
	}
	if m, err := DecodeMessage([]byte("X12345678step without an end")); err == nil {
		t.Errorf("got %+v, want an error", m)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(Message{Kind: Failed, Step: "bind", Errno: 2, What: "/w\x00\xff"}.Encode())
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{'x'}, 9))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Encode(), b) {
			t.Errorf("%+v: got %q, want %q", m, m.Encode(), b)
		}
	})
}

func TestIdentityRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := Identity{rapid.Bool().Draw(t, "change"), rapid.Uint32().Draw(t, "uid"), rapid.Uint32().Draw(t, "gid")}
		raw := id.Encode()
		if got, err := DecodeIdentity(raw); err != nil || got != id {
			t.Fatalf("got %+v (%v), want %+v", got, err, id)
		}
	})
	good := Identity{Change: true, UID: 1, GID: 2}.Encode()
	for _, raw := range [][]byte{nil, good[:8], append(bytes.Clone(good), 0), append([]byte{2}, good[1:]...)} {
		if got, err := DecodeIdentity(raw); err == nil {
			t.Errorf("%v was read as %+v", raw, got)
		}
	}
}

func TestMessageIsCut(t *testing.T) {
	m := Message{Kind: Failed, Step: "bind", What: strings.Repeat("x", 2*MaxMessage)}
	raw := m.Encode()
	if got, err := DecodeMessage(raw); err != nil || len(raw) != MaxMessage || got.Step != "bind" {
		t.Errorf("got %d bytes, %v, want %d", len(raw), err, MaxMessage)
	}
}
