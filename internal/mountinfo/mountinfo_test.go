package mountinfo

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		"/plain": "/plain", `/a\040b`: "/a b", `/tab\011`: "/tab\t", `/line\012`: "/line\n", `/back\134040`: `/back\040`,
		`/hash\043`: "/hash#", `\377`: "\xff", `\400`: `\400`, `a\048`: `a\048`, `/cut\04`: `/cut\04`, `a\`: `a\`, `\\040`: `\ `, `\`: `\`, "": "",
	} {
		if got := Unescape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestUnescapeUndoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "path"))
		if got := Unescape(escape(s)); got != s {
			t.Fatalf("got %q, want %q", got, s)
		}
	})
}

// escape is what the kernel does to a path.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte(" \t\n\\#", s[i]) >= 0 {
			fmt.Fprintf(&b, `\%03o`, s[i])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzUnescape(f *testing.F) {
	f.Add(`/a\040b`)
	f.Add(`\`)
	f.Fuzz(func(t *testing.T, s string) {
		if got := Unescape(s); len(got) > len(s) || !strings.Contains(s, `\`) && got != s {
			t.Errorf("%q: got %q", s, got)
		}
	})
}
