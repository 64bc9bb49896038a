package policy

// The tables are functions, not variables: nothing can change them, and a
// program that never parses pays nothing for them at its start.

func profiles() []word[Profile] {
	return []word[Profile]{
		{"read-only", ReadOnly},
		{"workspace-write", WorkspaceWrite},
		{"full-access", FullAccess},
		{"danger-full-access", FullAccess},
	}
}

// storedProfiles adds the zero value, which can be stored and read back but
// not asked for.
func storedProfiles() []word[Profile] {
	return append([]word[Profile]{{"nothing", Nothing}}, profiles()...)
}

// ParseProfile reads read-only, workspace-write or full-access (also spelled
// danger-full-access), exactly. Any other text, "nothing" too, is a
// *fault.Error with the code POLICY_INVALID, and the profile Nothing.
func ParseProfile(s string) (Profile, error) { return parse("profile", s, profiles()) }

// String returns the spelling that ParseProfile reads, "nothing" for Nothing.
func (p Profile) String() string { return spell("Profile", p, storedProfiles()) }

// MarshalText returns the spelling; a value that is no profile is an error.
func (p Profile) MarshalText() ([]byte, error) { return marshal("profile", p, storedProfiles()) }

// UnmarshalText reads what MarshalText writes. After an error p is Nothing.
func (p *Profile) UnmarshalText(b []byte) (err error) {
	if string(b) == Nothing.String() {
		*p = Nothing
		return nil
	}
	*p, err = ParseProfile(string(b))
	return err
}

func commandSets() []word[Commands] {
	return []word[Commands]{{"inspection", Inspection}, {"any", Any}}
}

// ParseCommands reads inspection or any.
func ParseCommands(s string) (Commands, error) { return parse("commands", s, commandSets()) }

// String returns the spelling that ParseCommands reads.
func (c Commands) String() string { return spell("Commands", c, commandSets()) }

// MarshalText returns the spelling; a value without one is an error.
func (c Commands) MarshalText() ([]byte, error) { return marshal("commands", c, commandSets()) }

// UnmarshalText is ParseCommands. After an error c is Inspection.
func (c *Commands) UnmarshalText(b []byte) (err error) {
	*c, err = ParseCommands(string(b))
	return err
}

func networkModes() []word[NetworkMode] {
	return []word[NetworkMode]{{"none", Offline}, {"gated", Gated}, {"open", Open}}
}

// ParseNetworkMode reads none, gated or open.
func ParseNetworkMode(s string) (NetworkMode, error) {
	return parse("network mode", s, networkModes())
}

// String returns the spelling that ParseNetworkMode reads.
func (m NetworkMode) String() string { return spell("NetworkMode", m, networkModes()) }

// MarshalText returns the spelling; a value without one is an error.
func (m NetworkMode) MarshalText() ([]byte, error) {
	return marshal("network mode", m, networkModes())
}

// UnmarshalText is ParseNetworkMode. After an error m is Offline.
func (m *NetworkMode) UnmarshalText(b []byte) (err error) {
	*m, err = ParseNetworkMode(string(b))
	return err
}

func homes() []word[Home] {
	return []word[Home]{{"private", HomePrivate}, {"workspace", HomeWorkspace}}
}

// ParseHome reads private or workspace.
func ParseHome(s string) (Home, error) { return parse("home", s, homes()) }

// String returns the spelling that ParseHome reads.
func (h Home) String() string { return spell("Home", h, homes()) }

// MarshalText returns the spelling; a value without one is an error.
func (h Home) MarshalText() ([]byte, error) { return marshal("home", h, homes()) }

// UnmarshalText is ParseHome. After an error h is HomePrivate.
func (h *Home) UnmarshalText(b []byte) (err error) {
	*h, err = ParseHome(string(b))
	return err
}
