package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// until reads events until one is wanted, or fails.
func until(t *testing.T, tree *Tree, want func(Event) bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; {
		events, err := tree.Next(end)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if want(e) {
				return
			}
		}
	}
}

func TestTree(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.TempDir(), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tree, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tree.Add(dir, nil), tree.Add(filepath.Join(dir, "absent"), nil)); err != nil {
		t.Fatal(err)
	}
	if tree.Len() != 3 {
		t.Errorf("%d folders are watched, want 3", tree.Len())
	}
	if _, err := tree.Next(time.Now().Add(10 * time.Millisecond)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing happened, and: %v", err)
	}
	write := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(deep, "f"))
	// What happened already is told at once, and then that this was all.
	for _, want := range []bool{true, false} {
		events, err := tree.Next(time.Now())
		if told := err == nil && events[0] == (Event{Dir: deep, Name: "f", New: true}); told != want || !want && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("without waiting: %v, %v", events, err)
		}
	}
	// A folder that is moved is told by its new name once it is added again.
	moved := filepath.Join(dir, "c")
	if err := os.Rename(filepath.Join(dir, "a"), moved); err != nil {
		t.Fatal(err)
	}
	until(t, tree, func(e Event) bool {
		return e == Event{Dir: dir, Name: "c", Folder: true, New: true, From: filepath.Join(dir, "a")}
	})
	if err := tree.Add(moved, nil); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(moved, "b", "g"))
	until(t, tree, func(e Event) bool { return e.Dir == filepath.Join(moved, "b") && e.Name == "g" })
	if err := tree.Add(dir, func() bool { return true }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("stopped: %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		tree.Close()
	}()
	for {
		if _, err := tree.Next(time.Time{}); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
			return
		}
	}
}

// Folders beyond the limit are told of, and the others stay watched.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, n), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	tree.most = 3
	if err := tree.Add(dir, nil); !errors.Is(err, ErrFull) || tree.Len() != 3 {
		t.Errorf("%d are watched: %v", tree.Len(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, tree, func(e Event) bool { return e.Dir == dir && e.Name == "f" })
}

// What lies deeper than is followed is told of, and what lies beside it is watched.
func TestDeep(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.MkdirAll(strings.Repeat("d/", deepest+10), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("z", 0o755); err != nil {
		t.Fatal(err)
	}
	tree, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Add(dir, nil); !errors.Is(err, ErrDeep) || !Partly(err) || tree.Len() != deepest+2 {
		t.Errorf("%d are watched: %v", tree.Len(), err)
	}
	if err := root.WriteFile("z/f", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, tree, func(e Event) bool { return e.Dir == filepath.Join(dir, "z") && e.Name == "f" })
	// A folder whose path is longer than the kernel takes one; no error by which
	// whoever makes it could end a watch.
	if err := tree.Add(dir+strings.Repeat("/d", 4096), nil); !errors.Is(err, ErrDeep) {
		t.Errorf("too long a path: %v", err)
	}
}

// What the queue cannot hold is told as lost.
func TestOverflow(t *testing.T) {
	dir := t.TempDir()
	tree, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := tree.Add(dir, nil); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, c := range raw {
		if c >= '0' && c <= '9' {
			most = 10*most + int(c-'0')
		}
	}
	if most > 1<<17 {
		t.Skip("the queue is too long to fill")
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.WriteFile(a, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range most/2 + 2 {
		if err := os.Rename(a, b); err != nil {
			t.Fatal(err)
		}
		a, b = b, a
	}
	until(t, tree, func(e Event) bool { return e.Lost })
}

// Touched names a folder by the same number wherever it lies, and tells of what
// happened to it and in it.
func TestTouched(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := errors.Join(os.Mkdir(in, 0o755), os.WriteFile(filepath.Join(in, "f"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	tree, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	number := func(path string) int32 {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n, err := tree.Watch(int(f.Fd()), path)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	outer, inner := number(dir), number(in)
	moved := filepath.Join(dir, "moved")
	at := in
	name := func(s string) string { return filepath.Join(at, s) }
	for _, c := range []struct {
		what        string
		do          func() error
		outer, here bool
	}{
		{"nothing", func() error { return nil }, false, false},
		{"a file is written", func() error { return os.WriteFile(name("f"), []byte("x"), 0o644) }, false, false},
		{"a file is made", func() error { return os.WriteFile(name("g"), nil, 0o644) }, false, true},
		{"a file is linked", func() error { return os.Link(name("f"), name("h")) }, false, true},
		{"a file is removed", func() error { return os.Remove(name("g")) }, false, true},
		{"permissions of a file", func() error { return os.Chmod(name("f"), 0o600) }, false, true},
		{"permissions of the folder", func() error { return os.Chmod(at, 0o700) }, true, true},
		{"the folder is moved", func() error { at = moved; return os.Rename(in, moved) }, true, false},
		{"something in it afterwards", func() error { return os.Mkdir(name("d"), 0o755) }, false, true},
		{"it is watched again", func() error {
			if n := number(moved); n != inner {
				return errors.New("by another number")
			}
			return nil
		}, false, false},
		{"it is removed", func() error { return os.RemoveAll(moved) }, true, true},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		for {
			if _, err := tree.Next(time.Now()); err != nil {
				break
			}
		}
		got, all := tree.Touched()
		if all || got[outer] != c.outer || got[inner] != c.here {
			t.Errorf("%s: outer %v, the folder %v, all %v", c.what, got[outer], got[inner], all)
		}
	}
	if again, all := tree.Touched(); len(again) > 0 || all {
		t.Errorf("told twice: %v, %v", again, all)
	}
}

// A blind tree waits, wakes and closes like others, and watches nothing.
func TestBlind(t *testing.T) {
	tree, err := Blind()
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Add(t.TempDir(), nil); !errors.Is(err, ErrFull) || !Partly(err) || tree.Len() != 0 {
		t.Errorf("Add: %v, %d folders", err, tree.Len())
	}
	for _, at := range []time.Time{time.Now(), time.Now().Add(10 * time.Millisecond)} {
		if _, err := tree.Next(at); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nothing happens, and: %v", err)
		}
	}
	time.AfterFunc(10*time.Millisecond, tree.Wake)
	if _, err := tree.Next(time.Time{}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("woken: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, tree.Close)
	if _, err := tree.Next(time.Time{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
