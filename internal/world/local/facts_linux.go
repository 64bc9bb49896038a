package local

import (
	"os"
	"path/filepath"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/bwrap"
	"github.com/tether-sandbox/tether/internal/enforce/cgroup"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// Facts looks at the kernel, its settings and the programs that matter.
func Facts() machine.Facts {
	f := machine.Look()
	path, err := bwrap.Find()
	if f.Bwrap = path; err != nil {
		f.BwrapWhy = fault.TextOf(err)
	}
	at := cgroup.Find()
	// As a run asks for them: systemd is asked for memory, and then for all.
	all := at.Asks(cgroup.Want{Memory: 1})
	f.Groups = machine.Groups{Memory: at.Memory(), Processes: at.Processes() || all, Time: at.Time(), Means: at.Means(), Way: cgroup.Way("tether run --max-memory 2G -- CMD")}
	if !f.Groups.Memory {
		f.Groups.Why = at.Why().Error()
	}
	f.BareExplicit = true
	if host, err := caller(os.Environ()); err == nil {
		f.BareExplicit = bareExplicit(gitmeta.HostEntries(host.Home, filepath.Dir(host.ConfigDir)))
	}
	return f
}
