package enforcetest

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// AskPrefix begins the names of files in the workspace by which an attacker asks
// the host for a secret: what is in one is the path, in the workspace, at which the
// secret is to appear.
const AskPrefix = "ask-for-"

// lateAttacks are about secrets that the host writes while the command runs. That
// they are open for a moment is a stated limit; that they stay so is not.
func lateAttacks() []Attack {
	const g = "secrets"
	late := func(name string, f func(s *Scene) error) Attack { return Attack{Name: name, Guarantee: g, Try: f} }
	return []Attack{
		late("a secret that appears while the command runs", func(s *Scene) error {
			return s.stays("late1/.env", func(path string) error { return s.shows(path) })
		}),
		late("the same, under a name that it is moved to at once", func(s *Scene) error {
			return s.stays("late2/.env", func(path string) error {
				away := filepath.Join(filepath.Dir(path), "plain")
				_ = os.Rename(path, away)
				defer func() { _ = os.Rename(away, path) }()
				return anyOf(s.shows(away), s.shows(path))
			})
		}),
		late("the same, in a folder that is moved about, with a link in its place", func(s *Scene) error {
			return s.stays("late3/.env", func(path string) error {
				a := filepath.Dir(path)
				b := a + "b"
				moved := errNothing
				if os.Rename(a, b) == nil {
					_ = os.Symlink(".", a)
					moved = s.shows(b + "/.env")
					_ = os.Remove(a)
					_ = os.Rename(b, a)
				}
				return anyOf(moved, s.shows(path))
			})
		}),
		late("the same, after taking descriptors from process 1", func(s *Scene) error {
			var was unix.Rlimit
			if !s.Control && unix.Prlimit(1, unix.RLIMIT_NOFILE, nil, &was) == nil &&
				unix.Prlimit(1, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}, nil) == nil {
				defer func() { _ = unix.Prlimit(1, unix.RLIMIT_NOFILE, &was, nil) }()
			}
			return s.stays("late4/.env", func(path string) error { return s.shows(path) })
		}),
	}
}

// stays lets a secret appear and says whether it can be read for longer than a
// moment.
func (s *Scene) stays(name string, read func(path string) error) error {
	const patience = 10 * time.Second
	moment := 3 * time.Second
	if s.Control {
		moment = 50 * time.Millisecond
	}
	if s.Control {
		name = "control-" + name // what is there at the start is hidden from then on
	}
	path := s.in(name)
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(s.in(AskPrefix+filepath.Dir(name)), []byte(name), 0o666); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		if time.Now().After(end) {
			return errors.New("no secret appeared")
		}
	}
	// Closed is what stays closed.
	const closed = 30
	failed := 0
	for end := time.Now().Add(moment); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		err := read(path)
		if err == nil {
			failed = 0
			continue
		}
		if failed++; failed == closed {
			return err
		}
	}
	return nil
}
