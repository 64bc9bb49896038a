package host

import (
	"strings"
	"testing"
)

func TestParseProxy(t *testing.T) {
	for s, want := range map[string]string{"http://p.test:3128": "http://p.test:3128", "p.test:3128": "http://p.test:3128", "HTTP://P.test/": "http://p.test:80",
		"https://p.test": "https://p.test:443", "http://u:p%40w@[::1]:1": "http://[::1]:1", "http://u@10.0.0.1:65535": "http://10.0.0.1:65535",
		"http://u:a@b@p.test:1": "http://p.test:1"} {
		p, err := ParseProxy(s)
		if err != nil || p.String() != want {
			t.Errorf("%s: got %v, %v", s, p, err)
		}
	}
	if p, _ := ParseProxy("http://me:s%3Ae%40c@p.test:1"); p.User != "me" || p.Password != "s:e@c" {
		t.Errorf("credentials: %q %q", p.User, p.Password)
	}
	for _, s := range []string{"", "http://", "socks5://p.test:1", "http://p.test:0", "http://p.test:65536", "http://p.test:", "http://p.test/path", "http://p test",
		"http://me:SECRET%zz@p.test", "http://me:SECRET%0a@p.test", "http://me:SECRET@", "http://me:SECRET@p.test:99999", "http://me:SECRET@p.test/x", "ftp://me:SECRET@p"} {
		p, err := ParseProxy(s)
		if err == nil {
			t.Errorf("%s: got %v", s, p)
			continue
		}
		if e := err.(*Error); strings.Contains(e.What+e.Hint, "SECRET") || e.Hint == "" {
			t.Errorf("%s: %q %q", s, e.What, e.Hint)
		}
	}
}

// FuzzParseProxy: what is read prints back as itself, without its credentials.
func FuzzParseProxy(f *testing.F) {
	for _, s := range []string{"http://u:p@h:1", "https://[::1]", "h", "http://a@b@c:1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseProxy(s)
		if err != nil {
			return
		}
		again, err := ParseProxy(p.String())
		if p.User, p.Password = "", ""; err != nil || again != p {
			t.Fatalf("%q is read as %v, which is read as %v, %v", s, p, again, err)
		}
	})
}
