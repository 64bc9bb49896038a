package bwrap

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce/supervise"
)

// lifeline ties bwrap, and what it has forked, to our life.
//
// The parent-death signal leaves a gap: bwrap's child asks for it some time
// after the fork, and a bwrap that dies in between leaves a child that waits
// for it for ever (containers/bubblewrap#730). Here the kernel signals bwrap's
// whole process group when the last writer of a pipe is gone, and that is us.
// bwrap gets its arguments only when that is settled, and forks only then.
type lifeline struct {
	theirs, ours *os.File // of the pipe
	// args and write are the two ends of a socket that brings the arguments.
	args, write *os.File
}

func newLifeline() (*lifeline, error) {
	l := &lifeline{}
	var err error
	if l.theirs, l.ours, err = os.Pipe(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.cut()
		return nil, err
	}
	l.args, l.write = os.NewFile(uintptr(pair[0]), "arguments"), os.NewFile(uintptr(pair[1]), "arguments")
	// As long as this lies unread, our end is the reader's error (ECONNRESET,
	// see unix(7)) and not the end of the arguments: bwrap would go on with what
	// it has of them.
	if _, err = l.args.Write([]byte{0}); err != nil {
		l.cut()
		return nil, err
	}
	return l, nil
}

// tie lets a process group die when we do, and lets bwrap go on with its
// arguments.
func (l *lifeline) tie(p *supervise.Process, args []byte) error {
	conn, err := l.theirs.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(raw uintptr) {
		flags, err := unix.FcntlInt(raw, unix.F_GETFL, 0)
		for _, c := range [...][2]int{{unix.F_SETSIG, int(syscall.SIGKILL)}, {unix.F_SETOWN, -p.PID()}, {unix.F_SETFL, flags | unix.O_ASYNC}} {
			if err == nil {
				_, err = unix.FcntlInt(raw, c[0], c[1])
			}
		}
		failed = err
	})
	l.theirs.Close()
	l.args.Close()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	go func() {
		defer l.write.Close()
		if _, err := l.write.Write(args); err == nil { // whoever does not read them says why
			_, _ = l.write.Read(make([]byte, 1))
		}
	}()
	return nil
}

// cut frees everything. What is still alive then dies.
func (l *lifeline) cut() {
	for _, f := range [...]*os.File{l.theirs, l.ours, l.args, l.write} {
		if f != nil {
			f.Close()
		}
	}
}
