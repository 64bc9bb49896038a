package policy

// LockedName tells whether a base name, of a file or a directory, is one
// through which editors, agents or shells on the host run something that
// nobody asked for. What lies below such a directory is locked with it. Names
// are compared as in [HiddenName]; it allocates nothing.
//
// The rule is meant for what is present: nothing stops a command from making
// such a name anew, see [RunsLater]. Only .tether is locked even while absent.
// git's own files are not in this list: which they are depends on the
// repository, so the plan finds them.
func LockedName(name []byte) bool {
	var buf [nameMax]byte
	return lockedKind(trimTail(fold(buf[:0], name))) != ""
}

// lockedKind says what runs a locked name; empty: it is none.
func lockedKind(folded []byte) Later {
	switch string(folded) {
	case ".tether":
		return LaterTether
	// Agents: servers, hooks and commands that they start by configuration.
	case ".mcp.json", ".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".windsurf",
		".continue", ".kiro", ".roo", ".amazonq", ".opencode", "opencode.json", "opencode.jsonc",
		".aider.conf.yml":
		return LaterAgent
	// Editors and debuggers.
	case ".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json",
		".vimrc", ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit":
		return LaterEditor
	// Hooks that a package manager puts into git.
	case ".husky":
		return LaterHook
	// Shells and logins.
	case ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc",
		".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", "config.fish",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment",
		"microsoft.powershell_profile.ps1":
		return LaterShell
	}
	return ""
}
