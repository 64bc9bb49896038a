package policy

// Default returns the policy of a user who says nothing: workspace-write in
// workspace, the system's folders to read, HOME in the workspace, public hosts
// through the gate, built-in limits and protection. It is valid when workspace
// is (see [Policy.Validate]).
func Default(workspace string) Policy {
	return Policy{
		Profile:   WorkspaceWrite,
		Workspace: workspace,
		Reads:     Reads{System: true},
		Home:      HomeWorkspace,
		Network:   Network{Mode: Gated, Public: true},
	}
}

// WithProfile returns p under another profile. Under FullAccess, where no
// other network can be enforced, it is open.
//
// Nothing else changes: what the new profile contradicts, such as write roots
// under ReadOnly, is for [Policy.Validate] to refuse. p itself is untouched,
// but its slices and maps are shared with the result.
func (p Policy) WithProfile(profile Profile) Policy {
	p.Profile = profile
	if profile == FullAccess {
		p.Network = Network{Mode: Open}
	}
	return p
}
