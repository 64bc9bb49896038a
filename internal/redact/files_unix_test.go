//go:build unix

package redact

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func source(t testing.TB, path string) Source {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return Source{path, uint64(st.Dev), st.Ino}
}

func put(t testing.TB, path, text string) Source {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return source(t, path)
}

func TestFiles(t *testing.T) {
	d := t.TempDir()
	line := func(n int) string { return fmt.Sprintf("PASSWORD%d=a-password-with-number-%04d\n", n, n) }
	plain := put(t, d+"/.env", line(1))
	put(t, d+"/.ssh/id_x", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAE\n-----END OPENSSH PRIVATE KEY-----\n")
	put(t, d+"/.ssh/known_hosts", line(2))
	put(t, d+"/.ssh/deep/x", line(3))
	long := put(t, d+"/long", line(4)+strings.Repeat("#\n", maxFileBytes)+line(5))
	other := put(t, d+"/other", line(6))
	other.Ino++ // as if something else had come in its place
	if err := unix.Mkfifo(d+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d+"/other", d+"/link"); err != nil {
		t.Fatal(err)
	}
	values, left := Files([]Source{plain, source(t, d+"/.ssh"), long, other, source(t, d+"/fifo"), {Path: d + "/link"}, {Path: d + "/none"}})
	var got []string
	for _, v := range values {
		got = append(got, v.Name)
	}
	if want := []string{"PASSWORD1", "id_x", "PASSWORD4"}; !slices.Equal(got, want) || left != 0 {
		t.Errorf("got %v, %d left; want %v", got, left, want)
	}
	if control, _ := Files([]Source{source(t, d+"/other")}); len(control) != 1 {
		t.Errorf("control: got %v", control)
	}
	if _, left := Files(slices.Repeat([]Source{plain}, maxFiles+7)); left != 7 {
		t.Errorf("left: got %d, want 7", left)
	}
}

func BenchmarkGather(b *testing.B) {
	for _, n := range []int{10, 1000} {
		d := b.TempDir()
		var list []Source
		for i, v := range tokens(2 * n) {
			text := "# settings\n"
			for j := range 20 {
				text += fmt.Sprintf("A%d_NAME=some-plain-value-%d\n", j, j)
			}
			if i < n {
				list = append(list, put(b, fmt.Sprintf("%s/%d/.env", d, i), text+"API_TOKEN=sk-"+v.Text+"\nPASSWORD="+v.Text[:20]+"\n"))
			}
		}
		var values []Value
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			for b.Loop() {
				values, _ = Files(list)
			}
		})
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			for b.Loop() {
				New(values)
			}
		})
	}
}
