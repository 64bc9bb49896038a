//go:build linux || darwin

package plan

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/plan/toolchain"
	"github.com/tether-sandbox/tether/policy"
)

// Resolve pins a policy to this machine. Dir is the folder that the command
// starts in, absolute or relative to the workspace; empty is the workspace.
func Resolve(ctx context.Context, pol policy.Policy, host Host, dir string) (*Plan, error) {
	r := resolver{ctx: ctx, host: host, at: host.Layout, p: &Plan{Policy: pol, StateDir: host.StateDir, host: host}}
	r.p.host.Known = nil // it does not stay true
	if r.at == nil {
		r.at = layout()
	}
	if r.at.InPlace {
		r.at = r.at.in(host.Run)
	}
	r.p.InPlace = r.at.InPlace
	if err := r.roots(dir); err != nil {
		return nil, err
	}
	r.identity()
	if err := r.search(); err != nil {
		return nil, err
	}
	defer r.searched() // what it goes by may be another's afterwards
	if err := r.system(); err != nil {
		return nil, err
	}
	r.tools()
	if err := r.protected(); err != nil {
		return nil, err
	}
	r.scaffold()
	return r.p, nil
}

// Again resolves the same policy as things are now: what must be hidden and
// locked while a command of the plan runs.
func (p *Plan) Again(ctx context.Context) (*Plan, error) {
	return Resolve(ctx, p.Policy, p.host, p.Dir)
}

type resolver struct {
	at    *Layout
	ctx   context.Context
	host  Host
	p     *Plan
	homes []Root
	added []Root // roots of the policy besides the workspace
	// searched waits for the search for hidden files.
	searched func() (secrets.Result, error)
}

func (r *resolver) roots(dir string) error {
	for _, h := range r.host.Homes {
		if root, _, err := openRoot(h); err == nil {
			r.homes = append(r.homes, root)
		}
	}
	pol := &r.p.Policy
	ws, err := workspace(r.at, pol.Workspace, r.homes)
	if err != nil {
		return err
	}
	r.p.Workspace = ws
	write := pol.Profile == policy.WorkspaceWrite
	r.view(View{Root: ws, Origin: Workspace, Writable: write})
	if write && r.holdsOwn(ws) {
		return fault.New(fault.SandboxBadWorkspace, "Tether's own files lie in the workspace "+quote(ws.Path)).
			WithHint("set XDG_STATE_HOME and XDG_CONFIG_HOME to folders outside of it")
	}
	for _, path := range pol.Write {
		if err := r.add(path, write); err != nil {
			return err
		}
	}
	for _, path := range pol.Read {
		if err := r.add(path, false); err != nil {
			return err
		}
	}
	r.p.Dir = ws.Path
	if dir == "" {
		return nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(ws.Path, dir)
	}
	start, info, err := openRoot(dir)
	if err != nil || !info.IsDir() {
		return fault.Wrap(fault.SandboxViolation, "cannot start in "+quote(dir), err).
			WithHint("start in a folder inside " + quote(ws.Path))
	}
	if !r.shown(start.Path) {
		return fault.New(fault.SandboxViolation, "the start folder "+quote(start.Path)+" lies outside of the workspace "+quote(ws.Path)).
			WithHint("--allow-read " + quote(start.Path))
	}
	r.p.Dir = start.Path
	return nil
}

// shown says whether path lies in the workspace or an added root.
func (r *resolver) shown(path string) bool {
	return slices.ContainsFunc(r.p.Views, func(v View) bool { return inside(path, v.Path) })
}

// add shows a root of the policy. One that does not exist is left out with a
// note: the command still runs, with less. One that would undo what the
// sandbox rests on is refused.
func (r *resolver) add(path string, write bool) error {
	path = r.expand(path)
	root, info, err := openRoot(path)
	if err != nil {
		r.note("the added root "+quote(path)+" was left out: "+reason(err).Error(), "")
		return nil
	}
	if err := r.admit(path, root, write); err != nil {
		return err
	}
	r.view(View{Root: root, Origin: Added, Writable: write, File: !info.IsDir()})
	if info.IsDir() {
		r.added = append(r.added, root)
	}
	return nil
}

// view adds a view unless the same folder is there already, by identity; of
// two the writable one stays.
func (r *resolver) view(v View) {
	for i := range r.p.Views {
		w := &r.p.Views[i]
		if w.Dev == v.Dev && w.Ino == v.Ino && w.Target() == v.Target() {
			w.Writable = w.Writable || v.Writable
			return
		}
	}
	r.p.Views = append(r.p.Views, v)
}

func (r *resolver) note(what, hint string) {
	r.p.Notes = append(r.p.Notes, Note{What: what, Hint: hint})
}

// unusedID is the first id of a range that distributions and container tools
// leave alone: above the ranges of subuid files, below the sign bit.
const unusedID = 0x70000000

func (r *resolver) identity() {
	r.p.Identity = Identity{UID: r.host.UID, GID: r.host.GID, HostUID: r.host.UID, HostGID: r.host.GID}
	if r.p.Policy.Profile != policy.FullAccess {
		r.p.Identity = IdentityFor(r.host.UID, r.host.GID, r.p.Workspace)
	}
}

// IdentityFor says under which ids a command of the caller runs in a workspace.
func IdentityFor(uid, gid uint32, workspace Root) Identity {
	if uid != 0 || !ownsIDs() {
		return Identity{UID: uid, GID: gid, HostUID: uid, HostGID: gid}
	}
	if workspace.UID == 0 {
		return Identity{UID: 0, GID: workspace.GID, Root: true, HostUID: unusedID, HostGID: unusedID, Idmapped: true}
	}
	gid = groupOf(workspace)
	return Identity{UID: workspace.UID, GID: gid, Root: true, HostUID: workspace.UID, HostGID: gid}
}

// Accounts is the account database of the machine.
const Accounts = "/etc/passwd"

// groupOf returns the group under which root's command runs in somebody's
// workspace: the owner's own. The folder's group may be one that opens files of
// the system, such as root's, and says nothing of what the owner may do.
func groupOf(workspace Root) uint32 {
	raw, _ := os.ReadFile(Accounts)
	if account, ok := toolchain.Account(string(raw), workspace.UID); ok && account.GID != 0 {
		return account.GID
	}
	if workspace.GID != 0 {
		return workspace.GID
	}
	return workspace.UID // a group of the owner's own, as most systems number it
}
