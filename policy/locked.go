package policy

import (
	"path"
	"strings"
)

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
	return lockedName(trimTail(fold(buf[:0], name)))
}

func lockedName(folded []byte) bool {
	switch string(folded) {
	case ".tether":
		return true
	// Agents: servers, hooks and commands that they start by configuration.
	case ".mcp.json", ".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".windsurf",
		".continue", ".kiro", ".roo", ".amazonq", ".opencode", "opencode.json", "opencode.jsonc",
		".aider.conf.yml":
		return true
	// Editors and debuggers.
	case ".vscode", ".idea", ".zed", ".fleet", ".devcontainer", ".devcontainer.json",
		".vimrc", ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit":
		return true
	// Hooks that a package manager puts into git.
	case ".husky":
		return true
	// Shells and logins.
	case ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
		".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc",
		".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", "config.fish",
		".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment",
		"microsoft.powershell_profile.ps1":
		return true
	}
	return false
}

// RunsLater tells whether a file that a command made or changed will run, or
// makes something else run, on the host later: when somebody enters the
// folder, opens it, installs, builds, tests or pushes. rel is the file's path
// in its root, with slashes.
//
// It is for reports only and locks nothing: most of these files are what an
// agent is there to write. The list is of well-known names and cannot be
// complete; any program that the user starts afterwards runs later too.
func RunsLater(rel string) bool {
	rel = path.Clean("/" + string(fold(nil, []byte(rel))))[1:]
	if rel == "" {
		return false
	}
	parts := strings.Split(rel, "/")
	for _, part := range parts {
		if lockedName([]byte(part)) {
			return true
		}
	}
	last := len(parts) - 1
	return runsByName(parts[last]) || runsByPlace(parts[:last], parts[last])
}

// LaterFolder tells whether files run later because they lie in a folder of this
// base name, whatever they are called. A link of such a name brings them with it.
func LaterFolder(name []byte) bool {
	var buf [nameMax]byte
	folded := Fold(buf[:0], name)
	if lockedName(folded) {
		return true
	}
	switch string(folded) {
	case ".bin", ".cargo", ".github", ".gitea", ".forgejo", ".circleci", ".buildkite", "workflows", "actions",
		"fish", ".venv", "venv":
		return true
	}
	return false
}

func runsByName(base string) bool {
	switch base {
	// On entering the folder.
	case ".envrc", ".mise.toml", "mise.toml", ".tool-versions", ".autoenv.zsh":
		return true
	// Package managers and their scripts.
	case "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "bunfig.toml",
		"setup.py", "setup.cfg", "pyproject.toml", "pip.conf", "composer.json", "gemfile":
		return true
	// Builds.
	case "makefile", "gnumakefile", "justfile", "rakefile", "cmakelists.txt", "meson.build",
		"taskfile.yml", "taskfile.yaml", "build.rs", "build.zig", "build.sbt", "pom.xml", "gradlew", "mvnw",
		"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
		"configure", "wscript", "sconstruct", "build.bazel", "module.bazel", "workspace.bazel",
		"directory.build.props", "directory.build.targets",
		"dockerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml",
		"vagrantfile", "flake.nix", "shell.nix", "default.nix":
		return true
	// Tests and interpreters.
	case "conftest.py", "noxfile.py", "tox.ini", "pytest.ini", "sitecustomize.py", "usercustomize.py",
		".rspec", ".eslintrc.js", ".eslintrc.cjs", ".prettierrc.js", ".babelrc.js", ".pythonrc":
		return true
	// Hooks and pipelines.
	case ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml",
		".lintstagedrc", ".lintstagedrc.json", ".overcommit.yml",
		".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		".drone.yml", ".woodpecker.yml", ".cirrus.yml", "appveyor.yml", ".appveyor.yml":
		return true
	}
	switch ext := path.Ext(base); ext {
	case ".mk", ".pth", ".csproj", ".fsproj", ".vbproj":
		return true
	case ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts":
		// vite.config.ts and its many relatives.
		return strings.HasSuffix(strings.TrimSuffix(base, ext), ".config")
	}
	return false
}

// runsByPlace judges by the folders that base lies in, the nearest last.
func runsByPlace(dirs []string, base string) bool {
	up := func(i int) string {
		if i > len(dirs) {
			return ""
		}
		return dirs[len(dirs)-i]
	}
	switch up(1) {
	case ".bin": // of node_modules: first in PATH of every script
		return true
	case "bin", "scripts":
		// A virtual environment's: activated, or found first in PATH.
		return strings.HasPrefix(base, "activate") || venv(up(2))
	case ".cargo":
		return base == "config" || base == "config.toml"
	case "conf.d", "functions":
		return up(2) == "fish"
	case "workflows":
		return up(2) == ".github" || up(2) == ".gitea" || up(2) == ".forgejo"
	case ".circleci", ".buildkite":
		return true
	}
	for i := range dirs[:max(len(dirs)-1, 0)] {
		if dirs[i] == ".github" && dirs[i+1] == "actions" {
			return true
		}
	}
	return false
}

func venv(dir string) bool { return dir == ".venv" || dir == "venv" || dir == ".env" || dir == "env" }
