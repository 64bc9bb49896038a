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

func TestNameless(t *testing.T) {
	const table = "24 1 254:0 / / rw - ext4 /dev/vda rw\n" +
		"67 24 254:0 /x/h//deleted /etc/hosts rw - ext4 /dev/vda rw\n" +
		"68 24 254:0 /x/r /etc/resolv.conf rw - ext4 /dev/vda rw\n" +
		"69 24 254:0 /x/a\\040b//deleted /a\\040b rw - ext4 /dev/vda rw\n" +
		"71 70 254:0 /x/new /top rw - ext4 /dev/vda rw\n" +
		"70 24 254:0 /x/old//deleted /top rw - ext4 /dev/vda rw\n" +
		"72 24 254:0 /x/old /under rw - ext4 /dev/vda rw\n" +
		"73 72 254:0 /x/new//deleted /under rw - ext4 /dev/vda rw\n"
	for path, want := range map[string]bool{"/": false, "/etc/hosts": true, "/etc/resolv.conf": false, "/etc": false, "/a b": true, "/top": false, "/under": true} {
		if got := Nameless(table, path); got != want {
			t.Errorf("%s: got %v", path, got)
		}
	}
	for _, bad := range []string{"", "x", "1 2 3 4 /", "\n\n"} {
		if Nameless(bad, "/") {
			t.Errorf("%q", bad)
		}
	}
}

func FuzzNameless(f *testing.F) {
	f.Add("67 24 254:0 /x/h//deleted /etc/hosts rw - ext4 /dev/vda rw\n", "/etc/hosts")
	f.Add("1 2 3 4 5\n", "5")
	f.Fuzz(func(t *testing.T, table, path string) {
		if Nameless(table, path) && !strings.Contains(table, "//deleted") {
			t.Fatalf("%q, %q", table, path)
		}
	})
}

func TestAround(t *testing.T) {
	const top, ws, below, beside, spaced, odd = "1 0 8:1 / / rw - ext4 a rw\n", "2 1 8:1 /w /home/w rw - ext4 a rw\n",
		"3 2 0:5 / /home/w/a rw - tmpfs t rw\n", "4 1 0:6 / /home/wide rw - tmpfs t rw\n", "5 1 0:7 / /home/w/a\\040b rw - tmpfs t rw\n", "6 1\n"
	table := top + ws + below + beside + spaced + odd
	for path, want := range map[string]string{
		"/home/w":     top + ws + below + spaced + odd,
		"/home/w/a":   top + ws + below + odd,
		"/home/w/a b": top + ws + spaced + odd,
		"/home":       table,
		"/srv":        top + odd,
		"/":           table,
	} {
		if got := Around(table, path); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}
