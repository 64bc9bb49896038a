//go:build linux || darwin

package local

import (
	"context"
	"syscall"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/world"
)

// grace is how long a command has between SIGTERM and SIGKILL.
const grace = 2 * time.Second

// attend sees a command through to its end: its limit, its signals, the
// caller's patience.
func attend(ctx context.Context, proc enforce.Process, c world.Command, out *world.Outcome) (enforce.Ended, error) {
	type end struct {
		enforce.Ended
		err error
	}
	done := make(chan end, 1)
	go func() {
		e, err := proc.Wait()
		done <- end{e, err}
	}()
	var limit, last <-chan time.Time
	if c.Time > 0 {
		t := time.NewTimer(c.Time)
		defer t.Stop()
		limit = t.C
	}
	stop := ctx.Done()
	interrupts := 0
	for {
		select {
		case e := <-done:
			return e.Ended, e.err
		case <-limit:
			out.TimedOut = true
			proc.Signal(int(syscall.SIGTERM), true)
			wait := c.Grace
			if wait == 0 {
				wait = grace
			}
			t := time.NewTimer(wait)
			defer t.Stop()
			last = t.C
		case <-last:
			proc.Kill()
		case <-stop:
			proc.Kill()
			stop = nil
		case s := <-c.Signals:
			sig, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if interrupts++; interrupts > 1 {
				out.Ended = sig
				proc.Kill()
				continue
			}
			proc.Signal(int(sig), false)
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				// Whoever sent it wants us gone, whatever the command thinks.
				out.Ended = sig
				last = time.After(grace)
			}
		}
	}
}
