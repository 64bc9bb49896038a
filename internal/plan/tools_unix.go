//go:build linux || darwin

package plan

import (
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/plan/toolchain"
)

// tools shows the toolchains that lie under a hidden home: the folders that a
// tool needs and no more, always read-only.
func (r *resolver) tools() {
	if r.host.Home == "" || !r.p.Policy.Reads.System {
		return
	}
	in := toolchain.Input{Home: r.host.Home, Homes: r.host.Homes, Env: r.host.Environ}
	for _, v := range r.p.Views {
		if v.Origin == Workspace || v.Origin == Added && v.Writable {
			in.Roots = append(in.Roots, v.Path)
		} else if !v.File {
			in.Visible = append(in.Visible, v.Path)
		}
	}
	found := toolchain.Shown(in)
	for _, s := range found.Shows {
		root, _, err := openRoot(s.Path)
		if err != nil || root.Path != s.Path {
			continue
		}
		r.view(View{Root: root, Origin: Toolchain, File: s.File})
		for _, d := range s.Deny {
			r.deny(d, s.Tool)
		}
	}
	for _, l := range found.Links {
		r.link(Link(l))
	}
	for _, c := range found.Caches {
		switch c.Tool {
		case "go":
			r.p.GoModules = c.Path
		case "maven":
			r.p.MavenRepository = c.Path
		default:
			if c.Env == "" {
				continue // read from its own place only by a copy of ours
			}
			r.p.Env = append(r.p.Env, c.Env)
		}
		if root, _, err := openRoot(c.Path); err == nil {
			r.view(View{Root: root, Origin: Toolchain, NoExec: true})
		}
	}
	r.p.Env = append(r.p.Env, found.Env...)
}

// deny hides what lies in a toolchain's folder and is not for a command.
func (r *resolver) deny(path, tool string) {
	root, info, err := openRoot(path)
	if err != nil || root.Path != path {
		return
	}
	m := secrets.Mask{Path: path, Dev: root.Dev, Ino: root.Ino, Why: "settings of " + tool + " may hold credentials"}
	if info.IsDir() {
		m.Kind = secrets.MaskDir
	}
	r.p.Masks = append(r.p.Masks, m)
}
