package toolchain

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const passwd = `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
postgres:x:101:104::/var/lib/postgresql:/bin/bash
edge:x:999:999::/home/edge:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash
bob:x:1001:1001::/data/people/bob/:/usr/sbin/nologin
twin:x:1002:1002::/data/people/bob:/bin/sh
build:x:30001:30000::/var/empty:/sbin/nologin
svc:x:2000:2000::/opt:/bin/false
app:x:2001:2001::/usr/lib/app:/bin/false
runner:x:2002:2002::/opt/runner:/bin/bash
rel:x:2003:2003::home/rel:/bin/bash
short:x:2004:2004::/home/short
# old:x:2005:2005::/home/old:/bin/sh
+nis:x:2006:2006::/home/nis:/bin/sh
bad:x:-1:0::/home/bad:/bin/sh
huge:x:99999999999:0::/home/huge:/bin/sh
many:x:2007:2007::/home/many:/bin/sh:more:fields
`

func TestHomes(t *testing.T) {
	all := []string{"/data/people/bob", "/home/alice", "/home/many", "/home/short", "/opt/runner"}
	for _, c := range []struct {
		uid  int
		sudo string
		want []string
	}{
		{1000, "", all},
		{0, "", append([]string{"/root"}, all...)},
		{101, "", append([]string{"/var/lib/postgresql"}, all...)},
		{1, "", all}, // /usr/sbin is no home
		{5000, "root", append([]string{"/root"}, all...)},
		{5000, "ghost", all},
		{-1, "", all},
	} {
		got := Homes(passwd, c.uid, c.sudo)
		if want := slices.Sorted(slices.Values(c.want)); !slices.Equal(got, want) {
			t.Errorf("%d, %q: got %q, want %q", c.uid, c.sudo, got, want)
		}
	}
}

func TestHomesWithoutALastNewline(t *testing.T) {
	text := "x:x:999:1000:" + strings.Repeat("g", 200<<10) + ":/home/x:/bin/sh\nlast:x:1001:1001::/home/last:/bin/sh"
	if got := Homes(text, 0, ""); !slices.Equal(got, []string{"/home/last"}) {
		t.Errorf("got %q", got)
	}
}

func TestAccount(t *testing.T) {
	for _, c := range []struct {
		uid        uint32
		name, home string
	}{
		{0, "root", "/root"},
		{2004, "short", "/home/short"},
		{2005, "", ""}, // a comment
		{2006, "", ""}, // another database's
		{4_000_000_000, "", ""},
	} {
		if got, ok := Account(passwd, c.uid); got.Name != c.name || got.Home != c.home || ok != (c.name != "") {
			t.Errorf("%d: got %+v, %v, want %q, %q", c.uid, got, ok, c.name, c.home)
		}
	}
	if got, _ := Account("a:x:7:70::/h:/s\r\nb:x:7:71::/i:/s", 7); got != (Entry{"a", "/h", 70}) {
		t.Errorf("two of one uid: got %+v, want the first", got)
	}
	if got, ok := Account("a:x:7:none::/h:/s\n", 7); ok {
		t.Errorf("without a group: got %+v", got)
	}
}

func FuzzHomes(f *testing.F) {
	f.Add(passwd, 1000, "alice")
	f.Add("a:b:c", 0, "")
	f.Add("x:x:1000:1000::/:/bin/sh\r\n", 0, "x")
	f.Fuzz(func(t *testing.T, text string, uid int, sudo string) {
		got := Homes(text, uid, sudo)
		for i, h := range got {
			if !strings.HasPrefix(h, "/") || path.Clean(h) != h || h == "/" || ofSystem(h) || strings.ContainsAny(h, "\x00\n") {
				t.Errorf("%q is no home", h)
			}
			if i > 0 && got[i-1] >= h {
				t.Errorf("%q after %q", h, got[i-1])
			}
		}
		// More accounts never close fewer homes.
		more := Homes(text+"\nz:x:1000:1000::/home/z:/bin/sh\n", uid, sudo)
		for _, h := range got {
			if !slices.Contains(more, h) && strings.HasSuffix(text, "\n") {
				t.Errorf("%q went away", h)
			}
		}
	})
}
