package filegate

import (
	"fmt"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"golang.org/x/sys/unix"
)

// Write writes a whole file and makes the folders above it. A file that exists
// is replaced at once, as a new one of the same mode, owner, group, user's
// attributes and access list; other names of the old file (hard links) keep the
// old content.
//
// Refused with SANDBOX_VIOLATION: everything under read-only, what lies
// outside, is hidden or locked, present or not. FILE_MISMATCH: the file is not
// the expected one. Nothing is made or changed unless all of it can be allowed.
func (g *Gate) Write(r WriteRequest) (WriteResult, error) {
	if int64(len(r.Text)) > g.limit() {
		return WriteResult{}, unfit(r.Path, fmt.Sprintf("cannot take %d bytes, more than a file may have here", len(r.Text)), "write less")
	}
	var out WriteResult
	err := g.again(r.Path, func() error {
		w, err := g.walk(r.Path)
		if err != nil {
			return err
		}
		defer w.close()
		if err := w.admit(); err != nil {
			return err
		}
		if len(w.missing) > 0 {
			out, err = w.create(&r)
			return err
		}
		if r.New {
			return mismatch(r.Path, "exists", "leave it, or write without asking for a new file")
		}
		n := w.end()
		// It is read only where that decides: it may be one that can be written
		// and not read.
		if r.IfSHA256 != "" || n.v.byContent {
			if _, err := w.before(r.IfSHA256); err != nil {
				return err
			}
		}
		if err := w.content([]byte(r.Text), n.v); err != nil {
			return err
		}
		inPlace, err := w.put([]byte(r.Text))
		out = WriteResult{Path: g.layout.show(n.path), Size: int64(len(r.Text)), SHA256: digest([]byte(r.Text)), InPlace: inPlace}
		return err
	})
	if err != nil {
		return WriteResult{}, err
	}
	return out, nil
}

// Replace replaces a text in a file, with what is said at [Gate.Write]. All
// bytes outside of the text stay as they are.
func (g *Gate) Replace(r ReplaceRequest) (ReplaceResult, error) {
	var out ReplaceResult
	err := g.again(r.Path, func() error {
		w, err := g.walk(r.Path)
		if err != nil {
			return err
		}
		defer w.close()
		if len(w.missing) > 0 {
			return w.gone()
		}
		if err := w.admit(); err != nil {
			return err
		}
		n := w.end()
		if n.st.Size > MaxFile {
			return unfit(r.Path, fmt.Sprintf("has %d bytes, more than can be edited", n.st.Size), "use a command, such as sed")
		}
		raw, err := w.before(r.IfSHA256)
		if err != nil {
			return err
		}
		done, err := replace(raw, &r, g.limit())
		if err != nil {
			return err
		}
		if err := w.content(done.raw, n.v); err != nil {
			return err
		}
		inPlace, err := w.put(done.raw)
		out = ReplaceResult{Path: g.layout.show(n.path), Count: done.count, Lines: done.lines, Encoding: done.encoding,
			LineEnd: done.lineEnd, Size: int64(len(done.raw)), SHA256: digest(done.raw), InPlace: inPlace}
		return err
	})
	if err != nil {
		return ReplaceResult{}, err
	}
	return out, nil
}

// admit says whether the end of the way may be written.
func (w *walk) admit() error {
	last, v := w.end(), w.end().v
	if len(w.missing) > 0 {
		v = w.v
	}
	switch {
	case v.hidden != "":
		return refuse(w.asked, "would be hidden: "+v.hidden, "choose a name that is not hidden, such as "+quote(example(w.asked)))
	case v.lock.why != "":
		return refuse(w.asked, "is locked: "+v.lock.why, v.lock.hint)
	case !last.root.writable:
		return refuse(w.asked, "cannot be written: "+w.g.readOnly(), hintWrite)
	case len(w.missing) == 0:
		if err := w.ordinaryFile(); err != nil {
			return err
		}
	case !last.is(unix.S_IFDIR):
		return notFound(w.asked)
	}
	if w.g.full() || last.root.tmp {
		return nil
	}
	for i := range w.nodes {
		name := ""
		switch {
		case i+1 < len(w.nodes):
			name = w.nodes[i+1].name
		case len(w.missing) > 0:
			name = w.missing[0]
		}
		if n := &w.nodes[i]; n.is(unix.S_IFDIR) && looksBare(n.fd, name) {
			return refuse(w.asked, "is locked: git takes the folder "+quote(w.g.layout.show(n.path))+" for a repository", hintGit)
		}
	}
	return nil
}

func (g *Gate) readOnly() string {
	if len(g.roots) > 0 && g.roots[g.layout.at[g.layout.workspace]].writable {
		return "the root that it lies in is read-only"
	}
	return "the profile is " + g.plan.Policy.Profile.String()
}

// example is a name near path that is open.
func example(path string) string { return strings.TrimRight(path, "/") + ".example" }

// before reads the file as it is and compares it with what the caller expects.
func (w *walk) before(sum string) ([]byte, error) {
	raw, err := w.read(MaxFile)
	if err != nil || sum == "" {
		return raw, err
	}
	if w.end().st.Size > int64(len(raw)) {
		return nil, unfit(w.asked, "is too large to compare", "write without a digest")
	}
	if got := digest(raw); !strings.EqualFold(got, sum) {
		return nil, mismatch(w.asked, "is not the expected file: its SHA-256 is "+got, "view it again, then edit what is there now")
	}
	return raw, nil
}

// content refuses to make a file by its content what could not be read again.
func (w *walk) content(data []byte, v verdict) error {
	if v.byContent && !secrets.PublicOnly(data) {
		return refuse(w.asked, "would be hidden: with this name only public certificates and keys are open",
			"choose another name, or let the user put the key there")
	}
	return nil
}

// create makes a new file and the folders above it.
func (w *walk) create(r *WriteRequest) (WriteResult, error) {
	if r.IfSHA256 != "" {
		return WriteResult{}, mismatch(r.Path, "is not there, so not the expected file", "write it without a digest")
	}
	if err := w.content([]byte(r.Text), w.v); err != nil {
		return WriteResult{}, err
	}
	out := WriteResult{Created: true, Size: int64(len(r.Text)), SHA256: digest([]byte(r.Text))}
	made := 0
	err := func() error {
		for ; len(w.missing) > 1; made++ {
			n, err := w.mkdir(w.missing[0])
			if err != nil {
				return err
			}
			w.nodes, w.missing = append(w.nodes, n), w.missing[1:]
			out.Folders = append(out.Folders, w.g.layout.show(n.path))
		}
		return w.createFile([]byte(r.Text))
	}()
	if err != nil {
		for i := range made { // only those that are empty go
			n := &w.nodes[len(w.nodes)-1-i]
			_ = unix.Unlinkat(n.dir, n.name, unix.AT_REMOVEDIR)
		}
		return WriteResult{}, err
	}
	out.Path = w.g.layout.show(join(w.end().path, w.missing[0]))
	return out, nil
}

// mkdir makes a folder in the last one and opens it.
func (w *walk) mkdir(name string) (node, error) {
	last := w.end()
	err := unix.Mkdirat(last.fd, name, 0o777)
	if err == unix.EEXIST {
		return node{}, errChanged // judge what is there now
	}
	if err != nil {
		return node{}, failed(w.asked, "make a folder for", err)
	}
	n := node{dir: last.fd, name: name, path: join(last.path, name), root: last.root, v: last.v}
	if n.fd, err = openat(last.fd, name, unix.O_PATH|unix.O_DIRECTORY); err == nil {
		err = unix.Fstat(n.fd, &n.st)
	}
	if err != nil {
		return node{}, errChanged
	}
	return n, nil
}
