package environ

import "strings"

// rule says what becomes of a variable of the caller.
type rule int

// The rules. The zero value drops, so that a name nobody thought of never
// passes.
const (
	drop    rule = iota
	refuse       // never passes by itself; reported with the reason
	ours         // our own value takes its place
	word         // a short value without spaces
	text         // one line
	number       // decimal digits
	file         // one absolute path
	files        // absolute paths with colons between; others are left out
	pyfiles      // like files, relative elements stay
	caFile       // file, of certificates
	caFiles      // files, of certificates
	shell        // an absolute path to a well-known shell
	url          // one URL, without its credentials
	urls         // URLs with spaces between, NAME=URL allowed
	goproxy      // GOPROXY's list
	sumdb        // GOSUMDB's "name+key url"
	goflags      // those of GOFLAGS that only describe a build
)

// lookup returns the rule for a name and the reason. It is the whole
// allowlist; the refused names would be dropped anyway, but somebody who
// misses one of them should read why.
//
// A switch and not a map: it costs nothing at start-up, and the compiler
// refuses a name that stands in two places.
func lookup(name string) (rule, string) {
	switch name {
	// What passes.
	case "LANG", "LANGUAGE", "TZ", "SOURCE_DATE_EPOCH":
		return word, "language and time"
	case "TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
		"TERM_PROGRAM", "TERM_PROGRAM_VERSION", "CARGO_TERM_COLOR":
		return word, "terminal"
	case "LS_COLORS", "GREP_COLORS", "GREP_COLOR", "GCC_COLORS":
		return text, "terminal"
	case "COLUMNS", "LINES":
		return number, "terminal"
	case "TERMINFO":
		return file, "terminal descriptions"
	case "TERMINFO_DIRS", "LOCALE_ARCHIVE":
		return files, "terminal descriptions, locales"
	case "CI", "DEBIAN_FRONTEND", "NODE_ENV", "DO_NOT_TRACK":
		return word, "automation"
	case "SHELL":
		return shell, "the user's shell"
	case "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
		"GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "EMAIL":
		return text, "who commits"
	case "PYTHONPATH":
		return pyfiles, "documented; decides only whose code runs inside"
	case "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONUTF8", "PYTHONIOENCODING",
		"PYTHONHASHSEED", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_DEFAULT_TIMEOUT", "PIP_NO_INPUT",
		"UV_NATIVE_TLS", "UV_SYSTEM_CERTS", "UV_OFFLINE":
		return word, "python's behaviour"
	case "RUST_BACKTRACE", "RUST_LOG", "RUSTUP_TOOLCHAIN", "RUSTUP_AUTO_INSTALL",
		"CARGO_NET_OFFLINE", "CARGO_INCREMENTAL", "CARGO_BUILD_JOBS",
		"CARGO_NET_GIT_FETCH_WITH_CLI":
		return word, "rust's behaviour"
	case "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOTOOLCHAIN",
		"CGO_ENABLED", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "GO111MODULE", "GOWORK":
		return word, "go's behaviour"
	case "GOFLAGS":
		return goflags, "go's behaviour"
	case "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CMAKE_BUILD_PARALLEL_LEVEL":
		return number, "how many at once"
	case "CUDA_VISIBLE_DEVICES":
		return word, "which device"

	// Company settings.

	// Company settings.
	case "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
		"GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "PIP_CERT", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
		"CARGO_HTTP_CAINFO", "npm_config_cafile", "NPM_CONFIG_CAFILE", "DENO_CERT",
		"BUNDLE_SSL_CA_CERT", "YARN_HTTPS_CA_FILE_PATH", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
		"HTTPLIB2_CA_CERTS", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE":
		return caFile, "certificates"
	case "SSL_CERT_DIR":
		return caFiles, "certificates"
	case "npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_REGISTRY", "YARN_NPM_REGISTRY_SERVER",
		"BUN_CONFIG_REGISTRY", "COREPACK_NPM_REGISTRY", "PIP_INDEX_URL", "UV_INDEX_URL",
		"UV_DEFAULT_INDEX", "RUSTUP_DIST_SERVER", "RUSTUP_UPDATE_ROOT", "NVM_NODEJS_ORG_MIRROR",
		"NODEJS_ORG_MIRROR", "CONDA_CHANNEL_ALIAS", "DENO_REGISTRY_URL", "NPM_CONFIG_DISTURL",
		"npm_config_disturl", "HF_ENDPOINT":
		return url, "registries"
	case "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS":
		return urls, "registries"
	case "PIP_TRUSTED_HOST", "UV_INSECURE_HOST", "GOPRIVATE", "GONOPROXY", "GONOSUMDB",
		"GOINSECURE":
		return text, "registries"
	case "GOPROXY":
		return goproxy, "registries"
	case "GOSUMDB":
		return sumdb, "registries"

	// Where toolchains lie. What lies under a hidden home comes from the
	// toolchain table instead and beats these.

	// Where toolchains lie. What lies under a hidden home comes from the
	// toolchain table instead and beats these.
	case "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_EXE", "CONDA_PYTHON_EXE", "MAMBA_ROOT_PREFIX",
		"MAMBA_EXE", "PYENV_ROOT", "RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "FNM_DIR",
		"FNM_MULTISHELL_PATH", "VOLTA_HOME", "JAVA_HOME", "JDK_HOME", "GRAALVM_HOME", "GOROOT",
		"SDKMAN_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "RBENV_ROOT", "NODENV_ROOT",
		"GOENV_ROOT", "DOTNET_ROOT", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY",
		"MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "ANDROID_HOME", "ANDROID_SDK_ROOT",
		"ANDROID_NDK_HOME", "ANDROID_NDK_ROOT", "FLUTTER_ROOT", "CUDA_HOME", "CUDA_PATH",
		"OPAM_SWITCH_PREFIX", "UV_PYTHON_INSTALL_DIR", "PLAYWRIGHT_BROWSERS_PATH",
		"JULIAUP_DEPOT_PATH":
		return file, "toolchains"
	case "CONDA_DEFAULT_ENV", "CONDA_SHLVL", "PYENV_VERSION", "RBENV_VERSION", "NODENV_VERSION",
		"UV_PYTHON", "PYTHON_VERSION":
		return word, "toolchains"

	// What we set ourselves, see sets.go, or what names something that is
	// not there inside.

	// What we set ourselves, see sets.go, or what names something that is not
	// there inside.
	case "PATH", "HOME", "PWD", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP", "TEMPDIR",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
		"OLDPWD", "SHLVL", "_":
		return ours, ""
	case "GOPATH", "GOBIN", "GOCACHE", "GOMODCACHE", "GOENV", "GOTMPDIR", "CARGO_HOME",
		"CARGO_INSTALL_ROOT", "npm_config_cache", "NPM_CONFIG_CACHE", "npm_config_userconfig",
		"NPM_CONFIG_USERCONFIG", "npm_config_globalconfig", "NPM_CONFIG_GLOBALCONFIG",
		"npm_config_prefix", "NPM_CONFIG_PREFIX", "YARN_CACHE_FOLDER", "COREPACK_HOME",
		"BUN_INSTALL_CACHE_DIR", "DENO_DIR", "PIP_CACHE_DIR", "PIP_CONFIG_FILE", "UV_CACHE_DIR",
		"UV_TOOL_DIR", "UV_CONFIG_FILE", "PNPM_HOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
		"PYTHONPYCACHEPREFIX", "POETRY_CACHE_DIR", "PIPX_HOME", "PIPX_BIN_DIR", "GRADLE_USER_HOME",
		"NUGET_PACKAGES", "NUGET_HTTP_CACHE_PATH", "DOTNET_CLI_HOME", "COMPOSER_HOME",
		"COMPOSER_CACHE_DIR", "GEM_SPEC_CACHE", "BUNDLE_USER_HOME", "PUB_CACHE", "CCACHE_DIR",
		"SCCACHE_DIR", "ELECTRON_CACHE", "HISTFILE", "LESSHISTFILE", "PYTHON_HISTORY",
		"NODE_REPL_HISTORY", "SQLITE_HISTORY", "PSQL_HISTORY", "MYSQL_HISTFILE",
		"REDISCLI_HISTFILE", "GIT_CONFIG_GLOBAL", "GNUPGHOME", "DOCKER_CONFIG", "KUBECONFIG",
		"TETHER", "TETHER_SANDBOX", "TETHER_ENV_PASSTHROUGH":
		return ours, ""

	// What is refused by name.

	// What is refused by name. A policy that names one passes it.
	case "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "TZDIR", "DATEMSK",
		"LIBPATH", "SHLIB_PATH":
		return refuse, "loads or redirects code in every program"
	case "HOSTALIASES", "LOCALDOMAIN", "RES_OPTIONS", "RESOLV_HOST_CONF",
		"RESOLV_ADD_TRIM_DOMAINS", "RESOLV_OVERRIDE_TRIM_DOMAINS", "RESOLV_MULTI",
		"RESOLV_SPOOF_CHECK", "NIS_PATH":
		return refuse, "redirects how names are resolved"
	case "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4", "SHELLOPTS",
		"BASHOPTS", "IFS", "CDPATH", "GLOBIGNORE", "EXECIGNORE", "FIGNORE", "BASH_XTRACEFD",
		"BASH_LOADABLES_PATH", "BASH_COMPAT", "POSIXLY_CORRECT", "INPUTRC", "ZDOTDIR", "FPATH",
		"NULLCMD", "READNULLCMD", "TMPPREFIX", "KSH_ENV", "fish_function_path",
		"fish_complete_path":
		return refuse, "runs or changes something in every shell"
	case "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS",
		"PYTHONEXECUTABLE", "PYTHONPLATLIBDIR", "PYTHONCASEOK", "PYTHONDEBUG", "PYTHONSAFEPATH",
		"PYTHONPERFSUPPORT", "PYTHON_PRESITE", "PYTEST_ADDOPTS", "PYTEST_PLUGINS":
		return refuse, "runs or redirects code in Python"
	case "PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "PERL5SHELL", "PERL_MM_OPT", "PERL_MB_OPT",
		"PERL_LOCAL_LIB_ROOT", "PERLIO_DEBUG":
		return refuse, "runs or redirects code in Perl"
	case "RUBYOPT", "RUBYLIB", "RUBYSHELL", "RUBYPATH", "GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE",
		"BUNDLER_ORIG_RUBYOPT":
		return refuse, "runs or redirects code in Ruby"
	case "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NODE_CHANNEL_FD",
		"NODE_V8_COVERAGE", "ELECTRON_RUN_AS_NODE", "npm_config_node_options",
		"NPM_CONFIG_NODE_OPTIONS", "npm_config_script_shell", "NPM_CONFIG_SCRIPT_SHELL",
		"npm_config_git", "NPM_CONFIG_GIT", "BUN_OPTIONS", "TS_NODE_PROJECT":
		return refuse, "runs or redirects code in Node.js"
	case "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "JAVA_OPTIONS",
		"CLASSPATH", "MAVEN_OPTS", "MAVEN_ARGS", "MAVEN_CONFIG", "GRADLE_OPTS", "ANT_OPTS",
		"ANT_ARGS", "SBT_OPTS", "KOTLIN_OPTS":
		return refuse, "runs or redirects code in Java"
	case "DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE",
		"CORECLR_ENABLE_PROFILING", "CORECLR_PROFILER", "CORECLR_PROFILER_PATH",
		"CORECLR_PROFILER_PATH_32", "CORECLR_PROFILER_PATH_64", "COR_ENABLE_PROFILING",
		"COR_PROFILER", "COR_PROFILER_PATH", "MONO_PATH", "MONO_ENV_OPTIONS", "MSBUILD_EXE_PATH":
		return refuse, "runs or redirects code in .NET"
	case "PHPRC", "PHP_INI_SCAN_DIR", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "R_PROFILE",
		"R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER", "R_LIBS", "R_LIBS_USER", "ERL_FLAGS",
		"ERL_AFLAGS", "ERL_ZFLAGS", "ERL_LIBS", "ELIXIR_ERL_OPTIONS", "JULIA_LOAD_PATH",
		"TCLLIBPATH", "AWKPATH", "AWKLIBPATH", "GUILE_LOAD_PATH", "SCHEME_LIBRARY_PATH",
		"EMACSLOADPATH", "DENO_V8_FLAGS", "OCAMLRUNPARAM", "CAML_LD_LIBRARY_PATH",
		"GHC_PACKAGE_PATH", "GHCRTS":
		return refuse, "runs or redirects code in an interpreter"
	case "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MFLAGS", "RUSTC", "RUSTC_WRAPPER",
		"RUSTC_WORKSPACE_WRAPPER", "RUSTDOC", "RUSTFLAGS", "RUSTDOCFLAGS",
		"CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_RUSTC", "CARGO_BUILD_RUSTC_WRAPPER", "GOCACHEPROG",
		"GOTOOLDIR", "GOOVERLAY", "GODEBUG", "GOAUTH", "GOVCS", "GCCGO", "GCC_EXEC_PREFIX",
		"COMPILER_PATH", "LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH",
		"OBJC_INCLUDE_PATH", "PKG_CONFIG", "CMAKE_TOOLCHAIN_FILE", "CMAKE_PROJECT_INCLUDE",
		"DISTCC_HOSTS", "CCACHE_PREFIX":
		return refuse, "runs a program or redirects files in a build"
	case "PAGER", "MANPAGER", "SYSTEMD_PAGER", "LESSOPEN", "LESSCLOSE", "LESS", "LESSKEYIN",
		"EDITOR", "VISUAL", "FCEDIT", "SUDO_EDITOR", "SYSTEMD_EDITOR", "BROWSER", "EXINIT",
		"VIMINIT", "MYVIMRC", "VIM", "VIMRUNTIME", "NVIM_APPNAME", "RIPGREP_CONFIG_PATH",
		"BAT_CONFIG_PATH", "BAT_PAGER", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS", "GREP_OPTIONS",
		"HGRCPATH", "HGEDITOR", "HGMERGE", "SVN_EDITOR", "SVN_SSH", "CVS_RSH", "RSYNC_RSH":
		return refuse, "runs a program when something is shown or edited"
	case "SSH_ASKPASS", "SUDO_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_AUTH_SOCK", "SSH_AGENT_PID",
		"GPG_AGENT_INFO", "NETRC", "KRB5CCNAME", "KRB5_CONFIG":
		return refuse, "runs a program that asks for or holds a secret"
	case "SSLKEYLOGFILE":
		return refuse, "writes the keys of encrypted connections"
	case "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "OPENSSL_CONF_INCLUDE",
		"GTK_MODULES", "GTK_PATH", "GIO_EXTRA_MODULES", "GST_PLUGIN_PATH", "QT_PLUGIN_PATH",
		"VK_LAYER_PATH", "VK_ICD_FILENAMES", "OCL_ICD_VENDORS", "KRB5_TRACE", "P11_KIT_CONFIG_FILE":
		return refuse, "loads code into everything that uses the library"
	case "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
		"XAUTHORITY", "DOCKER_HOST", "CONTAINER_HOST", "TMUX", "STY":
		return refuse, "is a way past the sandbox to a service of the host"
	case "CURL_HOME", "WGETRC", "SYSTEM_WGETRC":
		return refuse, "redirects what a downloader reads first"
	}
	return family(name)
}

// family gives rules to families of names.
func family(name string) (rule, string) {
	prefix, rest, _ := strings.Cut(name, "_")
	switch prefix {
	case "LC":
		return word, "language"
	case "LD", "DYLD":
		return refuse, "loads code into every program"
	case "MALLOC":
		return refuse, "changes how memory is managed"
	case "GIT":
		return refuse, "can run a program or redirect git"
	case "TETHER":
		return ours, ""
	case "BASH", "KSH":
		if strings.HasPrefix(rest, "FUNC_") {
			return refuse, "defines a function in every shell"
		}
	case "CARGO":
		// CARGO_REGISTRIES_<NAME>_INDEX is a registry, ..._TOKEN a secret.
		if strings.HasPrefix(rest, "REGISTRIES_") && strings.HasSuffix(rest, "_INDEX") {
			return url, "registries"
		}
	}
	return drop, ""
}
