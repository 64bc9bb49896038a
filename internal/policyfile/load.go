package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tether-sandbox/tether/fault"
)

// fileName is the name of a policy file, in the user's folder and in the
// workspace's.
const fileName = "policy.toml"

// workspaceFolder is Tether's folder in a workspace. It is locked inside.
const workspaceFolder = ".tether"

// Load reads the user's file, policy.toml in configDir, and the workspace's,
// .tether/policy.toml, and returns their layers, the user's first. A file that
// does not exist has no layer; a folder given as "" is not looked into. What
// stands in stateDir says whether the workspace's file is trusted.
//
// A file that exists and cannot be read, or is not what a policy may come from,
// is an error: POLICY_INVALID, with what to do. The user's file must be theirs
// or root's and writable by nobody else; a link is followed only to a file of
// root's that the user cannot write, since what commands may write must not
// decide what they may do. The workspace's file is read without following any
// link below the workspace, must be a regular file with one name, and belong to
// the caller or to the owner of the workspace. Nothing that is read can block.
func Load(stateDir, configDir, workspace string) ([]Layer, error) {
	var layers []Layer
	if configDir != "" {
		path := filepath.Join(configDir, fileName)
		content, err := readUser(configDir, path)
		if err != nil {
			return nil, err
		}
		if content != nil {
			l, err := Parse(path, content)
			if err != nil {
				return nil, err
			}
			l.Trusted = true
			layers = append(layers, l)
		}
	}
	l, err := loadWorkspace(stateDir, workspace)
	if err != nil || l == nil {
		return layers, err
	}
	return append(layers, *l), nil
}

// loadWorkspace reads the file of the workspace; nil if there is none.
func loadWorkspace(stateDir, workspace string) (*Layer, error) {
	path := filepath.Join(workspace, workspaceFolder, fileName)
	if _, err := os.Stat(filepath.Join(workspace, workspaceFolder)); errors.Is(err, fs.ErrPermission) {
		return nil, fault.Wrap(fault.SandboxBadWorkspace, "cannot look into "+workspace, fs.ErrPermission).
			WithHint("-C DIR, with DIR a project's own folder")
	}
	f, err := readWorkspace(workspace, path)
	if err != nil || f == nil {
		return nil, err
	}
	l, err := Parse(path, f.content)
	if err != nil {
		return nil, err
	}
	l.Workspace = true
	l.Trusted, l.distrust = trusted(stateDir, f.identity, f.content)
	return &l, nil
}

// file is what was read of a workspace.
type file struct {
	content  []byte
	identity identity
}

// unfit refuses a file that no policy may come from.
func unfit(path, why, hint string) error {
	return invalid(path+": "+why, hint)
}

func unreadable(path string, err error) error {
	return fault.Wrap(fault.PolicyInvalid, "cannot read "+path, err).WithHint("make it a readable file, or remove it")
}
