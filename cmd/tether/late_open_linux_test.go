package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A file whose content decides is hidden also from who waits while its writer
// has it open, or mapped.
func TestLateOpen(t *testing.T) {
	j := newJail(t, "native")
	j.own()
	fill := func(f *os.File) error { // with what is public
		_, err := f.WriteString(strings.Repeat("\n", 4096))
		return err
	}
	res := lateRun(t, j, `appears a.pem; appears b.pem; cat a.pem b.pem >/dev/null && echo EMPTY; : >seen; closes a.pem; closes b.pem`, func() {
		a, errA := os.Create(filepath.Join(j.w, "a.pem"))
		b, errB := os.OpenFile(filepath.Join(j.w, "b.pem"), os.O_RDWR|os.O_CREATE, 0o644)
		if err := errors.Join(errA, errB, fill(b)); err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		defer b.Close()
		if within(5*time.Second, func() bool { _, err := os.Lstat(filepath.Join(j.w, "seen")); return err == nil }) < 0 {
			t.Error("control: they were not open at first")
		}
		m, err := syscall.Mmap(int(b.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		copy(m, "-----BEGIN PRIVATE KEY-----\n"+j.secret)
		_, _ = a.WriteString("-----BEGIN PRIVATE KEY-----\n" + j.secret)
		time.Sleep(1500 * time.Millisecond)
		_ = syscall.Munmap(m)
	})
	wantLate(t, j, res, "EMPTY", "CLOSED a.pem", "CLOSED b.pem")
}
