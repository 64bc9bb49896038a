package filegate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"golang.org/x/sys/unix"
)

// errChanged says that a name does not lead to what was judged any more.
var errChanged = errors.New("it was replaced meanwhile")

// tries is how often a call begins anew when a file is replaced under it, as
// editors do.
const tries = 3

// again repeats a call that met a file being replaced.
func (g *Gate) again(path string, call func() error) error {
	return g.enter(func() error {
		var err error
		for range tries {
			if err = call(); !errors.Is(err, errChanged) {
				return err
			}
		}
		return mismatch(path, "is being changed all the time", "try again when it is at rest")
	})
}

// View shows a part of a text file, or what is in a folder.
//
// Refused with SANDBOX_VIOLATION: what lies outside, is hidden, or is no file
// (a FIFO, a socket, a device). FILE_UNFIT: a binary file. Of a line that is
// longer than the bound the beginning is shown.
func (g *Gate) View(r ViewRequest) (ViewResult, error) {
	if r.First < 0 || r.Last < 0 || r.MaxBytes < 0 || r.Last > 0 && r.Last < r.First {
		return ViewResult{}, invalid(fmt.Sprintf("lines %d to %d are no range", r.First, r.Last), "lines count from 1")
	}
	if r.MaxBytes == 0 || r.MaxBytes > MaxText {
		r.MaxBytes = MaxText
	}
	r.First = max(r.First, 1)
	if r.Last == 0 {
		r.Last = math.MaxInt
	}
	var out ViewResult
	err := g.again(r.Path, func() (err error) {
		out, err = g.view(&r)
		return err
	})
	if err != nil {
		return ViewResult{}, err
	}
	return out, nil
}

func (g *Gate) view(r *ViewRequest) (ViewResult, error) {
	w, err := g.walk(r.Path)
	if err != nil {
		return ViewResult{}, err
	}
	defer w.close()
	if len(w.missing) > 0 {
		return ViewResult{}, w.gone()
	}
	n := w.end()
	out := ViewResult{Path: g.layout.show(n.path), Locked: n.v.lock.why != "", Size: n.st.Size}
	if n.is(unix.S_IFDIR) {
		l := lister{g: g, depth: 1, most: MaxEntries}
		if err := l.list(n, ""); err != nil {
			return ViewResult{}, w.failed(err)
		}
		out.Folder, out.Size, out.Entries, out.Truncated = true, 0, l.out, l.cut
		return out, nil
	}
	raw, err := w.read(MaxFile)
	if err != nil {
		return ViewResult{}, err
	}
	out.Partial = n.st.Size > int64(len(raw))
	if n.v.lock.filter {
		if raw, out.Filtered, err = withoutSecrets(raw, out.Partial); err != nil {
			return ViewResult{}, hidden(r.Path, err.Error())
		}
		out.Size = int64(len(raw))
	}
	out.Encoding = detect(raw, out.Partial)
	if out.Encoding == Binary {
		return ViewResult{}, unfit(r.Path, fmt.Sprintf("is binary, %d bytes", out.Size), "look at it with a command, such as file or xxd")
	}
	if !out.Partial && !out.Filtered {
		out.SHA256 = digest(raw)
	}
	text := decode(raw, out.Encoding, out.Partial)
	if out.LineEnd = lineEnd(text); out.LineEnd == CRLF {
		text = withLF(text)
	}
	out.TotalLines = countLines(text)
	out.Text, out.Last, out.Truncated = lineRange(text, r.First, r.Last, r.MaxBytes)
	if out.Last > 0 {
		out.First = r.First
	}
	out.Truncated = out.Truncated || out.Partial && out.Last == out.TotalLines && r.Last > out.Last
	return out, nil
}

// gone answers for a path that does not exist: hidden, where it would be.
func (w *walk) gone() error {
	if w.v.hidden != "" && !w.nameOnly() {
		return hidden(w.asked, w.v.hidden)
	}
	return notFound(w.asked)
}

// nameOnly says whether only the last name hides what is not there: then it is
// simply not there, as for a command.
func (w *walk) nameOnly() bool { return len(w.missing) == 1 }

// withoutSecrets filters a git configuration.
func withoutSecrets(raw []byte, partial bool) ([]byte, bool, error) {
	if partial || len(raw) > gitmeta.MaxConfig {
		return nil, false, errors.New("a git configuration of this size may hold credentials anywhere")
	}
	out, changed, err := gitmeta.Filtered(raw)
	if err != nil {
		return nil, false, errors.New("a git configuration that cannot be read may hold credentials")
	}
	return out, changed, nil
}

// read returns the first most bytes of the file at the end of the way, if they
// may be shown, and marks it as a git configuration if it is one.
func (w *walk) read(most int64) ([]byte, error) {
	n := w.end()
	if err := w.ordinaryFile(); err != nil {
		return nil, err
	}
	if gitConfig(n.name) && !w.g.full() && !n.root.tmp && looksBare(n.dir, "") {
		n.v.lock.filter = true
	}
	raw, st, err := readFile(n, most)
	if err != nil {
		return nil, w.failed(err)
	}
	n.st = st
	if n.v.byContent && (st.Size > int64(len(raw)) || !secrets.PublicOnly(raw)) {
		return nil, hidden(w.asked, "what is in it is not public")
	}
	return raw, nil
}

// ordinaryFile refuses what is no regular file.
func (w *walk) ordinaryFile() error {
	n := w.end()
	what := ""
	switch n.st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return unfit(w.asked, "is a folder", "name a file in it")
	case unix.S_IFIFO:
		what = "a FIFO"
	case unix.S_IFSOCK:
		what = "a socket"
	default:
		what = "a device"
	}
	return refuse(w.asked, "is "+what+", not a file", "name a regular file")
}

// readFile reads a regular file that was judged. One byte more than it had is
// asked for, so that one that grows is not taken for whole.
func readFile(n *node, most int64) ([]byte, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := openat(n.dir, n.name, unix.O_RDONLY)
	if err != nil {
		if err == unix.ELOOP || err == unix.ENXIO {
			err = errChanged
		}
		return nil, st, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, st, err
	}
	if (fileID{st.Dev, st.Ino}) != n.id() || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errChanged
	}
	buf := make([]byte, min(st.Size, most)+1)
	got := 0
	for got < len(buf) {
		k, err := unix.Pread(fd, buf[got:], int64(got))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, st, err
		}
		if k == 0 {
			break
		}
		got += k
	}
	if int64(got) > st.Size {
		return nil, st, errChanged // it grew
	}
	if got > int(most) {
		got = int(most)
	} else if int64(got) < min(st.Size, most) {
		st.Size = int64(got) // it shrank
	}
	return buf[:got], st, nil
}

// looksBare says whether git would take a folder, with one name more, for a
// repository.
func looksBare(dir int, more string) bool {
	return gitmeta.BareLooking(func(name string) bool {
		var st unix.Stat_t
		return name == more || unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
	})
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
