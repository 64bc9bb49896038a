package local

import (
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/inner"
	"github.com/tether-sandbox/tether/internal/enforce/supervise"
)

// startBare starts a job with no sandbox. The inner stage still stands between:
// it keeps hold of the process tree, and ends it when the command has ended or
// we are gone.
func startBare(job enforce.Job) (enforce.Process, error) {
	program := &supervise.Direct{Path: "/proc/self/exe", Args: []string{inner.Name}, Env: []string{},
		Sys: &syscall.SysProcAttr{Setsid: true}}
	p, err := supervise.Launch(program, func(m inner.Message) error { return fault.New(fault.Internal, m.What) })
	if err != nil {
		return nil, err
	}
	if err := p.Begin(&job); err != nil {
		p.Discard()
		return nil, err
	}
	return bare{p}, nil
}

// bare is a process whose tree no namespace holds together.
type bare struct{ *supervise.Process }

// Kill ends the inner stage by way of itself, since nobody else finds what the
// command has started.
func (b bare) Kill() { b.HangUp() }
