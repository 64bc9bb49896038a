package inner

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLookPath follows execvp(3), in the PATH of the command and not in ours.
func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for path, mode := range map[string]os.FileMode{"a/tool": 0o755, "b/tool": 0o755, "b/other": 0o755, "a/plain": 0o644,
		"b/plain": 0o755, "only/plain": 0o644, "here": 0o755} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll("a/other", 0o755); err != nil { // a folder of that name is no program
		t.Fatal(err)
	}
	if err := os.Symlink("missing", "a/dangling"); err != nil {
		t.Fatal(err)
	}
	a, b := dir+"/a", dir+"/b"
	path := func(p string) []string { return []string{"X=1", "PATH=" + p, "Y=2"} }
	for _, c := range []struct {
		name, word string
		env        []string
		want       string
		err        error
	}{
		{"the first folder", "tool", path(a + ":" + b), a + "/tool", nil},
		{"the order counts", "tool", path(b + ":" + a), b + "/tool", nil},
		{"a folder is passed over", "other", path(a + ":" + b), b + "/other", nil},
		{"what cannot be executed is passed over", "plain", path(a + ":" + b), b + "/plain", nil},
		{"nothing but what cannot be executed", "plain", path(dir + "/only:" + dir), "", syscall.EACCES},
		{"missing", "nothing", path(a + ":" + b), "", syscall.ENOENT},
		{"a dangling link", "dangling", path(a), "", syscall.ENOENT},
		{"an empty part is the current folder", "here", path(a + "::" + b), "./here", nil},
		{"an empty PATH is the current folder", "here", path(""), "./here", nil},
		{"no PATH is an empty one", "here", nil, "./here", nil},
		{"no PATH does not fall back on ours", "sh", nil, "", syscall.ENOENT},
		{"the last PATH counts", "tool", []string{"PATH=" + a, "PATH=" + b}, b + "/tool", nil},
		{"a name that only ends like PATH", "tool", []string{"XPATH=" + a}, "", syscall.ENOENT},
		{"a path is not searched", a + "/tool", path("/nowhere"), a + "/tool", nil},
		{"a relative path", "a/tool", path("/nowhere"), "a/tool", nil},
		{"a path of a folder", a, path(""), "", syscall.EACCES},
		{"a path of what cannot be executed", a + "/plain", path(""), "", syscall.EACCES},
		{"a path that is missing", a + "/nothing", path(""), "", syscall.ENOENT},
		{"a path through a file", a + "/tool/x", path(""), "", syscall.ENOTDIR},
		{"nothing at all", "", path(a), "", syscall.ENOENT},
	} {
		got, err := lookPath(c.word, c.env)
		if !errors.Is(err, c.err) || err == nil && got != c.want {
			t.Errorf("%s: got %q, %v; want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Message
	}{
		{errors.New("x"), Message{Kind: Failed, What: "x"}},
		{&stage{"posture", syscall.EPERM}, Message{Kind: Failed, Step: "posture", Errno: int32(syscall.EPERM), What: "posture: operation not permitted"}},
		{&execError{"sh", syscall.ENOENT}, Message{Kind: NoExec, Errno: int32(syscall.ENOENT), What: "sh"}},
	} {
		if got := failure(c.err); got != c.want {
			t.Errorf("%v: got %+v, want %+v", c.err, got, c.want)
		}
	}
}
