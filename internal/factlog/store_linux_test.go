package factlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func session(t testing.TB, s *Store, id string) *Session {
	t.Helper()
	l, err := s.Session(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func note(what string) fact.Fact { return fact.Fact{Kind: fact.Note, What: what} }

// wants fails the test unless err has the code.
func wants(t testing.TB, what string, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("%s: got %v, want %q", what, err, code)
	}
}

func whats(t testing.TB, s *Store, id string) (list []string) {
	t.Helper()
	for rec, err := range s.Read(id) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range rec.Facts {
			list = append(list, f.What)
		}
	}
	return list
}

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := open(t, dir)
	l := session(t, s, "one")
	err := l.Append(
		fact.Fact{Kind: fact.Start, World: "local", Workspace: "/w"},
		fact.Fact{Kind: fact.PresetSet, Preset: fact.PresetReadOnly, Origin: fact.Settings, By: fact.System})
	wants(t, "a first record", err, "")
	wants(t, "a second", l.Append(fact.Fact{Kind: fact.Intent, ID: "1", What: "ls \xff"}), "")
	wants(t, "nothing", l.Append(), "")

	rep, err := s.Verify("one")
	if err != nil || rep.Records != 2 || rep.Facts != 3 || rep.Torn != 0 || rep.Head != l.Head() {
		t.Errorf("got %+v, %v, want 2 records, 3 facts and the head %s", rep, err, l.Head())
	}
	again := session(t, open(t, dir), "one")
	live, err1 := l.State()
	replay, err2 := again.State()
	if err1 != nil || err2 != nil || !reflect.DeepEqual(live, replay) || live.World != "local" || len(live.Running) != 1 {
		t.Errorf("got %+v, %v from a replay, want %+v, %v", replay, err2, live, err1)
	}
	if live.Running[0].What != `ls \xff` || live.Running[0].Time.IsZero() {
		t.Errorf("got %+v, want it escaped and with a time", live.Running[0])
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].ID != "one" || list[0].Bytes == 0 {
		t.Errorf("got %v, %v, want the session one", list, err)
	}
	for path, want := range map[string]fs.FileMode{"": 0o700, "sessions": 0o700, "log.key": 0o600, "sessions/one.log": 0o600} {
		if st, err := os.Stat(filepath.Join(dir, path)); err != nil || st.Mode().Perm() != want {
			t.Errorf("%q: got %v, %v, want mode %v", path, st, err, want)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Errorf("got %v, want nothing left besides the key and the sessions", names)
	}

	wants(t, "a removal", s.Remove("one"), "")
	wants(t, "a record for what is removed", l.Append(note("x")), fault.StoreUnavailable)
	wants(t, "what is not there", s.Remove("one"), fault.StoreUnavailable)
	if _, err := s.Verify("one"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	_, err = s.VerifyAgainst(rep.Head)
	wants(t, "the head of what is removed", err, fault.StoreCorrupt)
	anew := session(t, s, "one")
	for range 3 {
		wants(t, "a record in a new one", anew.Append(note("x")), "")
	}
	_, err = s.VerifyAgainst(rep.Head)
	wants(t, "the head of another session with the name", err, fault.StoreCorrupt)
	_, err = s.Session("../one")
	wants(t, "a bad name", err, fault.UsageInvalid)
}

func TestTruncationShowsAgainstAHead(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	s := open(t, dir)
	l := session(t, s, "a")
	for i := range 3 {
		wants(t, "a record", l.Append(note(fmt.Sprint(i))), "")
	}
	first, err := s.Head("a")
	wants(t, "a head", err, "")
	wants(t, "one more", l.Append(note("3")), "")
	rep, err := s.VerifyAgainst(first)
	if err != nil || rep.Records != 4 {
		t.Fatalf("control: got %+v, %v, want that a log may grow", rep, err)
	}
	last := l.Head()
	path := filepath.Join(dir, "sessions/a.log")
	log, _ := os.ReadFile(path)
	lines := strings.SplitAfter(string(log), "\n")
	os.WriteFile(path, []byte(strings.Join(lines[:4], "")), 0o600)
	if _, err := s.Verify("a"); err != nil {
		t.Fatalf("got %v; a cut between records shows only against a head", err)
	}
	_, err = s.VerifyAgainst(first)
	wants(t, "a head before the cut", err, "")
	_, err = s.VerifyAgainst(last)
	wants(t, "a head behind the cut", err, fault.StoreCorrupt)
	wants(t, "a record behind a cut", l.Append(note("x")), fault.StoreCorrupt)

	os.WriteFile(path, []byte(strings.Join(lines[:2], "")+strings.Join(lines[3:], "")), 0o600)
	_, err = s.Verify("a")
	wants(t, "a missing record", err, fault.StoreCorrupt)
	_, err = s.Session("a")
	wants(t, "opening it", err, fault.StoreCorrupt)
	wants(t, "removing it", s.Remove("a"), "")
}

func TestLimits(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s"))
	l := session(t, s, "a")
	wants(t, "the longest text", l.Append(note(strings.Repeat("x", fact.MaxText))), "")
	wants(t, "a longer one", l.Append(note(strings.Repeat("x", fact.MaxText+1))), fault.Internal)
	var many []fact.Fact
	for range MaxRecord/fact.MaxText + 1 {
		many = append(many, note(strings.Repeat("x", fact.MaxText)))
	}
	wants(t, "too much at once", l.Append(many...), fault.Internal)
	wants(t, "as much as goes", l.Append(many[:len(many)-2]...), "")
	wants(t, "a time that no calendar has", l.Append(fact.Fact{Kind: fact.Note, Time: time.Unix(1<<60, 0)}), fault.Internal)
	if rep, err := s.Verify("a"); err != nil || rep.Records != 2 {
		t.Errorf("got %+v, %v, want the 2 records that fit", rep, err)
	}
}

func TestUpdateDecidesUnderTheLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	a, b := session(t, open(t, dir), "x"), session(t, open(t, dir), "x")
	wants(t, "a turn", a.Append(fact.Fact{Kind: fact.TurnStart, ID: "t"}), "")
	err := b.Update(func(s fact.State) ([]fact.Fact, error) {
		return s.EnterMode(2, fact.Change{By: fact.Person}, fact.Default{Preset: fact.PresetFullAccess})
	})
	wants(t, "narrowing in a turn that another writer began", err, fault.SandboxNarrowDenied)
	s := b.store
	s.patience = 50 * time.Millisecond
	err = a.Update(func(fact.State) ([]fact.Fact, error) {
		wants(t, "a record while somebody decides", b.Append(note("x")), fault.StoreUnavailable)
		return nil, errors.New("no")
	})
	if err == nil || err.Error() != "no" {
		t.Errorf("got %v, want the error of decide", err)
	}
	wants(t, "a record afterwards", b.Append(note("x")), "")
}

func TestFailedWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	s := open(t, dir)
	l := session(t, s, "a")
	wants(t, "a record", l.Append(note("1")), "")
	before, _ := os.ReadFile(filepath.Join(dir, "sessions/a.log"))
	for room := range 90 {
		s.write = func(fd int, b []byte) (int, error) {
			if room == 0 {
				return 0, unix.ENOSPC
			}
			n, err := unix.Write(fd, b[:min(room, len(b))])
			room -= n
			return n, err
		}
		err := l.Append(note("2"))
		wants(t, "a full disk", err, fault.StoreUnavailable)
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("got %v, want the cause", err)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "sessions/a.log")); string(after) != string(before) {
			t.Fatalf("got %d bytes after a failed record, want %d", len(after), len(before))
		}
	}
	s.write = unix.Write
	wants(t, "space again", l.Append(note("2")), "")
	s.sync = func(int) error { return unix.EIO }
	wants(t, "a failing disk", l.Append(note("3")), fault.StoreUnavailable)
	s.sync = unix.Fdatasync
	wants(t, "the same handle", l.Append(note("3")), fault.StoreUnavailable)
	wants(t, "a new one", session(t, s, "a").Append(note("3")), "")
	if got := whats(t, s, "a"); !reflect.DeepEqual(got, []string{"1", "2", "3"}) {
		t.Errorf("got %v, want 1 2 3", got)
	}
}

// TestFullDisk is TestFailedWrites with a real one.
func TestFullDisk(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_NOSUID, "size=64k,mode=700"); err != nil {
		need.Missing(t, "mount", err.Error())
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	s := open(t, dir)
	l := session(t, s, "a")
	n := 0
	var err error
	for ; err == nil && n < 100; n++ {
		err = l.Append(note(strings.Repeat("x", 5000)))
	}
	wants(t, "a full disk", err, fault.StoreUnavailable)
	if !errors.Is(err, unix.ENOSPC) || n < 3 {
		t.Errorf("got %v after %d records, want a full disk", err, n)
	}
	if rep, err := s.Verify("a"); err != nil || rep.Records != uint64(n-1) || rep.Torn != 0 {
		t.Errorf("got %+v, %v, want %d records and nothing torn", rep, err, n-1)
	}
	if err := unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		// files open for writing keep it busy: close them first
		l.Close()
		if err := unix.Mount("none", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir)
	if rep, err := s.Verify("a"); err != nil || rep.Records == 0 {
		t.Errorf("read-only: got %+v, %v, want that it can be read", rep, err)
	}
	_, err = s.Session("a")
	wants(t, "writing on a read-only disk", err, fault.StoreUnavailable)
	_, err = s.Session("b")
	wants(t, "a new session on a read-only disk", err, fault.StoreUnavailable)
}

func TestRefusedFolders(t *testing.T) {
	good := func(t *testing.T) string {
		dir := filepath.Join(t.TempDir(), "s")
		s := open(t, dir)
		wants(t, "control", session(t, s, "a").Append(note("x")), "")
		return dir
	}
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		want  fault.Code
	}{
		{"nothing wrong", func(string) error { return nil }, ""},
		{"others can read the top", func(d string) error { return os.Chmod(d, 0o755) }, ""},
		{"a group can write the top", func(d string) error { return os.Chmod(d, 0o770) }, fault.StoreUnavailable},
		{"others can write the top", func(d string) error { return os.Chmod(d, 0o702) }, fault.StoreUnavailable},
		{"others can read the sessions", func(d string) error { return os.Chmod(d+"/sessions", 0o755) }, fault.StoreUnavailable},
		{"a linked top", func(d string) error {
			return errors.Join(os.Rename(d, d+"2"), os.Symlink(d+"2", d))
		}, fault.StoreUnavailable},
		{"linked sessions", func(d string) error {
			return errors.Join(os.Rename(d+"/sessions", d+"/s2"), os.Symlink("s2", d+"/sessions"))
		}, fault.StoreUnavailable},
		{"others can read the key", func(d string) error { return os.Chmod(d+"/log.key", 0o644) }, fault.StoreUnavailable},
		{"a linked key", func(d string) error {
			return errors.Join(os.Rename(d+"/log.key", d+"/k"), os.Symlink("k", d+"/log.key"))
		}, fault.StoreUnavailable},
		{"no key", func(d string) error { return os.Remove(d + "/log.key") }, fault.StoreCorrupt},
		{"a short key", func(d string) error { return os.Truncate(d+"/log.key", 31) }, fault.StoreCorrupt},
		{"a long key", func(d string) error { return os.Truncate(d+"/log.key", 33) }, fault.StoreCorrupt},
		{"another key", func(d string) error { return os.WriteFile(d+"/log.key", make([]byte, 32), 0o600) }, fault.StoreCorrupt},
		{"a linked log", func(d string) error {
			return errors.Join(os.Rename(d+"/sessions/a.log", d+"/l"), os.Symlink("../l", d+"/sessions/a.log"))
		}, fault.StoreUnavailable},
		{"a log with two names", func(d string) error { return os.Link(d+"/sessions/a.log", d+"/l") }, fault.StoreUnavailable},
		{"others can read the log", func(d string) error { return os.Chmod(d+"/sessions/a.log", 0o640) }, fault.StoreUnavailable},
		{"a pipe for a log", func(d string) error {
			return errors.Join(os.Remove(d+"/sessions/a.log"), unix.Mkfifo(d+"/sessions/a.log", 0o600))
		}, fault.StoreUnavailable},
		{"a folder for a log", func(d string) error {
			return errors.Join(os.Remove(d+"/sessions/a.log"), os.Mkdir(d+"/sessions/a.log", 0o700))
		}, fault.StoreUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := good(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			for _, spelled := range []string{dir, dir + "/"} {
				s, err := Open(spelled)
				if err == nil {
					var l *Session
					if l, err = s.Session("a"); err == nil {
						err = l.Append(note("y"))
						l.Close()
					}
					s.Close()
				}
				wants(t, spelled, err, c.want)
			}
		})
	}
}

func TestOtherOwner(t *testing.T) {
	need.Root(t)
	dir := filepath.Join(t.TempDir(), "s")
	open(t, dir)
	if err := os.Chown(dir, 12345, -1); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	wants(t, "somebody else's folder", err, fault.StoreUnavailable)
}

func TestNoPermission(t *testing.T) {
	need.Ordinary(t)
	dir := filepath.Join(t.TempDir(), "s")
	s := open(t, dir)
	wants(t, "control", session(t, s, "a").Append(note("x")), "")
	os.Chmod(dir+"/sessions", 0o500)
	t.Cleanup(func() { os.Chmod(dir+"/sessions", 0o700) })
	_, err := s.Session("b")
	wants(t, "a folder that cannot be written", err, fault.StoreUnavailable)
	os.Chmod(dir+"/sessions/a.log", 0o400)
	_, err = s.Session("a")
	wants(t, "a log that cannot be written", err, fault.StoreUnavailable)
	if _, err := s.Verify("a"); err != nil {
		t.Errorf("got %v, want that it can be read", err)
	}
	os.Chmod(dir+"/sessions", 0)
	_, err = Open(dir)
	wants(t, "a folder that cannot be read", err, fault.StoreUnavailable)
}
