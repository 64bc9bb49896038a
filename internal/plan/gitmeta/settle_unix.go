//go:build linux || darwin

package gitmeta

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Settle compares the workspace with its state before a command, whose tree
// must be dead, and takes the force out of what is new or changed: hooks,
// pointers, links and broken configuration are moved into a new folder below
// quarantine; a configuration is rewritten without its new executable keys,
// the original kept in quarantine. What is an ordinary file of the tree is
// only reported. after is what [Discover] found now.
//
// The folder is private (0700) and holds a manifest.json with each file's
// original path, mode and reason, written before anything is moved. Nothing
// is created when there is nothing to do. Settling again after a crash goes
// on where it stopped. quarantine must lie outside the workspace.
//
// What cannot be rewritten is moved; what cannot be moved loses its name, its
// permissions or its content where it lies, or is removed (see the actions of
// a [Finding]). For what is still there after all that the error is an
// [ErrLeft], and its finding Reported. Permissions that a command took away
// are no obstacle; a folder that is closed to listing or searching stays open.
//
// Not watched: the configuration of the host itself, attributes in the tree
// below its top folder, files that no configuration named before the command,
// and repositories that only a GIT_OBJECT_DIRECTORY makes complete.
func Settle(before Snapshot, after []Repo, quarantine string) ([]Finding, error) {
	s, err := openAfter(before.Workspace, before.Commons, quarantine)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.before, s.closed = before.Items, before.Closed
	for path, item := range before.Items {
		if item.Role == RoleProgram {
			s.one(path, Item{Role: RoleProgram, Key: item.Key})
		}
	}
	s.all(after, before)
	return s.carryOut(compare(before, s.items), quarantine)
}

// TakeAway moves what lies at the paths of findings out of the workspace, as
// [Settle] does with a hook, be it a file, a link, or a folder with all that it
// holds. A folder cannot leave its file system; there it stays, under an inert
// name and closed.
func TakeAway(workspace string, what []Finding, quarantine string) ([]Finding, error) {
	s, err := openAfter(workspace, nil, quarantine)
	if err != nil {
		return nil, err
	}
	defer s.close()
	todo := make([]action, 0, len(what))
	for _, f := range what {
		f.Action = Quarantined
		todo = append(todo, action{finding: f})
	}
	return s.carryOut(todo, quarantine)
}

// openAfter opens a workspace in which a command has run.
func openAfter(workspace string, commons []string, quarantine string) (*survey, error) {
	if inside(workspace, realOr(filepath.Clean(quarantine))) {
		return nil, fault.New(fault.Internal, "the quarantine must not lie in the workspace")
	}
	s, err := openSurvey(workspace, commons)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "cannot look for new git configuration", err)
	}
	s.after = true
	return s, nil
}

// ErrLeft says that something could not be made harmless.
var ErrLeft = errors.New("it is still there")

func (s *survey) carryOut(todo []action, quarantine string) ([]Finding, error) {
	if len(todo) == 0 {
		return nil, nil
	}
	files := make([]string, len(todo))
	var records []record
	for i, a := range todo {
		if a.finding.Action != Reported {
			_, base := splitPath(a.finding.Path)
			files[i] = fmt.Sprintf("%04d-%s", i, base)
			files[i] = files[i][:min(len(files[i]), 200)]
			records = append(records, newRecord(a.finding, s.mode(a.finding.Path), files[i]))
		}
	}
	var q *ward
	lost := ""
	if len(records) > 0 && !s.early.full() {
		var err error
		if q, err = openWard(quarantine, records); err != nil {
			// What it is all about can be done without.
			lost = "; there is no quarantine: " + err.Error()
		} else {
			defer unix.Close(q.fd)
		}
	}
	findings := make([]Finding, 0, len(todo))
	var errs []error
	way := ""
	for i, a := range todo {
		f := a.finding
		var err error
		switch f.Action {
		case Rewritten:
			f, err = s.rewrite(a, q, files[i])
		case Quarantined:
			f, err = s.take(a, q, files[i])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w (%w)", strconv.Quote(f.Path), ErrLeft, err))
			way = cmp.Or(way, wayOut(f.Path))
		}
		if a.finding.Action != Reported {
			f.What += lost
		}
		findings = append(findings, f)
	}
	if len(errs) > 0 {
		return findings, fault.Wrap(fault.FileFailed, "what the command left could not be made harmless", errors.Join(errs...)).
			WithHint(way)
	}
	return findings, nil
}

// wayOut is what removes a path by hand.
func wayOut(path string) string {
	dir, _ := splitPath(path)
	return "chmod u+rwx " + shellWord(dir) + "; rm -rf " + shellWord(path)
}

// shellWord quotes a path, in any bytes, for a shell.
func shellWord(s string) string {
	plain := utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) })
	if plain {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

func (s *survey) mode(path string) string {
	dir, base := splitPath(path)
	fd, err := s.dir(dir)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	h, err := handleAt(fd, base)
	if err != nil {
		return ""
	}
	defer unix.Close(h)
	var st unix.Stat_t
	if unix.Fstat(h, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%o", st.Mode)
}

// rewrite replaces a configuration by itself without the executable entries
// that were not there before. The file is never missing in between. If that
// fails, or if it is not what it was when it was surveyed, it is taken away.
func (s *survey) rewrite(a action, q *ward, name string) (Finding, error) {
	f := a.finding
	dir, base := splitPath(f.Path)
	fd, err := s.dir(dir)
	if vanished(err) {
		return gone(f), nil
	}
	if err != nil {
		return left(f), err
	}
	defer unix.Close(fd)
	done, err := s.rewriteAt(fd, dir, base, a, q, name)
	if s.early != nil && errors.Is(err, errMoved) {
		return gone(f), nil // the look that follows sees what it is now
	}
	if err != nil {
		return s.takeAt(fd, dir, base, a, q, name)
	}
	if done && q != nil && there(q.fd, name) {
		f.QuarantinedTo = filepath.Join(q.path, name)
	}
	return f, nil
}

// rewriteAt says whether there was anything to rewrite.
func (s *survey) rewriteAt(fd int, dir, base string, a action, q *ward, name string) (bool, error) {
	n, err := openFile(fd, base)
	if err != nil {
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil {
		unix.Close(n)
		return false, err
	}
	if s.early != nil && !is(a.id, &st) {
		unix.Close(n)
		return false, errMoved
	}
	raw, err := readFD(n, base, MaxConfig)
	if err != nil {
		return false, err
	}
	entries, err := Parse(raw)
	if err != nil {
		return false, err
	}
	clean, changed := without(raw, entries, a.keep, dir, s.ws)
	if !changed {
		return false, nil
	}
	after, err := Parse(clean)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(after, func(e Entry) bool {
		return Executable(e) && !worktreeInside(e, dir, s.ws) && !slices.Contains(a.keep, entryDigest(e))
	}) {
		return false, errNotClean
	}
	if q != nil && s.early.room(&st) {
		if err := writeNew(q.fd, name, bytes.NewReader(raw), nil); err != nil {
			return false, err
		}
	} else {
		q = nil
	}
	// Nobody can have made what nobody can foresee.
	temp := base[:min(len(base), 100)] + ".tether-" + rand.Text()
	err = forced(fd, func() error {
		if err := writeNew(fd, temp, bytes.NewReader(clean), &st); err != nil {
			return err
		}
		err := s.still(fd, base, &st)
		if err == nil {
			err = unix.Renameat(fd, temp, fd, base)
		}
		if err != nil {
			_ = unix.Unlinkat(fd, temp, 0)
		}
		return err
	})
	if err != nil && q != nil {
		_ = unix.Unlinkat(q.fd, name, 0) // the whole file comes there
	}
	return err == nil, err
}

var (
	errNotClean = errors.New("executable entries would stay")
	errMoved    = errors.New("it changes right now")
)

// still says, while a command runs, whether a file is what it was a moment ago:
// what the user's own git writes meanwhile must not be lost.
func (s *survey) still(fd int, base string, was *unix.Stat_t) error {
	var st unix.Stat_t
	if s.early == nil || unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && identity(&st) == identity(was) {
		return nil
	}
	return errMoved
}
