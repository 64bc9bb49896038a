package environ

import (
	"path"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// base says which private folder a variable of ours lies in.
type base int

const (
	inCache base = iota
	inConfig
	inData
	inState
	inRuntime
	constant // rel is the value itself
)

// set is one variable that gets a value of ours.
type set struct {
	name string
	base base
	rel  string
}

// sets are the variables that keep programs away from the home that is not
// there and from the top of the workspace, which HOME names. A row whose
// folder the caller did not give is left out.
var sets = [...]set{
	{"XDG_CACHE_HOME", inCache, ""},
	{"XDG_CONFIG_HOME", inConfig, ""},
	{"XDG_DATA_HOME", inData, ""},
	{"XDG_STATE_HOME", inState, ""},
	{"XDG_RUNTIME_DIR", inRuntime, ""},

	// Caches of compilers and package managers.
	{"GOCACHE", inCache, "go-build"},
	{"GOMODCACHE", inCache, "go-mod"},
	{"GOPATH", inData, "go"},
	{"CARGO_HOME", inCache, "cargo"},
	{"npm_config_cache", inCache, "npm"},
	{"npm_config_userconfig", inConfig, "npmrc"},
	{"PNPM_HOME", inData, "pnpm"}, // pnpm keeps its store below it
	{"YARN_CACHE_FOLDER", inCache, "yarn"},
	{"YARN_GLOBAL_FOLDER", inCache, "yarn-berry"},
	{"COREPACK_HOME", inCache, "corepack"},
	{"BUN_INSTALL_CACHE_DIR", inCache, "bun"},
	{"DENO_DIR", inCache, "deno"},
	{"PIP_CACHE_DIR", inCache, "pip"},
	{"UV_CACHE_DIR", inCache, "uv"},
	{"POETRY_CACHE_DIR", inCache, "pypoetry"},
	{"PYTHONUSERBASE", inData, "python"},
	{"GRADLE_USER_HOME", inCache, "gradle"},
	{"NUGET_PACKAGES", inCache, "nuget"},
	{"NUGET_HTTP_CACHE_PATH", inCache, "nuget-http"},
	{"DOTNET_CLI_HOME", inData, "dotnet"},
	{"COMPOSER_HOME", inConfig, "composer"},
	{"COMPOSER_CACHE_DIR", inCache, "composer"},
	{"BUNDLE_USER_HOME", inCache, "bundle"},
	{"GEM_SPEC_CACHE", inCache, "gem"},
	{"PUB_CACHE", inCache, "pub"},
	{"MIX_HOME", inCache, "mix"},
	{"HEX_HOME", inCache, "hex"},
	{"CABAL_DIR", inCache, "cabal"},
	{"CCACHE_DIR", inCache, "ccache"},
	{"SCCACHE_DIR", inCache, "sccache"},

	// Start-up files: HOME names the workspace, and nothing in a repository
	// becomes a start-up file by lying at its top.
	{"PYTHONNOUSERSITE", constant, "1"},
	{"ZDOTDIR", inConfig, "zsh"},
	{"INPUTRC", constant, "/etc/inputrc"},
	{"CURL_HOME", inConfig, "curl"},
	{"WGETRC", inConfig, "wgetrc"},
	{"GNUPGHOME", inData, "gnupg"},
	{"DOCKER_CONFIG", inConfig, "docker"},

	// Histories, which would litter the workspace.
	{"HISTFILE", inState, "history"},
	{"LESSHISTFILE", constant, "-"},
	{"PYTHON_HISTORY", inState, "python_history"},
	{"NODE_REPL_HISTORY", inState, "node_history"},
	{"SQLITE_HISTORY", inState, "sqlite_history"},
	{"PSQL_HISTORY", constant, "/dev/null"},
	{"MYSQL_HISTFILE", constant, "/dev/null"},
	{"REDISCLI_HISTFILE", constant, "/dev/null"},

	// Nothing phones home unasked, nothing waits for an answer.
	{"DOTNET_CLI_TELEMETRY_OPTOUT", constant, "1"},
	{"DOTNET_NOLOGO", constant, "1"},
	{"COREPACK_ENABLE_DOWNLOAD_PROMPT", constant, "0"},
}

// offline are set when the command has no network, so that package managers
// use what they have at once instead of waiting for time-outs.
var offline = [...]set{
	{"CARGO_NET_OFFLINE", constant, "true"},
	{"UV_OFFLINE", constant, "1"},
	{"npm_config_offline", constant, "true"},
	{"npm_config_update_notifier", constant, "false"},
}

// folder returns the private folder of a base, empty when there is none.
func (p Private) folder(b base) string {
	switch b {
	case inCache:
		return p.Cache
	case inConfig:
		return p.Config
	case inData:
		return p.Data
	case inState:
		return p.State
	case inRuntime:
		return p.Runtime
	}
	return ""
}

// apply puts the rows of our own into env.
func (in *Input) apply(env map[string]string) {
	put := func(name, value string) {
		if value != "" {
			env[name] = value
		}
	}
	put("HOME", in.Home)
	put("USER", in.User)
	put("LOGNAME", in.User)
	put("TMPDIR", in.tmp())
	put("GIT_CONFIG_GLOBAL", in.GitConfig)
	if in.Profile != policy.FullAccess {
		in.applyTable(env, sets[:])
	}
	if in.Offline {
		in.applyTable(env, offline[:])
	}
	put("GOPROXY", in.goproxy(env["GOPROXY"]))
	put("MAVEN_OPTS", in.mavenOpts())
}

func (in *Input) applyTable(env map[string]string, rows []set) {
	for _, s := range rows {
		if s.base == constant {
			env[s.name] = s.rel
			continue
		}
		if dir := in.Private.folder(s.base); dir != "" {
			env[s.name] = path.Join(dir, s.rel)
		}
	}
}

// goproxy puts the read-only module cache before the company's proxy or the
// default. A comma lets go ask the next one only when a module is not there.
func (in *Input) goproxy(company string) string {
	if in.GoModules == "" || !plainPath(in.GoModules) {
		return company
	}
	rest := company
	switch {
	case in.Offline && !strings.Contains(company, "file://"):
		rest = "off" // says at once what a look-up would say late
	case company == "":
		rest = "https://proxy.golang.org,direct"
	}
	return fileURL(in.GoModules) + "," + rest
}

// mavenOpts moves Maven's repository: Maven asks the account database for the
// home, never HOME. The script that reads the variable splits at blanks.
func (in *Input) mavenOpts() string {
	if in.Private.Cache == "" || in.Profile == policy.FullAccess || strings.ContainsAny(in.Private.Cache, " \t") {
		return ""
	}
	opts := "-Dmaven.repo.local=" + path.Join(in.Private.Cache, "maven")
	if m := in.MavenRepository; m != "" && !strings.ContainsAny(m, " \t,") {
		opts += " -Dmaven.repo.local.tail=" + m
	}
	return opts
}

// searchPath is the caller's PATH without what depends on the current folder,
// then what the plan adds, then where installers inside put programs.
//
// Folders of the workspace stay: which programs run inside is the user's wish.
// Tether itself never looks a program up there.
func (in *Input) searchPath(host string) string {
	out := make([]string, 0, 16)
	add := func(dir string) {
		if !plainPath(dir) || strings.Contains(dir, ":") {
			return
		}
		dir = path.Clean(dir)
		for _, have := range out {
			if have == dir {
				return
			}
		}
		out = append(out, dir)
	}
	for dir := range strings.SplitSeq(host, ":") {
		add(dir)
	}
	if len(out) == 0 {
		for dir := range strings.SplitSeq(DefaultPath, ":") {
			add(dir)
		}
	}
	for _, dir := range in.Path {
		add(dir)
	}
	if in.Profile != policy.FullAccess {
		if in.Private.Data != "" {
			add(path.Join(in.Private.Data, "go/bin"))
			add(path.Join(in.Private.Data, "python/bin"))
		}
		if in.Private.Cache != "" {
			add(path.Join(in.Private.Cache, "cargo/bin"))
		}
	}
	return strings.Join(out, ":")
}
