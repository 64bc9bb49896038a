package plan

import "testing"

func TestHiddenFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a": "", "/a/b": "", "/ssh/x": "", "/a/.ssh.d/x": "", "/a/.env/x": "", "/a/.sshx": "",
		"/.ssh": "/.ssh", "/a/.ssh": "/a/.ssh", "/a/.ssh/config": "/a/.ssh", "/a/.SSH/b/.ssh/c": "/a/.SSH",
	} {
		if got := hiddenFolder(path); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
