package tool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

func TestMain(m *testing.M) {
	tether.Inner()
	// Nothing of the tests touches the real home.
	dir, err := os.MkdirTemp("", "tether-tool-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	}
	if err == nil {
		err = os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

const secret = "S3NTINEL-tool"

// tools returns the tools of a session in a fresh workspace that holds a
// secret and a note, and a folder outside of it.
func tools(t testing.TB, change func(*policy.Policy)) (tt *tool.Tools, w, outside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, outside = filepath.Join(top, "w"), filepath.Join(top, "outside")
	for _, d := range []string{top, w, outside, filepath.Join(w, "sub")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".env": "TOKEN=" + secret + "\n", "note.txt": "one\ntwo\nthree\n"} {
		if err := os.WriteFile(filepath.Join(w, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(w, "link-to-out")); err != nil {
		t.Fatal(err)
	}
	pol := policy.Default(w)
	pol.Network.Mode = policy.Offline
	change(&pol)
	s, err := tether.Open(context.Background(), tether.Options{Policy: pol})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return tool.New(s), w, outside
}

func plain(*policy.Policy) {}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
