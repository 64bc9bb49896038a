package flagset

import (
	"io"
	"path/filepath"
	"slices"
	"testing"
)

func TestIdle(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("IDLE_SET", "")
	f := New("run")
	_, err := f.Parse([]string{"--allow-read", dir, "--allow-write", filepath.Join(dir, "none"), "--allow-read", "~/none", "--env", "IDLE_SET",
		"--env", "IDLE_NOT", "--env", "IDLE_NOT=1", "--redact", "IDLE_SET", "--redact", "IDLE_NOR", "--protect", "none"}, io.Discard)
	want := []string{"--allow-write " + filepath.Join(dir, "none") + " does nothing: it is not there",
		"--env IDLE_NOT does nothing: the variable is not set here", "--redact IDLE_NOR does nothing: the variable is not set here"}
	if got := f.Idle(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
