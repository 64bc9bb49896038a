package stream

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
)

const benchBytes = 256 << 20

// BenchmarkOutput carries a quarter of a gigabyte from a real program, in the
// ways that output can go; direct is the same without us.
func BenchmarkOutput(b *testing.B) {
	produce := func() *exec.Cmd { return exec.Command("head", "-c", "268435456", "/dev/zero") }
	through := func(b *testing.B, o Options) {
		b.Helper()
		set, err := Pipes(o)
		if err != nil {
			b.Fatal(err)
		}
		defer set.Close()
		c := produce()
		c.Stdout = set.Child()[1]
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		set.Start()
		if err := c.Wait(); err != nil {
			b.Fatal(err)
		}
		if err := set.Settled(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	// consumer starts a program that reads a pipe and throws it away.
	consumer := func(b *testing.B) (w *os.File, wait func()) {
		b.Helper()
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		c := exec.Command("dd", "of=/dev/null", "bs=1M", "status=none")
		c.Stdin = r
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		r.Close()
		return w, func() { w.Close(); _ = c.Wait() }
	}
	b.Run("direct to a pipe", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			w, wait := consumer(b)
			c := produce()
			c.Stdout = w
			if err := c.Run(); err != nil {
				b.Fatal(err)
			}
			wait()
		}
	})
	b.Run("pipe to pipe", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			w, wait := consumer(b)
			through(b, Options{Stdout: w})
			wait()
		}
	})
	b.Run("file", func(b *testing.B) {
		f, err := os.CreateTemp("", "")
		if err != nil {
			b.Fatal(err)
		}
		defer os.Remove(f.Name())
		defer f.Close()
		b.SetBytes(benchBytes)
		for b.Loop() {
			_ = f.Truncate(0)
			_, _ = f.Seek(0, io.SeekStart)
			through(b, Options{Stdout: f})
		}
	})
	b.Run("capture", func(b *testing.B) {
		b.SetBytes(benchBytes)
		for b.Loop() {
			through(b, Options{Stdout: new(Capture)})
		}
	})
}

// BenchmarkSet is what one command without output costs, without the command.
func BenchmarkSet(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		set, err := Pipes(Options{Stdout: new(Capture), Stderr: new(Capture)})
		if err != nil {
			b.Fatal(err)
		}
		set.Start()
		if err := set.Settled(context.Background()); err != nil {
			b.Fatal(err)
		}
		set.Close()
	}
}
