package factlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

var testKey = bytes.Repeat([]byte{7}, keyLen)

// sample makes a log of n records after its header, in memory, and the MACs of
// all of them.
func sample(t testing.TB, id string, n int) (log []byte, macs []string) {
	t.Helper()
	c := newChain(testKey, id)
	put := func(payload []byte) {
		line := c.line(payload)
		if _, ok := c.take(line); !ok {
			t.Fatal("our own record does not verify")
		}
		log, macs = append(log, line...), append(macs, c.last)
	}
	b, _ := json.Marshal(header{Log: format, Session: id, Salt: "00"})
	put(b)
	for i := range n {
		facts := []fact.Fact{{Kind: fact.Note, What: fmt.Sprint("note ", i)}, {Kind: fact.Intent, ID: fmt.Sprint(i)}}
		payload, _, err := encode(facts[:1+i%2], time.Unix(int64(i), 0))
		if err != nil {
			t.Fatal(err)
		}
		put(payload)
	}
	return log, macs
}

// readAll returns the MACs of what can be read.
func readAll(id string, log []byte) (macs []string, torn int64, err error) {
	c := newChain(testKey, id)
	r := newReader(&c, bytes.NewReader(log))
	for {
		rec, err := r.next()
		if err == io.EOF {
			return macs, r.torn, nil
		}
		if err != nil {
			return macs, 0, err
		}
		macs = append(macs, rec.MAC)
	}
}

// isPrefix fails the test unless got begins want.
func isPrefix(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		t.Fatalf("%s: got %d records that are no prefix of the %d written", what, len(got), len(want))
	}
}

func TestEveryByteCounts(t *testing.T) {
	log, macs := sample(t, "s", 4)
	if got, torn, err := readAll("s", log); err != nil || torn != 0 || !slices.Equal(got, macs) {
		t.Fatalf("control: got %d records, %d torn, %v", len(got), torn, err)
	}
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	for i := range log {
		for _, c := range []byte{log[i] ^ 1, log[i] ^ 0x20, 0, '\n', ' '} {
			if c == log[i] {
				continue
			}
			changed := slices.Clone(log)
			changed[i] = c
			got, torn, err := readAll("s", changed)
			isPrefix(t, "a byte changed", got, macs)
			if len(got) == len(macs) {
				t.Fatalf("byte %d: %q for %q was not seen", i, c, log[i])
			}
			if err == nil && (i < last || torn == 0) {
				t.Fatalf("byte %d: %q for %q is no torn end, and no error", i, c, log[i])
			}
			if err != nil && fault.CodeOf(err) != fault.StoreCorrupt {
				t.Fatalf("byte %d: got %v, want STORE_CORRUPT", i, err)
			}
		}
	}
	for n := range len(log) + 1 {
		got, torn, err := readAll("s", log[:n])
		isPrefix(t, "cut", got, macs)
		complete := bytes.Count(log[:n], []byte("\n"))
		if err != nil || len(got) != complete || (torn == 0) != (n == 0 || log[n-1] == '\n') {
			t.Fatalf("cut at %d: got %d records, %d torn, %v, want %d", n, len(got), torn, err, complete)
		}
	}
}

func TestLinesCannotMove(t *testing.T) {
	log, macs := sample(t, "s", 4)
	other, _ := sample(t, "t", 4)
	lines, others := bytes.SplitAfter(log, []byte("\n")), bytes.SplitAfter(other, []byte("\n"))
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	zeros := make([]byte, 40)
	for what, bad := range map[string][]byte{
		"removed":                    join(lines[0], lines[1], lines[3]),
		"without header":             join(lines[1], lines[2]),
		"swapped":                    join(lines[0], lines[2], lines[1]),
		"repeated":                   join(lines[0], lines[1], lines[1]),
		"from another session":       join(lines[0], others[1]),
		"another session altogether": other,
		"a second spelling":          join(lines[0], []byte("0"), lines[1]),
		"zeros before the last":      join(lines[0], zeros, []byte("\n"), lines[1]),
		"an empty line":              join(lines[0], []byte("\n")),
		"a zero for a line's end":    join(lines[0], lines[1][:len(lines[1])-1], zeros, lines[2]),
		"too long":                   join(lines[0], bytes.Repeat([]byte("x"), maxLine+1)),
	} {
		got, _, err := readAll("s", bad)
		isPrefix(t, what, got, macs)
		if fault.CodeOf(err) != fault.StoreCorrupt || !strings.Contains(err.Error(), fmt.Sprintf("record %d ", len(got))) {
			t.Errorf("%s: got %v, want STORE_CORRUPT for record %d", what, err, len(got))
		}
	}
	for what, torn := range map[string][]byte{
		"zeros":                 join(lines[0], zeros),
		"zeros with an end":     join(lines[0], zeros, []byte("\n")),
		"half a line":           join(lines[0], lines[1][:30]),
		"a beginning of zeros":  join(lines[0], zeros, lines[1][40:]),
		"an unfinished header":  lines[0][:20],
		"nothing but its zeros": zeros,
	} {
		got, n, err := readAll("s", torn)
		isPrefix(t, what, got, macs)
		if err != nil || n == 0 {
			t.Errorf("%s: got %v, %d torn, want a torn end", what, err, n)
		}
	}
	liar := newChain(testKey, "t")
	if got, _, err := readAll("s", liar.line([]byte(`{"log":1,"session":"s","salt":""}`))); fault.CodeOf(err) != fault.StoreCorrupt {
		t.Errorf("a header made for another session: got %v, %v, want STORE_CORRUPT", got, err)
	}
	wrong := newChain(bytes.Repeat([]byte{8}, keyLen), "s")
	if _, err := newReader(&wrong, bytes.NewReader(log)).next(); fault.CodeOf(err) != fault.StoreCorrupt {
		t.Errorf("another key: got %v, want STORE_CORRUPT", err)
	}
}

func TestLaterVersion(t *testing.T) {
	c := newChain(testKey, "s")
	line := c.line([]byte(`{"log":2,"session":"s","salt":"","more":1}`))
	if _, _, err := readAll("s", line); fault.CodeOf(err) != fault.StoreUnavailable || fault.HintOf(err) == "" {
		t.Errorf("got %v, want STORE_UNAVAILABLE with a hint", err)
	}
	log, _ := sample(t, "s", 1)
	_, _ = c.take(bytes.SplitAfter(log, []byte("\n"))[0])
	future := c.line([]byte(`{"kind":"teleport","where":[1]}`))
	if got, _, err := readAll("s", slices.Concat(bytes.SplitAfter(log, []byte("\n"))[0], future)); err != nil || len(got) != 2 {
		t.Errorf("got %d records, %v, want a fact of the future to be read", len(got), err)
	}
}

func TestHeads(t *testing.T) {
	mac := strings.Repeat("a", macLen)
	if h, err := parseHead("s-1:7:" + mac); err != nil || h != (head{"s-1", 7, mac}) {
		t.Errorf("got %v, %v", h, err)
	}
	for _, s := range []string{"", "s", "s:1", "s:01:" + mac, "s:-1:" + mac, "S:1:" + mac, "s:1:" + mac + "a", "../s:1:" + mac} {
		if h, err := parseHead(s); fault.CodeOf(err) != fault.UsageInvalid {
			t.Errorf("%q: got %v, %v, want USAGE_INVALID", s, h, err)
		}
	}
	for id, want := range map[string]bool{"a": true, "0-a": true, "": false, "-a": false, "A": false, "a.b": false, "a/b": false, "..": false,
		strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a\n": false, "é": false} {
		if got := ValidID(id); got != want {
			t.Errorf("ValidID(%q): got %v, want %v", id, got, want)
		}
	}
}

// FuzzReader: whatever lies in the file, what is read is a prefix of what was
// written, and neither a panic nor another error.
func FuzzReader(f *testing.F) {
	log, macs := sample(f, "s", 6)
	f.Add(log, 0, 0, []byte(nil))
	f.Add(log[:10], 10, 20, []byte("\x00\x00\n"))
	f.Add([]byte("0 "), 100, 3, log[90:200])
	f.Fuzz(func(t *testing.T, raw []byte, at, drop int, put []byte) {
		check := func(b []byte) {
			got, _, err := readAll("s", b)
			isPrefix(t, "fuzz", got, macs)
			if err != nil && fault.CodeOf(err) != fault.StoreCorrupt {
				t.Fatalf("got %v, want STORE_CORRUPT", err)
			}
			if len(got) == len(macs) && !bytes.HasPrefix(b, log) {
				t.Fatal("a second spelling of the log was read")
			}
		}
		check(raw)
		at = min(max(at, 0), len(log))
		drop = min(max(drop, 0), len(log)-at)
		check(slices.Concat(log[:at], put, log[at+drop:]))
	})
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("input/output error") }

func TestReadError(t *testing.T) {
	c := newChain(testKey, "s")
	if _, err := newReader(&c, failing{}).next(); fault.CodeOf(err) != fault.StoreUnavailable {
		t.Errorf("got %v, want STORE_UNAVAILABLE", err)
	}
}
