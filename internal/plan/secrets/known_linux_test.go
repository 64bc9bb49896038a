package secrets

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/policy"
)

// watched is what two searches know, and the watch that keeps it true.
type watched struct {
	tree          *watch.Tree
	before, after *Known
}

func newWatched(t testing.TB) watched {
	t.Helper()
	tree, err := watch.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	return watched{tree, NewKnown(tree.Watch), NewKnown(tree.Watch)}
}

// catchUp tells what is known of what happened.
func (w watched) catchUp() error {
	for {
		_, err := w.tree.Next(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return err
		}
	}
	touched, all := w.tree.Touched()
	if all {
		return errors.New("events were lost")
	}
	w.before.Touch(touched)
	w.after.Touch(touched)
	return nil
}

// laterRules are rules like those of the look after a command.
func laterRules(since time.Time) Rules {
	return Rules{Key: "later", Since: since.UnixNano(), Path: func(rel []byte, _ Type) Mark {
		if policy.LaterKind(rel) != "" {
			return Locked
		}
		return 0
	}}
}

// The names that matter to a search, and some that do not.
var mattering = []string{".env", "a.pem", "id_rsa", ".ssh", ".git", "HEAD", "objects", "refs", "commondir", "src", "lib", "x.txt",
	".vscode", "Makefile", "package.json", "deep"}

// write writes text, as os.WriteFile does, but never waits for who would read a
// pipe of that name.
func write(path string, text []byte) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return
	}
	f.Write(text)
	f.Close()
}

// meddle does one thing to the tree at root. What cannot be done is left.
func meddle(rt *rapid.T, root string, open *[]*os.File) {
	dirs, files := []string{root}, []string{root}
	filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != root {
			if files = append(files, path); d.IsDir() {
				dirs = append(dirs, path)
			}
		}
		return nil
	})
	fresh := func() string {
		return filepath.Join(rapid.SampledFrom(dirs).Draw(rt, "dir"), rapid.SampledFrom(mattering).Draw(rt, "name"))
	}
	there := func() string { return rapid.SampledFrom(files).Draw(rt, "there") }
	text := []byte(rapid.SampledFrom([]string{certPEM, keyPEM, "x"}).Draw(rt, "text"))
	switch rapid.IntRange(0, 17).Draw(rt, "what") {
	case 0, 1, 2:
		os.MkdirAll(filepath.Join(fresh(), rapid.SampledFrom(mattering).Draw(rt, "below")), 0o755)
	case 3, 4:
		write(fresh(), text)
	case 5:
		os.Symlink(there(), fresh())
	case 6:
		os.Link(there(), fresh()) // also of a link
	case 7:
		os.Rename(there(), fresh())
	case 8:
		unix.Renameat2(unix.AT_FDCWD, there(), unix.AT_FDCWD, there(), unix.RENAME_EXCHANGE)
	case 9:
		// Away, changed where nobody watches, and back under the same or another name.
		from, away := there(), root+"-away"
		if from == root || os.Rename(from, away) != nil {
			return
		}
		write(filepath.Join(away, ".env"), text)
		os.Rename(away, rapid.SampledFrom([]string{from, fresh()}).Draw(rt, "back"))
		os.RemoveAll(away)
	case 10:
		if path := there(); path != root {
			os.RemoveAll(path)
		}
	case 11:
		// Removed and made anew at once, with something else in it.
		if path := there(); path != root && os.RemoveAll(path) == nil {
			os.MkdirAll(filepath.Join(path, rapid.SampledFrom(mattering).Draw(rt, "below")), 0o755)
		}
	case 12:
		os.Chmod(there(), os.FileMode(rapid.SampledFrom([]int{0o755, 0o644, 0o600, 0o000, 0o444, 0o111}).Draw(rt, "mode")))
	case 13:
		if f, err := os.OpenFile(there(), os.O_RDWR, 0); err == nil {
			*open = append(*open, f)
		}
	case 14:
		for _, f := range *open {
			f.WriteAt(text, 0) // through a descriptor that stays open
			f.Truncate(int64(len(text)))
		}
	case 15:
		for _, f := range *open {
			if b, err := unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
				if st, err := f.Stat(); err == nil && st.Size() > 0 {
					b[0] = '!'
				}
				unix.Munmap(b)
			}
		}
	case 16:
		if l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fresh()}); err == nil {
			l.SetUnlinkOnClose(false)
			l.Close()
		}
	case 17:
		path := fresh()
		unix.Mkfifo(path, 0o600)
		os.Lchown(path, os.Getuid(), os.Getgid())
	}
}

// A law: whatever is done to a tree, a search by what is known finds what a walk
// does, before a command and after it.
func TestKnownIsWhatAWalkFinds(t *testing.T) {
	rules, begin := builtinRules(t), time.Now()
	listed, all := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp("", "known")
		if err != nil {
			rt.Fatal(err)
		}
		defer func() {
			filepath.WalkDir(top, func(path string, d os.DirEntry, _ error) error {
				if d.IsDir() {
					os.Chmod(path, 0o700) // it is called before the folder is read
				}
				return nil
			})
			os.RemoveAll(top)
		}()
		root := filepath.Join(top, "w")
		plant(t, root, "a/b/c/x", "1", "a/.env", "S", "d/e/cert.pem", certPEM, "r.git/HEAD", "x", "r.git/objects/", "", "r.git/refs/l", "-> /x", "q/w/e/r/t/", "")
		w := newWatched(t)
		defer w.tree.Close()
		var open []*os.File
		defer func() {
			for _, f := range open {
				f.Close()
			}
		}()
		ctx, roots := context.Background(), []Root{{root}}
		for round := range rapid.IntRange(2, 12).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 3).Draw(rt, "changes") {
				meddle(rt, root, &open)
			}
			if err := w.catchUp(); err != nil {
				rt.Fatal(err)
			}
			want, wantErr := Find(ctx, roots, rules, nil)
			got, err := w.before.Find(ctx, roots, rules, nil)
			listed, all = listed+got.Stats.Listed, all+got.Stats.Dirs
			want.Stats.Listed = got.Stats.Listed
			if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
				rt.Fatalf("round %d, before: got %+v, %v\nwant %+v, %v", round, got, err, want, wantErr)
			}
			since := rapid.SampledFrom([]time.Time{begin, time.Now().Add(-tick)}).Draw(rt, "since")
			seen, wantErr := Walk(ctx, root, laterRules(since))
			mine, err := w.after.Walk(ctx, root, laterRules(since))
			if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(mine, seen) {
				rt.Fatalf("round %d, after: got %+v, %v\nwant %+v, %v", round, mine, err, seen, wantErr)
			}
		}
	})
	if listed*2 > all {
		t.Errorf("control: listed %d of %d folders, want less than half: nothing was known", listed, all)
	}
}
