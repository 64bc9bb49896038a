package plan

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const table = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 0:30 / /proc rw - proc proc rw
40 27 254:0 /home/u/p /opt/p rw,relatime - ext4 /dev/vda rw
41 27 254:0 /home/u/p/.env /opt/one\040file\134\011\012 rw shared:1 - ext4 /dev/vda rw
50 27 0:50 / /srv rw - tmpfs t rw
51 50 0:51 / /srv rw - tmpfs t rw
52 51 0:51 /sub /opt/s rw - tmpfs t rw
60 27 254:0 / /opt/all rw - ext4 /dev/vda rw
`

func TestMounts(t *testing.T) {
	mounts, err := parseMounts([]byte(table))
	if err != nil || len(mounts) != 8 {
		t.Fatalf("got %d mounts, %v; want 8", len(mounts), err)
	}
	if got, want := mounts[3].at, "/opt/one file\\\t\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for path, want := range map[string]place{
		"/":                  {"254:0", "/"},
		"/home/u/p/.env":     {"254:0", "/home/u/p/.env"},
		"/opt/p":             {"254:0", "/home/u/p"},
		"/opt/p/x":           {"254:0", "/home/u/p/x"},
		"/opt/pp":            {"254:0", "/opt/pp"},
		"/opt/all/home":      {"254:0", "/home"},
		"/opt/all":           {"254:0", "/"},
		"/srv/sub/x":         {"0:51", "/sub/x"}, // the mount on top, not the one below
		"/opt/s/x":           {"0:51", "/sub/x"},
		"/proc/self/environ": {"0:30", "/self/environ"},
	} {
		if got, ok := locate(mounts, path); !ok || got != want {
			t.Errorf("locate(%s): got %v, %v; want %v", path, got, ok, want)
		}
	}
	for path, want := range map[string][]string{
		"/home/u/p/.env":   {"/opt/p/.env", "/opt/one file\\\t\n", "/opt/all/home/u/p/.env"},
		"/home/u/p":        {"/opt/p", "/opt/all/home/u/p"},
		"/home/u":          {"/opt/all/home/u"},
		"/home/u/pp":       {"/opt/all/home/u/pp"},
		"/srv/sub/key.pem": {"/opt/s/key.pem"},
		"/srv/other":       nil,
		"/proc/1":          nil,
		"/opt/p/.env":      {"/home/u/p/.env", "/opt/one file\\\t\n", "/opt/all/home/u/p/.env"},
	} {
		if got := aliases(mounts, mounts, path); !slices.Equal(got, want) {
			t.Errorf("aliases(%s): got %q, want %q", path, got, want)
		}
	}
}

func TestMountsMalformed(t *testing.T) {
	for _, line := range []string{"x", "1 2 3", "a 1 8:1 / / rw", "1 b 8:1 / / rw", "1 1 81 / / rw", "1 1 8:1  / rw", "1 1 8:1 / x rw", "1 1 8:1 / / "} {
		_, err := parseMounts([]byte(table + line))
		if ok := line == "1 1 8:1 / / "; (err == nil) != ok {
			t.Errorf("%q: got %v", line, err)
		}
	}
}

// What a mount shows is found again by locate, and the way back is the same.
func TestMountsLaw(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "ab", "c d"})
	path := rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(name, 0, 4).Draw(t, "names"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		m := mount{id: 2, parent: 1, dev: "1:1", root: path.Draw(t, "root"), at: path.Draw(t, "at")}
		mounts := []mount{{id: 1, dev: "0:1", root: "/", at: "/"}, m}
		p := path.Draw(t, "path")
		pl, ok := locate(mounts, p)
		if !ok {
			t.Fatalf("%s is nowhere", p)
		}
		if inside(p, m.at) != (pl.dev == m.dev) {
			t.Fatalf("%s lies at %v with %v", p, pl, m)
		}
		if pl.dev != m.dev {
			return
		}
		if back, ok := m.shows(pl); !ok || back != p {
			t.Fatalf("%v shows %v at %q (%v), want %q", m, pl, back, ok, p)
		}
	})
}

func FuzzParseMounts(f *testing.F) {
	f.Add([]byte(table))
	f.Add([]byte("1 1 8:1 \\ \\0 rw"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		mounts, err := parseMounts(raw)
		if err != nil {
			return
		}
		for _, m := range mounts {
			if m.at == "" || m.at[0] != '/' || m.root == "" {
				t.Fatalf("took %q", raw)
			}
			aliases(mounts, mounts, m.at)
			aliases(mounts, mounts, "/a/b")
		}
	})
}
