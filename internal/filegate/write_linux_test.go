package filegate

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/need"
	"golang.org/x/sys/unix"
)

func stat(t testing.TB, path string) syscall.Stat_t {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestWriteKeepsWhatAFileIs(t *testing.T) {
	p := newPlace(t)
	p.write("script", "#!/bin/sh\n")
	p.write("shut", "x")
	p.sh("chmod 751 script && chmod 4755 shut")
	xattr := unix.Setxattr(p.path("script"), "user.note", []byte("kept"), 0) == nil
	if os.Geteuid() == 0 {
		if err := os.Chown(p.path("script"), 0, 12345); err != nil {
			t.Fatal(err)
		}
	}
	before := stat(t, p.path("script"))
	g := p.gate()
	r, err := g.Write(WriteRequest{Path: "script", Text: "new"})
	after := stat(t, p.path("script"))
	if err != nil && os.Geteuid() != 0 {
		t.Fatal(err)
	}
	switch {
	case os.Geteuid() == 0:
		// The owner may not give it to a group that he is not in: in place.
		if err != nil || !r.InPlace || after.Ino != before.Ino {
			t.Errorf("got %+v (%v), want it written in place", r, err)
		}
	case r.InPlace || after.Ino == before.Ino:
		t.Errorf("got %+v, want a new file", r)
	}
	if after.Mode != before.Mode || after.Uid != before.Uid || after.Gid != before.Gid || p.read("script") != "new" {
		t.Errorf("got mode %o of %d:%d, want %o of %d:%d", after.Mode, after.Uid, after.Gid, before.Mode, before.Uid, before.Gid)
	}
	if value := make([]byte, 9); xattr {
		if n, err := unix.Getxattr(p.path("script"), "user.note", value); err != nil || string(value[:n]) != "kept" {
			t.Errorf("the attribute: got %q (%v)", value, err)
		}
	}
	g.takes("shut")
	if mode := stat(t, p.path("shut")).Mode; mode&0o7777 != 0o755 {
		t.Errorf("setuid after writing: got %o, want 755 as from the kernel", mode)
	}
	old := unix.Umask(0o027)
	err = g.put("made/by/me", "x")
	unix.Umask(old)
	if dir, file := stat(t, p.path("made/by")).Mode, stat(t, p.path("made/by/me")).Mode; err != nil || dir&0o777 != 0o750 || file&0o777 != 0o640 {
		t.Errorf("new: got %o and %o (%v), want what the umask gives", dir, file, err)
	}
	p.sh("! ls -A . made/by | grep '^.tether-'")
}

func TestWriteExpectations(t *testing.T) {
	p := newPlace(t)
	p.write("f", "old")
	g := p.gate()
	v, err := g.View(ViewRequest{Path: "f"})
	if err != nil || v.SHA256 != digest([]byte("old")) {
		t.Fatalf("got %+v (%v)", v, err)
	}
	_, err = g.Write(WriteRequest{Path: "f", Text: "x", IfSHA256: digest([]byte("other"))})
	g.code(err, fault.FileMismatch)
	_, err = g.Write(WriteRequest{Path: "f", Text: "x", New: true})
	g.code(err, fault.FileMismatch)
	_, err = g.Write(WriteRequest{Path: "none", Text: "x", IfSHA256: v.SHA256})
	g.code(err, fault.FileMismatch)
	_, err = g.Replace(ReplaceRequest{Path: "f", Old: "old", New: "x", IfSHA256: digest(nil)})
	g.code(err, fault.FileMismatch)
	_, err = g.Write(WriteRequest{Path: "f/x", Text: "x"})
	g.code(err, fault.FileNotFound)
	_, err = g.Write(WriteRequest{Path: ".", Text: "x"})
	g.code(err, fault.FileUnfit)
	_, err = g.Write(WriteRequest{Path: "dir/", Text: "x"})
	g.code(err, fault.FileNotFound)
	if p.read("f") != "old" {
		t.Error("it was written all the same")
	}
	r, err := g.Write(WriteRequest{Path: "f", Text: "x", IfSHA256: strings.ToUpper(v.SHA256)})
	if err != nil || r.Created || r.SHA256 != digest([]byte("x")) || p.read("f") != "x" {
		t.Errorf("got %+v (%v)", r, err)
	}
	r, err = g.Write(WriteRequest{Path: p.w + "/a/b", Text: "", New: true})
	if err != nil || !r.Created || r.Path != "a/b" || len(r.Folders) != 1 || r.Folders[0] != "a" {
		t.Errorf("got %+v (%v)", r, err)
	}
	g.plan.Policy.Limits.FileBytes = 10
	_, err = g.Write(WriteRequest{Path: "f", Text: strings.Repeat("x", 11)})
	g.code(err, fault.FileUnfit)
	_, err = g.Replace(ReplaceRequest{Path: "f", Old: "x", New: strings.Repeat("y", 11)})
	g.code(err, fault.FileUnfit)
}

func TestPemByContent(t *testing.T) {
	p := newPlace(t)
	const cert = "-----BEGIN RSA PUBLIC KEY-----\nMAYCAQECAQE=\n-----END RSA PUBLIC KEY-----\n"
	p.write("pub.pem", cert)
	p.write("priv.pem", secret)
	g := p.gate()
	g.shows("pub.pem", "BEGIN RSA PUBLIC KEY")
	g.noView("priv.pem")
	g.noWrite("priv.pem")
	g.denied("write", "pub.pem", g.put("pub.pem", secret))
	if _, err := g.Replace(ReplaceRequest{Path: "pub.pem", Old: "MAYC", New: secret}); fault.CodeOf(err) != fault.SandboxViolation {
		t.Errorf("replace: got %v", err)
	}
	for _, name := range []string{"pub.pem", "new.pem", "empty.key"} {
		text := cert
		if name == "empty.key" {
			text = ""
		}
		if err := g.put(name, text); err != nil {
			t.Error(err)
		}
	}
}

// A file that is a mount stays one.
func TestWriteToAMount(t *testing.T) {
	need.Root(t)
	p := newPlace(t)
	p.write("f", "old\n")
	p.write(p.out+"/src", "source\n")
	if err := unix.Mount(p.out+"/src", p.path("f"), "", unix.MS_BIND, ""); err != nil {
		need.Missing(t, "mount", err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(p.path("f"), unix.MNT_DETACH) })
	g := p.gate()
	r, err := g.Write(WriteRequest{Path: "f", Text: "new\n"})
	if err != nil || !r.InPlace || p.read("f") != "new\n" || p.read(p.out+"/src") != "new\n" {
		t.Errorf("got %+v (%v), want it written through the mount", r, err)
	}
	// A second name of what is mounted must not be changed unseen.
	p.hardlink(p.out+"/src", p.out+"/src2")
	g.denied("write", "f", g.put("f", "x"))
	if p.read(p.out+"/src2") != "new\n" {
		t.Error("the other name was changed")
	}
}

// Where the folder takes no new file, the file itself is written.
func TestWriteInAShutFolder(t *testing.T) {
	p := newPlace(t)
	p.write("d/f", "old\n")
	p.write("d/ro", "old\n")
	p.sh("chmod 444 d/ro && chmod 555 d")
	g := p.gate()
	r, err := g.Write(WriteRequest{Path: "d/f", Text: "n\n"})
	if err != nil || !r.InPlace || p.read("d/f") != "n\n" {
		t.Errorf("got %+v (%v), want it written in place", r, err)
	}
	g.code(g.put("d/ro", "x"), fault.FileFailed)
	g.code(g.put("d/new", "x"), fault.FileFailed)
	g.code(g.put("d/new/x", "x"), fault.FileFailed)
	p.sh("chmod 755 d")
	g.code(g.put("d/ro", "x"), fault.FileFailed) // as for a command, though a rename could
	if p.read("d/ro") != "old\n" {
		t.Error("a read-only file was written")
	}
}

// A gate of root has the rights of the workspace's owner and no more.
func TestRootActsAsTheOwner(t *testing.T) {
	need.Root(t)
	for _, owner := range []int{0, 54321} {
		p := newPlace(t)
		p.write("mine", "open\n")
		p.write("rootonly", secret)
		p.write("sub/x", "open\n")
		foreign := 54322
		p.sh("chmod 600 rootonly")
		for _, name := range []string{".", "mine", "sub", "sub/x"} {
			if err := os.Lchown(p.path(name), owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Lchown(p.path("rootonly"), foreign, foreign); err != nil {
			t.Fatal(err)
		}
		g := p.gate()
		g.shows("mine", "open")
		_, err := g.view("rootonly")
		g.code(err, fault.FileFailed)
		g.code(g.put("rootonly", "x"), fault.FileFailed)
		g.takes("sub/new/f")
		g.takes("mine")
		for _, name := range []string{"sub/new", "sub/new/f", "mine"} {
			if st := stat(t, p.path(name)); int(st.Uid) != owner || int(st.Gid) != owner {
				t.Errorf("%s belongs to %d:%d, want %d", name, st.Uid, st.Gid, owner)
			}
		}
		if os.Getuid() != 0 || os.WriteFile(p.top+"/root", nil, 0o600) != nil || stat(t, p.top+"/root").Uid != 0 {
			t.Error("the program itself lost rights")
		}
	}
}

func TestViewRanges(t *testing.T) {
	p := newPlace(t)
	p.write("f", "1\n2\n3\n4")
	p.write("crlf", "a\r\nb\r\n")
	g := p.gate()
	r, err := g.View(ViewRequest{Path: "f", First: 2, Last: 3})
	if err != nil || r.Text != "2\n3\n" || r.First != 2 || r.Last != 3 || r.TotalLines != 4 || r.Truncated {
		t.Errorf("got %+v (%v)", r, err)
	}
	r, err = g.View(ViewRequest{Path: "f", MaxBytes: 3})
	if err != nil || r.Text != "1\n" || !r.Truncated || r.Last != 1 {
		t.Errorf("got %+v (%v)", r, err)
	}
	r, err = g.View(ViewRequest{Path: "f", First: 9})
	if err != nil || r.Text != "" || r.First != 0 || r.TotalLines != 4 {
		t.Errorf("got %+v (%v)", r, err)
	}
	r, err = g.View(ViewRequest{Path: "crlf"})
	if err != nil || r.Text != "a\nb\n" || r.LineEnd != CRLF || r.Encoding != UTF8 {
		t.Errorf("got %+v (%v)", r, err)
	}
	for _, bad := range []ViewRequest{{Path: "f", First: -1}, {Path: "f", First: 3, Last: 2}, {Path: "f", MaxBytes: -1}} {
		_, err := g.View(bad)
		g.code(err, fault.UsageInvalid)
	}
	r, err = g.View(ViewRequest{Path: "."})
	if err != nil || !r.Folder || len(r.Entries) != 2 || r.Path != "." {
		t.Errorf("got %+v (%v)", r, err)
	}
}

func TestListAndSearch(t *testing.T) {
	p := newPlace(t)
	p.write("a.go", "package a // Needle\r\nfunc f() {} // needle\r\n")
	p.write("sub/b.go", "x.y needle\nneedle needle\n")
	p.write("sub/deep/c.txt", "needle at the end")
	p.write("bin", "needle\x00")
	p.write(p.out+"/o", "needle")
	p.link(p.out, "out")
	p.sh("git init -q . && echo needle >.git/needle")
	g := p.gate()
	search := func(r SearchRequest) string {
		t.Helper()
		out, err := g.Search(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, m := range out.Matches {
			b.WriteString(m.Path + ":" + string(rune('0'+m.Line)) + ":" + m.Text + ";")
		}
		return b.String()
	}
	for _, c := range []struct {
		name string
		r    SearchRequest
		want string
	}{
		{"all", SearchRequest{Pattern: "needle"}, "a.go:2:func f() {} // needle;sub/b.go:1:x.y needle;sub/b.go:2:needle needle;sub/deep/c.txt:1:needle at the end;"},
		{"case", SearchRequest{Pattern: "NEEDLE", IgnoreCase: true, Glob: "*.go", Path: "."}, "a.go:1:package a // Needle;a.go:2:func f() {} // needle;sub/b.go:1:x.y needle;sub/b.go:2:needle needle;"},
		{"literal", SearchRequest{Pattern: "f() {}", Literal: true}, "a.go:2:func f() {} // needle;"},
		{"dot", SearchRequest{Pattern: "x.y", Literal: true}, "sub/b.go:1:x.y needle;"},
		{"ends", SearchRequest{Pattern: "needle$"}, "a.go:2:func f() {} // needle;sub/b.go:1:x.y needle;sub/b.go:2:needle needle;"},
		{"begins", SearchRequest{Pattern: "^needle"}, "sub/b.go:2:needle needle;sub/deep/c.txt:1:needle at the end;"},
		{"in a folder", SearchRequest{Pattern: "needle", Path: "sub", Glob: "deep/*"}, "sub/deep/c.txt:1:needle at the end;"},
		{"in a file", SearchRequest{Pattern: "needle", Path: "sub/deep/c.txt"}, "sub/deep/c.txt:1:needle at the end;"},
		{"in git", SearchRequest{Pattern: "needle", Path: ".git", Glob: "needle"}, ".git/needle:1:needle;"},
		{"empty lines", SearchRequest{Pattern: "^", Path: "sub/b.go"}, "sub/b.go:1:x.y needle;sub/b.go:2:needle needle;"},
	} {
		if got := search(c.r); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	out, err := g.Search(context.Background(), SearchRequest{Pattern: "needle", Max: 1})
	if err != nil || len(out.Matches) != 1 || !out.Truncated {
		t.Errorf("max: got %+v (%v)", out, err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if out, err := g.Search(over, SearchRequest{Pattern: "needle"}); err != nil || !out.Truncated {
		t.Errorf("an ended context: got %+v (%v)", out, err)
	}
	for _, bad := range []SearchRequest{{Pattern: "("}, {}, {Pattern: strings.Repeat("x", 2000)}} {
		_, err := g.Search(context.Background(), bad)
		g.code(err, fault.UsageInvalid)
	}
	_, err = g.Search(context.Background(), SearchRequest{Pattern: "x", Glob: "[a"})
	g.code(err, fault.PolicyInvalid)
	l, err := g.List(context.Background(), ListRequest{Depth: 3, Glob: "*.go"})
	if err != nil || len(l.Entries) != 2 || l.Entries[1].Path != "sub/b.go" || l.Entries[1].Type != File || l.Entries[1].Size != 25 {
		t.Errorf("list: got %+v (%v)", l, err)
	}
	l, err = g.List(context.Background(), ListRequest{Max: 2})
	if err != nil || len(l.Entries) != 2 || !l.Truncated {
		t.Errorf("list: got %+v (%v)", l, err)
	}
	l, err = g.List(context.Background(), ListRequest{Glob: "out"})
	if err != nil || len(l.Entries) != 1 || l.Entries[0].Type != Link {
		t.Errorf("list: got %+v (%v)", l, err)
	}
}
