package filegate

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"golang.org/x/sys/unix"
)

// TestSwaps exchanges, during calls, a folder for a link that leads out, a file
// for a hidden one, a FIFO and a link. No call shows, changes or waits for what
// is not its own.
func TestSwaps(t *testing.T) {
	p := newPlace(t)
	p.write("dir/f", "inside\n")
	p.write("file", "inside\n")
	p.write(p.out+"/f", secret)
	p.write(".env", secret)
	p.link(p.out, "out")
	p.link(p.out+"/f", "outfile")
	if err := syscall.Mkfifo(p.path("fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	g := p.gate()
	g.shows("dir/f", "inside")
	var stop sync.WaitGroup
	done := make(chan struct{})
	stop.Go(func() {
		swap := func(a, b string) {
			_ = unix.Renameat2(unix.AT_FDCWD, p.path(a), unix.AT_FDCWD, p.path(b), unix.RENAME_EXCHANGE)
		}
		for {
			select {
			case <-done:
				return
			default:
			}
			for _, pair := range [][2]string{{"dir", "out"}, {"file", "outfile"}, {"file", "fifo"}, {"dir/f", "file"}} {
				swap(pair[0], pair[1])
				swap(pair[0], pair[1])
			}
		}
	})
	begin, seen, changed := time.Now(), 0, 0
	for n := 0; time.Since(begin) < 700*time.Millisecond; n++ {
		for _, path := range []string{"dir/f", "file"} {
			if text, err := g.view(path); err == nil {
				seen++
				if strings.Contains(text, secret) {
					t.Fatalf("view %s showed the secret", path)
				}
			}
			if err := g.put(path, "inside\n"); err == nil {
				changed++
			} else if code := fault.CodeOf(err); code == fault.Internal {
				t.Fatal(err)
			}
		}
		if err := g.put("dir/new/f", "x\n"); err == nil {
			_ = os.RemoveAll(p.path("dir/new"))
		}
	}
	close(done)
	stop.Wait()
	if seen == 0 || changed == 0 {
		t.Errorf("control: %d views and %d writes succeeded, want some", seen, changed)
	}
	if p.read(p.out+"/f") != secret || p.read(".env") != secret {
		t.Error("a file was changed that is not ours")
	}
	p.absent(p.out + "/new")
}

// TestMovedAway: a hidden folder or file stays hidden where it is moved with
// the folder around it.
func TestMovedAway(t *testing.T) {
	p := newPlace(t)
	p.write("a/priv/x", secret)
	p.write("a/one.txt", secret)
	p.write("a/other", "open\n")
	p.pol.Protect.Hidden = []string{"a/priv", "a/one.txt"}
	p.pol.Protect.Locked = []string{"a/other"}
	g := p.gate()
	g.noView("a/priv/x", "a/one.txt")
	p.sh("mv a b")
	g.noView("b/priv/x", "b/one.txt")
	g.shows("b/other", "open")
	g.noWrite("b/other")
	// Numbers are used again: what is born later is a file of its own.
	p.sh("rm -rf b; sleep 0.02; for i in 1 2 3 4 5 6; do echo open >n$i; done")
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		g.shows(name, "open")
		g.takes(name)
	}
}

func FuzzPath(f *testing.F) {
	p := newPlace(f)
	p.write("sub/in", "inside\n")
	p.write(".env", secret)
	p.write(".ssh/x", secret)
	p.write(p.out+"/f", secret)
	p.write(p.top+"/home/f", secret)
	p.link(p.out, "out")
	p.link("/", "root")
	p.link("sub", "link")
	p.link("../out/f", "leak")
	p.link(".env", "alias")
	g := p.gate()
	for _, seed := range []string{"sub/in", "out/f", "root" + p.out + "/f", "link/../leak", "../out/f", ".ENV", "sub/../.ssh/x", p.w + "/alias",
		"/tmp/../etc/passwd", "a\x00", "", "\xff", strings.Repeat("../", 50) + "etc/passwd", "root/proc/self/root" + p.out + "/f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r, err := g.View(ViewRequest{Path: path})
		if strings.Contains(r.Text, secret) {
			t.Fatalf("view %q shows the secret", path)
		}
		if strings.HasPrefix(r.Text, "root:") {
			t.Fatalf("view %q shows a file of the system", path)
		}
		if err != nil && fault.CodeOf(err) == fault.Internal {
			t.Fatalf("view %q: %v", path, err)
		}
		if len(path) > 200 {
			return
		}
		if w, err := g.Write(WriteRequest{Path: path, Text: "inside\n"}); err == nil && !strings.HasPrefix(w.Path, "/tmp") {
			if strings.HasPrefix(w.Path, "/") || w.Path == ".." || strings.HasPrefix(w.Path, "../") {
				t.Fatalf("write %q went to %q", path, w.Path)
			}
		}
		f, _ := os.ReadFile(p.out + "/f")
		env, _ := os.ReadFile(p.w + "/.env")
		if string(f) != secret || string(env) != secret {
			t.Fatalf("write %q changed what it must not", path)
		}
	})
}

func BenchmarkView(b *testing.B) {
	p := newPlace(b)
	p.write("a/b/c/file.go", strings.Repeat("some line of code\n", 200))
	g := p.gate()
	for b.Loop() {
		if _, err := g.view("a/b/c/file.go"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "views/s")
}

func BenchmarkReplace(b *testing.B) {
	p := newPlace(b)
	p.write("a/b/c/file.go", strings.Repeat("some line of code\n", 200)+"one\n")
	g := p.gate()
	old, new := "one\n", "two\n"
	for b.Loop() {
		if _, err := g.Replace(ReplaceRequest{Path: "a/b/c/file.go", Old: old, New: new}); err != nil {
			b.Fatal(err)
		}
		old, new = new, old
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "edits/s")
}
