package seatbelt

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// run starts what arguments say, without a profile and by bash, which knows every
// limit, and returns what was said before the command began and what it wrote.
func run(t *testing.T, l enforce.Limits, argv ...string) (said, out string, err error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	args := arguments("", l, argv)
	cmd := exec.Command("/bin/bash", args[1:]...)
	cmd.ExtraFiles = []*os.File{w}
	b, err := cmd.Output()
	w.Close()
	word, _ := io.ReadAll(r)
	return string(word), string(b), err
}

// TestInside runs what stands between the profile and the command: words stay
// whole, the limits hold, the descriptor is gone, and what cannot be set stops
// it before a word is said.
func TestInside(t *testing.T) {
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("there is no bash")
	}
	said, out, err := run(t, enforce.Limits{FileBytes: 1024, OpenFiles: 64, CPUSeconds: 9}, "/bin/bash", "-c",
		`printf '%s|' "$@"; ulimit -f; ulimit -n; ulimit -t; ulimit -c; [ -e /proc/self/fd/3 ] && echo open`, "x", "a b", "", "$(id)", "-n", "'")
	if want := "a b||$(id)|-n|'|2\n64\n9\n0\n"; err == nil || said != "r" || out != want {
		// The last test of the command fails: nothing is open.
		t.Errorf("said %q, out %q, err %v; want r, %q and an exit status of 1", said, out, err, want)
	}
	if said, out, err := run(t, enforce.Limits{OpenFiles: 1 << 40}, "/bin/echo", "ran"); err == nil || said != "" || out != "" {
		t.Errorf("a limit that cannot be set: said %q, out %q, err %v; want nothing and an error", said, out, err)
	}
	args := arguments("/p/x.sb", enforce.Limits{}, []string{"/bin/true", "-f"})
	if want := []string{Program, "-f", "/p/x.sb", "--", "/bin/sh", "-c", inside, "sh", "-", "-", "-", "-", "/bin/true", "-f"}; !slices.Equal(args, want) {
		t.Errorf("got %q, want %q", args, want)
	}
}

// TestWatch ends a session when its input ends without a word, and leaves it
// alone after one.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		word string
		dies bool
	}{{"", true}, {"over\n", false}} {
		victim := exec.Command("/bin/sleep", "60")
		victim.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		w := exec.Command("/bin/sh", "-c", watch, "sh", strconv.Itoa(victim.Process.Pid))
		w.Stdin = strings.NewReader(c.word)
		_ = w.Run()
		gone := make(chan error, 1)
		go func() { gone <- victim.Wait() }()
		select {
		case <-gone:
			if !c.dies {
				t.Error("it was ended in spite of a word")
			}
			continue
		case <-time.After(200 * time.Millisecond):
		}
		if c.dies {
			t.Error("it was not ended")
		}
		_ = victim.Process.Kill()
		<-gone
	}
}

func TestLookup(t *testing.T) {
	files := map[string]error{"/b/x": nil, "/a/x": syscall.EACCES, "/w/s/x": nil, "/w/rel/y": nil}
	is := func(path string) error {
		err, ok := files[path]
		if !ok {
			return syscall.ENOENT
		}
		return err
	}
	for _, c := range []struct {
		name, env, want string
		err             error
	}{
		{"x", "PATH=/a:/b", "/b/x", nil}, {"x", "PATH=/a:/c", "", syscall.EACCES}, {"z", "PATH=/a:/b", "", fs.ErrNotExist},
		{"./s/x", "PATH=/a", "/w/s/x", nil}, {"/b/x", "", "/b/x", nil}, {"y", "PATH=/a:rel", "/w/rel/y", nil}, {"", "PATH=/a", "", fs.ErrNotExist},
	} {
		got, err := lookup(c.name, "/w", []string{"HOME=/", c.env}, is)
		if got != c.want && err == nil || !errors.Is(err, c.err) {
			t.Errorf("lookup(%q, %s): got %q (%v), want %q (%v)", c.name, c.env, got, err, c.want, c.err)
		}
	}
}
