package local

import (
	"os"
	"path/filepath"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/machine"
	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
)

// Facts looks at the system and the programs that matter.
func Facts() machine.Facts {
	f := machine.Look()
	if err := seatbelt.Find(); err != nil {
		f.SandboxExecWhy = fault.TextOf(err)
	}
	f.BareExplicit = true
	if host, err := caller(os.Environ()); err == nil {
		f.BareExplicit = bareExplicit(gitmeta.HostEntries(host.Home, filepath.Dir(host.ConfigDir)))
	}
	return f
}
