package local

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/enforce/walls"
	"github.com/tether-sandbox/tether/internal/environ"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// startWalled starts a job without namespaces, with a private folder on the host
// that lasts as long as the job. The gate is a proxy on the host's own loopback,
// to whose port the walls hold the command; a kernel that cannot do that has no
// way out, which gateless tells.
func startWalled(p *plan.Plan, abi int, o *outlet, job enforce.Job, crowded crowding) (enforce.Process, error) {
	job.Order.Gate = nil
	if len(p.Policy.Network.Publish) > 0 {
		return nil, fault.New(fault.SandboxUnavailable, "provider landlock has no network of its own whose ports could be published").
			WithHint("leave out --publish")
	}
	gated := o.rules != nil && abi >= enforce.TCPABI
	filter, err := seccomp.Compile(seccomp.Options{Arch: runtime.GOARCH, Inet: p.Policy.Network.Mode == policy.Open, TCP: gated, SetGID: !p.Identity.Root})
	if err != nil {
		return nil, err
	}
	job.Order.Filter = filter
	crowdOutside(&job.Order.Limits, crowded.bounded)
	if crowded.counted {
		job.Order.Limits.Processes = 0 // a group refuses what the inner stage would end the call for
	}
	job.Order.Env = environ.Within(job.Order.Env, string(enforce.Landlock))
	var port uint16
	if gated {
		if port, err = o.serveHost(); err != nil {
			return nil, err
		}
		job.Order.Env = append(job.Order.Env[:len(job.Order.Env):len(job.Order.Env)], o.hostEnv(port)...)
	}
	private, release, err := holdPrivate(p)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Env = job.Order.Env
	proc, err := walls.Start(&q, private, port, job)
	if err != nil {
		_ = release()
		return nil, err
	}
	return &walled{proc, release}, nil
}

// gateless is what a run under --network gated is told of an old kernel.
const gateless = "provider landlock has no way to the gate before Linux 6.7: nothing leads out, also not to hosts that are allowed"

func holdPrivate(p *plan.Plan) (dir string, release func() error, err error) {
	top := p.StateDir
	pass := p.Identity.Root && !p.Identity.Idmapped
	if pass {
		top = rootsPrivate
	}
	name, release, err := HoldTmp(top)
	if err != nil {
		return "", nil, err
	}
	held := filepath.Join(top, privateFolder, name)
	if pass {
		for _, d := range []string{top, filepath.Dir(held)} {
			if err == nil {
				err = os.Chmod(d, 0o711)
			}
		}
		// Inside, all may be open to everybody, as in a /tmp.
		if err == nil {
			err = os.Chown(held, 0, int(p.Identity.HostGID))
		}
		if err == nil {
			err = os.Chmod(held, 0o710)
		}
	}
	dir = filepath.Join(held, "world")
	if err == nil {
		err = os.Mkdir(dir, 0o711)
	}
	if err != nil {
		_ = release()
		return "", nil, fault.Wrap(fault.SandboxUnavailable, "cannot make the private folder of the run", err)
	}
	return dir, release, nil
}

// walled gives the private folder back when the process is gone.
type walled struct {
	enforce.Process
	release func() error
}

// Ready is part of enforce.Process.
func (w *walled) Ready() error {
	err := w.Process.Ready()
	if err != nil {
		<-w.Gone()
		_ = w.release()
	}
	return err
}

// Wait is part of enforce.Process.
func (w *walled) Wait() (enforce.Ended, error) {
	ended, err := w.Process.Wait()
	<-w.Gone()
	_ = w.release() // what stays is taken away by the next run
	return ended, err
}
