//go:build linux || darwin

package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/environ"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// passVariable names variables that the caller lets through.
const passVariable = "TETHER_ENV_PASSTHROUGH"

// Plan pins a policy to this machine.
func (at World) Plan(ctx context.Context, pol policy.Policy, o world.Options) (*plan.Plan, error) {
	host, err := caller(o.Environ)
	if err != nil {
		return nil, err
	}
	more, err := environ.ParsePassthrough(lookup(o.Environ, passVariable))
	if err != nil {
		return nil, err
	}
	confined := o.Provider != enforce.Unconfined && o.Provider != enforce.Guard
	if host.Run, err = runFolder(); err != nil {
		return nil, err
	}
	var done func()
	host.Known, done = at.known(pol, o.Warm)
	defer done()
	p, err := plan.Resolve(ctx, pol, host, o.Dir)
	if err != nil {
		return nil, err
	}
	if len(more) > 0 {
		pol.Env.Pass = append(append([]string{}, pol.Env.Pass...), more...)
		for _, name := range more {
			p.Widened = append(p.Widened, passVariable+" lets "+name+" through")
		}
	}
	if confined {
		if err := caches(p, host); err != nil {
			return nil, err
		}
		if o.Tmp != "" {
			if err := showTmp(p, host, o.Tmp, o.Provider); err != nil {
				return nil, err
			}
		}
		if pol.Network.Mode == policy.Gated {
			showNames(p)
		}
	}
	return p, environment(p, pol, host, o, confined)
}

// caches shows the private caches of this workspace under this policy. A wider
// policy never uses a narrower one's: what an untrusted run left there would
// run with more rights.
func caches(p *plan.Plan, host plan.Host) error {
	if p.Policy.Profile != policy.WorkspaceWrite || host.Home == "" {
		return nil
	}
	dir := filepath.Join(host.StateDir, "cache", workspaceKey(p), policyKey(p.Policy))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.Wrap(fault.SandboxUnavailable, "cannot make the folder of private caches", err).
			WithHint("make " + filepath.Dir(host.StateDir) + " writable, or set XDG_STATE_HOME")
	}
	if p.Identity.Root && !p.Identity.Idmapped {
		if err := os.Chown(dir, int(p.Identity.HostUID), int(p.Identity.HostGID)); err != nil {
			return fault.Wrap(fault.SandboxUnavailable, "cannot hand over the private caches", err)
		}
	}
	return p.ShowCache(dir)
}

func workspaceKey(p *plan.Plan) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%d:%s", p.Identity.UID, p.Workspace.Dev, p.Workspace.Ino, p.Workspace.Path))
	return hex.EncodeToString(sum[:8])
}

// policyKey names what a policy allows, apart from the workspace and limits.
func policyKey(pol policy.Policy) string {
	pol = pol.Canonical()
	pol.Workspace, pol.Limits, pol.Env.Redact = "", policy.Limits{}, nil
	raw, err := json.Marshal(pol)
	if err != nil {
		raw = fmt.Appendf(nil, "%#v", pol)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

// environment composes the command's environment.
func environment(p *plan.Plan, pol policy.Policy, host plan.Host, o world.Options, confined bool) error {
	in := environ.Input{
		Host: o.Environ, Profile: pol.Profile, Policy: pol.Env,
		Workspace: p.Workspace.Path, Dir: p.Dir, Home: p.Home, User: userName(host, p),
		Offline: pol.Network.Mode == policy.Offline, Path: p.Path,
	}
	if confined {
		in.Private = environ.Private{Cache: p.Cache, Config: p.User + "/config", Data: p.User + "/data",
			State: p.User + "/state", Runtime: p.User + "/runtime"}
		if in.Private.Cache == "" {
			in.Private.Cache = p.User + "/cache"
		}
		in.GitConfig, in.GoModules, in.MavenRepository = p.GitConfig, p.GoModules, p.MavenRepository
		company(&in, p, host.Home)
		in.Sandbox = string(ownJail) // another provider puts its own name there
		in.Tmp = p.Tmp
		in.Add = p.Env
	} else if in.Home == "" || pol.Profile == policy.FullAccess {
		in.Home = host.Home
	}
	res, err := environ.Build(in)
	if err != nil {
		return err
	}
	p.Env = res.Env
	p.Scrubbed = slices.Concat(res.Dropped, res.Trimmed, res.Passed)
	for _, r := range res.Refused {
		p.Scrubbed = append(p.Scrubbed, r.Name)
		p.Notes = append(p.Notes, plan.Note{What: "the variable " + r.Name + " was not passed: " + r.Why,
			Hint: "--env " + r.Name})
	}
	if !confined {
		return nil
	}
	for _, c := range res.Create {
		if p.Cache != "" && strings.HasPrefix(c, p.Cache+"/") {
			if err := os.MkdirAll(filepath.Join(p.CacheDir, c[len(p.Cache):]), 0o700); err != nil {
				return fault.Wrap(fault.SandboxUnavailable, "cannot make a private cache", err)
			}
			continue
		}
		p.Dirs = append(p.Dirs, c)
	}
	for _, c := range res.Certificates {
		p.ShowFile(c)
	}
	return nil
}

// company passes settings of package managers that live in the hidden home:
// registries and proxies, without their credentials.
func company(in *environ.Input, p *plan.Plan, home string) {
	if home == "" {
		return
	}
	if text := readSetting(home + "/.config/go/env"); text != "" {
		in.Defaults = append(in.Defaults, environ.GoEnv(text)...)
	}
	for _, name := range []string{"/.config/pip/pip.conf", "/.pip/pip.conf"} {
		if text := readSetting(home + name); text != "" {
			in.Defaults = append(in.Defaults, environ.PipConf(text)...)
			break
		}
	}
	if text := environ.Npmrc(readSetting(home + "/.npmrc")); text != "" {
		p.Files = append(p.Files, plan.File{Path: in.Private.Config + "/npmrc", Content: []byte(text)})
	}
}

// readSetting returns a small regular file of the caller's home, or nothing.
func readSetting(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 1 << 20
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	raw, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(raw)
}

// userName is the account name that the command sees.
func userName(host plan.Host, p *plan.Plan) string {
	if p.Identity.UID == host.UID {
		return host.User
	}
	return accountName(p.Identity.UID)
}
