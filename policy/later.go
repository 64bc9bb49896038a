package policy

import (
	"bytes"
	"path"
	"strings"
)

// Later says what it is that runs a file on the host later, in one word. The
// words are stable.
type Later string

// The kinds of files that run later.
const (
	LaterTether     Later = "tether"      // Tether's own policy folder
	LaterAgent      Later = "agent"       // servers, hooks and commands of agents
	LaterEditor     Later = "editor"      // tasks and settings of editors and debuggers
	LaterHook       Later = "hook"        // hooks that a program puts into git
	LaterShell      Later = "shell-start" // shells, logins, and interpreters when they start
	LaterEntry      Later = "folder"      // on entering the folder: direnv and its like
	LaterPackage    Later = "package"     // package managers and their scripts
	LaterBuild      Later = "build"       // builds and task runners
	LaterTest       Later = "test"        // tests, linters and formatters
	LaterPipeline   Later = "pipeline"    // continuous integration
	LaterContainer  Later = "container"   // images and machines that are built from the folder
	LaterVirtualenv Later = "virtualenv"  // what is activated, or lies first in PATH
)

// LaterKind tells what will run a file on the host later, or makes something
// else run: when somebody enters the folder, opens it, installs, builds, tests
// or pushes. Empty: nothing that is known. rel is the file's path in its root,
// with slashes.
//
// It is for reports only and locks nothing: most of these files are what an
// agent is there to write. The list is of well-known names and cannot be
// complete; any program that the user starts afterwards runs later too.
func LaterKind(rel []byte) Later {
	var buf [512]byte
	folded := fold(buf[:0], rel)
	if len(folded) == 0 || folded[0] == '.' || folded[0] == '/' || bytes.Contains(folded, []byte("/.")) || bytes.Contains(folded, []byte("//")) {
		folded = []byte(path.Clean("/" + string(folded)))[1:]
	}
	var up2, up1 []byte // the folders around it, the nearest last
	action := false     // in .github/actions
	for {
		name, rest, more := bytes.Cut(folded, []byte("/"))
		if kind := lockedKind(name); kind != "" {
			return kind
		}
		if !more {
			if kind := laterByName(name); kind != "" {
				return kind
			}
			return laterByPlace(up2, up1, name, action)
		}
		action = action || string(up1) == ".github" && string(name) == "actions"
		up2, up1, folded = up1, name, rest
	}
}

// RunsLater tells whether LaterKind knows what will run a file.
func RunsLater(rel string) bool { return LaterKind([]byte(rel)) != "" }

// LaterFolder tells whether files run later because they lie in a folder of this
// base name, whatever they are called. A link of such a name brings them with it.
func LaterFolder(name []byte) bool {
	var buf [nameMax]byte
	folded := Fold(buf[:0], name)
	if lockedKind(folded) != "" {
		return true
	}
	switch string(folded) {
	case ".bin", ".cargo", ".github", ".gitea", ".forgejo", ".circleci", ".buildkite", ".semaphore", ".teamcity",
		".woodpecker", ".mvn", "workflows", "actions", "fish", ".venv", "venv":
		return true
	}
	return false
}

func laterByName(base []byte) Later {
	switch string(base) {
	case ".envrc", ".mise.toml", "mise.toml", ".tool-versions", ".autoenv.zsh", ".autoenv":
		return LaterEntry
	case ".dir-locals-2.el", ".lvimrc":
		return LaterEditor
	// Interpreters read these where they are started.
	case ".pythonrc", "sitecustomize.py", "usercustomize.py", ".pdbrc", ".rprofile", ".irbrc", ".pryrc", ".ghci",
		".ocamlinit", ".iex.exs", ".perldb", ".sqliterc":
		return LaterShell
	case "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml",
		"bunfig.toml", "binding.gyp", "deno.json", "deno.jsonc", "turbo.json", "nx.json", "lerna.json",
		"setup.py", "setup.cfg", "pyproject.toml", "pip.conf", "pipfile", "pixi.toml", "hatch.toml", "poetry.toml", "uv.toml",
		"composer.json", "gemfile", "extconf.rb", "cargo.toml", "package.swift", "mix.exs", "nuget.config":
		return LaterPackage
	case "makefile", "gnumakefile", "bsdmakefile", "makefile.am", "makefile.in", "justfile", ".justfile", "rakefile",
		"cmakelists.txt", "cmakepresets.json", "meson.build", "premake5.lua", "xmake.lua", "magefile.go",
		"taskfile.yml", "taskfile.yaml", "build.rs", "build.zig", "build.sbt", "pom.xml", "gradlew", "mvnw",
		"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
		"gradle-wrapper.properties", "gradle-wrapper.jar", ".sbtopts", ".jvmopts", "build.xml", "project.clj", "rebar.config",
		"configure", "configure.ac", "autogen.sh", "wscript", "sconstruct", "build.bazel", "module.bazel", "workspace.bazel", ".bazelrc",
		"directory.build.props", "directory.build.targets", "dodo.py", "fabfile.py", "guardfile", "procfile", "nodemon.json",
		"flake.nix", "shell.nix", "default.nix", "devenv.nix":
		return LaterBuild
	case "dockerfile", "containerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml",
		"vagrantfile", "tiltfile", "earthfile":
		return LaterContainer
	case "conftest.py", "noxfile.py", "tox.ini", "pytest.ini", ".coveragerc", ".pylintrc", "pylintrc", "mypy.ini", ".flake8",
		".rspec", ".rubocop.yml", "phpunit.xml", ".mocharc.js", ".mocharc.cjs", ".mocharc.json", ".mocharc.yml",
		".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml",
		".prettierrc", ".prettierrc.js", ".prettierrc.cjs", ".prettierrc.mjs", ".prettierrc.json", ".prettierrc.yml", ".prettierrc.yaml",
		".babelrc", ".babelrc.js", ".babelrc.cjs", ".babelrc.json", ".stylelintrc", ".stylelintrc.json", "karma.conf.js":
		return LaterTest
	case ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml", ".lefthook.yml", "lefthook.yaml",
		".lintstagedrc", ".lintstagedrc.json", ".overcommit.yml":
		return LaterHook
	case ".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		".drone.yml", ".woodpecker.yml", ".cirrus.yml", "appveyor.yml", ".appveyor.yml", "cloudbuild.yaml", "buildspec.yml":
		return LaterPipeline
	case "pyvenv.cfg":
		return LaterVirtualenv
	}
	dot := bytes.LastIndexByte(base, '.')
	if dot < 0 {
		return ""
	}
	switch stem := string(base[:dot]); string(base[dot:]) {
	case ".mk", ".csproj", ".fsproj", ".vbproj", ".cabal":
		return LaterBuild
	case ".gemspec":
		return LaterPackage
	case ".pth", ".desktop":
		return LaterShell
	case ".code-workspace", ".sublime-project":
		return LaterEditor
	case ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts":
		// vite.config.ts and its many relatives.
		if strings.HasSuffix(stem, ".config") || stem == "gulpfile" || stem == "gruntfile" {
			return LaterBuild
		}
	}
	return ""
}

// laterByPlace judges by the folders that base lies in, up1 the nearest.
func laterByPlace(up2, up1, base []byte, action bool) Later {
	switch string(up1) {
	case ".bin": // of node_modules: first in PATH of every script
		return LaterPackage
	case "bin", "scripts":
		if bytes.HasPrefix(base, []byte("activate")) || venv(up2) {
			return LaterVirtualenv
		}
	case ".cargo":
		if string(base) == "config" || string(base) == "config.toml" {
			return LaterPackage
		}
	case ".mvn":
		return LaterBuild
	case "conf.d", "functions":
		if string(up2) == "fish" {
			return LaterShell
		}
	case "workflows":
		switch string(up2) {
		case ".github", ".gitea", ".forgejo":
			return LaterPipeline
		}
	case ".circleci", ".buildkite", ".semaphore", ".teamcity", ".woodpecker":
		return LaterPipeline
	}
	if action {
		return LaterPipeline
	}
	return ""
}

func venv(dir []byte) bool {
	switch string(dir) {
	case ".venv", "venv", ".env", "env":
		return true
	}
	return false
}
