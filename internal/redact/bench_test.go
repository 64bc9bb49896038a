package redact

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func tokens(n int) []Value {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]Value, n)
	for i := range list {
		b := make([]byte, 24+r.IntN(40))
		for j := range b {
			b[j] = alphanumeric[r.IntN(len(alphanumeric))]
		}
		list[i] = Value{fmt.Sprint("T", i), string(b)}
	}
	return list
}

// ordinary looks like the output of a build.
func ordinary(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "[%3d%%] compiling src/module_%d/file_%x.c -> build/obj/%016x.o (%d warnings)\n", r.IntN(100), r.IntN(50), r.IntN(1<<20), r.Uint64(), r.IntN(9))
	}
	return b.Bytes()[:n]
}

func BenchmarkWriter(b *testing.B) {
	texts := map[string][]byte{"build": ordinary(64 << 10), "random": make([]byte, 64<<10)}
	r := rand.New(rand.NewPCG(5, 6))
	for i := range texts["random"] {
		texts["random"][i] = byte(r.Uint32())
	}
	for _, n := range []int{1, 10, 100, 1000, 8000} {
		list := tokens(n)
		m := New(list)
		near := []byte{} // beginnings of values, the worst that can come
		for i := 0; len(near) < 64<<10; i++ {
			near = append(near, list[i%n].Text[:15]...)
		}
		texts["near"] = near
		for _, kind := range []string{"build", "random", "near"} {
			b.Run(fmt.Sprintf("%d/%s", n, kind), func(b *testing.B) {
				w := m.Writer(new(countingWriter), nil)
				b.SetBytes(int64(len(texts[kind])))
				b.ReportAllocs()
				for b.Loop() {
					_, _ = w.Write(texts[kind])
				}
			})
		}
	}
}

func BenchmarkSmallWrites(b *testing.B) {
	w := New(tokens(100)).Writer(new(countingWriter), nil)
	line := []byte("a line of ordinary length, as programs print them\n")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = w.Write(line)
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 8000} {
		list := tokens(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				New(list)
			}
		})
	}
}
