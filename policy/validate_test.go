package policy_test

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func TestDefault(t *testing.T) {
	p := policy.Default("/w")
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess} {
		q := p.WithProfile(profile)
		if err := q.Validate(); err != nil || q.Profile != profile {
			t.Errorf("%v: got %v, %v", profile, q.Profile, err)
		}
	}
	p.Network = policy.Network{Mode: policy.Gated, Deny: []string{"x"}}
	if got := p.WithProfile(policy.FullAccess).Validate(); got != nil {
		t.Errorf("full access from a gated policy: %v", got)
	}
	if got := p.WithProfile(policy.ReadOnly).Network.Mode; got != policy.Gated {
		t.Errorf("read-only from a gated policy: got the network %v", got)
	}
}

func TestValidate(t *testing.T) {
	base := func(profile policy.Profile) policy.Policy { return policy.Default("/w").WithProfile(profile) }
	const (
		ro, ww, full = policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess
	)
	for _, tt := range []struct {
		name    string
		profile policy.Profile
		change  func(*policy.Policy)
		hint    string // empty: valid
	}{
		{"roots", ww, func(p *policy.Policy) { p.Read, p.Write = []string{"/a", "~/b", "~"}, []string{"/c/", "//d/./e"} }, ""},
		{"workspace below home", ww, func(p *policy.Policy) { p.Workspace = "~/x" }, ""},
		{"read roots under read-only", ro, func(p *policy.Policy) { p.Read = []string{"/a"} }, ""},
		{"only", ww, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/a"}} }, ""},
		{"commands", ro, func(p *policy.Policy) { p.Commands = policy.Any }, ""},
		{"rules", ww, func(p *policy.Policy) {
			p.Network = policy.Network{Mode: policy.Gated, Public: true, Allow: []string{"a:1"}, Deny: []string{"b"}, Publish: []uint16{1, 65535}}
		}, ""},
		{"gate that lets nothing out", ww, func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Gated} }, ""},
		{"publish offline", ww, func(p *policy.Policy) { p.Network = policy.Network{Publish: []uint16{80}} }, ""},
		{"env", ww, func(p *policy.Policy) { p.Env.Pass, p.Env.Set = []string{"A"}, map[string]string{"A": ""} }, ""},
		{"no scrub", full, func(p *policy.Policy) { p.Env.NoScrub = true }, ""},
		{"patterns", ww, func(p *policy.Policy) { p.Protect.Hidden, p.Protect.Locked = []string{"a/**"}, []string{"*.x"} }, ""},
		{"allow config", ww, func(p *policy.Policy) {
			p.Protect.AllowConfig = []string{".vscode", "/w/.claude", "~/x/.idea", "./a"}
		}, ""},
		{"accept", ww, func(p *policy.Policy) { p.Accept = map[policy.Guarantee]policy.Grade{policy.IPC: policy.Complete} }, ""},
		{"limits", ww, func(p *policy.Policy) { p.Limits = policy.Limits{1, 1, 1, 1, 1, policy.LeastOpenFiles, 1, 1, 1} }, ""},

		{"nothing", policy.Nothing, func(p *policy.Policy) {}, "read-only, workspace-write or full-access"},
		{"no profile", 4, func(p *policy.Policy) {}, "use read-only"},
		{"negative profile", -1, func(p *policy.Policy) {}, "use read-only"},
		{"no commands", ro, func(p *policy.Policy) { p.Commands = 2 }, "inspection or any"},
		{"no mode", ww, func(p *policy.Policy) { p.Network.Mode = 3 }, "gated"},
		{"no home", ww, func(p *policy.Policy) { p.Home = -1 }, "private"},
		{"no guarantee", ww, func(p *policy.Policy) { p.Accept = map[policy.Guarantee]policy.Grade{7: policy.None} }, "secrets"},
		{"no grade", ww, func(p *policy.Policy) { p.Accept = map[policy.Guarantee]policy.Grade{policy.IPC: 3} }, "Partial"},
		{"no workspace", ww, func(p *policy.Policy) { p.Workspace = "" }, "--workspace"},
		{"relative workspace", ww, func(p *policy.Policy) { p.Workspace = "w" }, "begin it with /"},
		{"workspace with ..", ww, func(p *policy.Policy) { p.Workspace = "/w/../x" }, "without .."},
		{"relative root", ww, func(p *policy.Policy) { p.Write = []string{"/a", "b"} }, "begin it with /"},
		{"another's home", ww, func(p *policy.Policy) { p.Read = []string{"~bob/x"} }, "begin it with /"},
		{"empty root", ww, func(p *policy.Policy) { p.Read = []string{""} }, "leave it out"},
		{"NUL in a root", ww, func(p *policy.Policy) { p.Read = []string{"/a\x00b"} }, "as it is"},
		{"root with ..", ww, func(p *policy.Policy) { p.Read = []string{"/.."} }, "without .."},
		{"home with ..", ww, func(p *policy.Policy) { p.Write = []string{"~/../x"} }, "without .."},
		{"relative only", ww, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"."}} }, "begin it with /"},
		{"only and system", ww, func(p *policy.Policy) { p.Reads.Only = []string{"/a"} }, "keep the list"},
		{"write roots under read-only", ro, func(p *policy.Policy) { p.Write = []string{"/a"} }, "--allow-read"},
		{"hidden pattern", ww, func(p *policy.Policy) { p.Protect.Hidden = []string{"["} }, "backslash"},
		{"locked pattern", ww, func(p *policy.Policy) { p.Protect.Locked = []string{""} }, "leave it out"},
		{"empty allow config", ww, func(p *policy.Policy) { p.Protect.AllowConfig = []string{""} }, "write a path"},
		{"climbing allow config", ww, func(p *policy.Policy) { p.Protect.AllowConfig = []string{"a/../.."} }, "write a path"},
		{"allow config of all", ww, func(p *policy.Policy) { p.Protect.AllowConfig = []string{"./"} }, "the one file"},
		{"allow config of /", ww, func(p *policy.Policy) { p.Protect.AllowConfig = []string{"/"} }, "the one file"},
		{"allow config of a root", ww, func(p *policy.Policy) { p.Protect.AllowConfig = []string{"/w/"} }, "the one file"},
		{"allow config over a root", ww, func(p *policy.Policy) {
			p.Read = []string{"/x/y"}
			p.Protect.AllowConfig = []string{"/x"}
		}, "the one file"},
		{"allow rule, open", ww, func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Open, Allow: []string{"a"}} }, "--network gated"},
		{"deny rule, open", ww, func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Open, Deny: []string{"a"}} }, "--network gated"},
		{"deny rule, offline", ww, func(p *policy.Policy) { p.Network = policy.Network{Deny: []string{"a"}} }, "--network gated"},
		{"empty rule", ww, func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Gated, Allow: []string{""}} }, "example.com"},
		{"rule with a space", ww, func(p *policy.Policy) { p.Network = policy.Network{Mode: policy.Gated, Deny: []string{"a b"}} }, "example.com"},
		{"port 0", ww, func(p *policy.Policy) { p.Network.Publish = []uint16{80, 0} }, "1 and 65535"},
		{"bad name to pass", ww, func(p *policy.Policy) { p.Env.Pass = []string{"A=b"} }, "letters"},
		{"empty name to pass", ww, func(p *policy.Policy) { p.Env.Pass = []string{""} }, "letters"},
		{"bad name to set", ww, func(p *policy.Policy) { p.Env.Set = map[string]string{"A-": ""} }, "letters"},
		{"NUL in a value", ww, func(p *policy.Policy) { p.Env.Set = map[string]string{"A": "\x00"} }, "encode"},
		{"no scrub while confined", ww, func(p *policy.Policy) { p.Env.NoScrub = true }, "--env NAME"},
		{"negative time", ww, func(p *policy.Policy) { p.Limits.Time = -1 }, "positive"},
		{"negative output", ww, func(p *policy.Policy) { p.Limits.OutputBytes = -1 }, "positive"},
		{"negative processes", ww, func(p *policy.Policy) { p.Limits.Processes = -1 }, "positive"},
		{"negative memory", ww, func(p *policy.Policy) { p.Limits.MemoryBytes = -1 }, "positive"},
		{"negative open files", ww, func(p *policy.Policy) { p.Limits.OpenFiles = -1 }, "positive"},
		{"negative cpu", ww, func(p *policy.Policy) { p.Limits.CPU = -1 }, "positive"},
		{"negative free disk", ww, func(p *policy.Policy) { p.Limits.FreeDisk = -1 }, "positive"},
		{"negative scratch", ww, func(p *policy.Policy) { p.Limits.ScratchBytes = -1 }, "positive"},
		{"too few open files", ww, func(p *policy.Policy) { p.Limits.OpenFiles = policy.LeastOpenFiles - 1 }, "--max-open-files 16"},
		{"negative file size", ww, func(p *policy.Policy) { p.Limits.FileBytes = -1 }, "positive"},
		{"full access, offline", full, func(p *policy.Policy) { p.Network.Mode = policy.Offline }, "--network open"},
		{"full access, gated", full, func(p *policy.Policy) { p.Network.Mode = policy.Gated }, "--network open"},
		{"full access, hidden", full, func(p *policy.Policy) { p.Protect.Hidden = []string{"a"} }, "leave it out"},
		{"full access, locked", full, func(p *policy.Policy) { p.Protect.Locked = []string{"a"} }, "leave it out"},
		{"full access, only", full, func(p *policy.Policy) { p.Reads = policy.Reads{Only: []string{"/a"}} }, "leave it out"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := base(tt.profile)
			tt.change(&p)
			err := p.Validate()
			if tt.hint == "" {
				if err != nil {
					t.Errorf("got %v (%s), want it valid", err, fault.HintOf(err))
				}
				return
			}
			refused(t, err, tt.hint)
			if err == nil {
				t.Error("got no error")
			}
			if strings.Contains(fault.HintOf(err), "no-sandbox") {
				t.Errorf("the hint %q suggests to run without a sandbox", fault.HintOf(err))
			}
		})
	}
}

func TestValidateWideWorkspace(t *testing.T) {
	for _, w := range []string{"/", "//", "/.", "~", "~/"} {
		err := policy.Default(w).Validate()
		if got := fault.CodeOf(err); got != fault.SandboxBadWorkspace || fault.HintOf(err) == "" {
			t.Errorf("%q: got %q (%v), want %q with a hint", w, got, err, fault.SandboxBadWorkspace)
		}
	}
}
