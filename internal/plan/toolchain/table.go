package toolchain

// row is one toolchain. Lists have blanks between their elements; paths in
// show, mark, deny and set are relative to the toolchain's folder, and an
// element of show, mark and deny may be a pattern of path.Match.
type row struct {
	tool string
	// vars are variables of the caller that may say where the folder is,
	// perhaps with a path below what they name.
	vars string
	// dirs are where it is by itself: relative to the home, or absolute.
	dirs string
	// mark are things of which at least one lies in every such folder. A row
	// without marks is taken at its own place only, through no link that
	// leaves it and from no variable.
	mark string
	// show is what a tool needs, "." all of it.
	show string
	// deny is what stays hidden inside of show.
	deny string
	// set are variables without which the tool would look for itself in HOME:
	// NAME=path.
	set string
}

// rows is the table of toolchains under a home. What is not named is not
// shown; where a folder is shown whole, it holds nothing but programs and
// libraries, or deny names the rest.
var rows = [...]row{
	// Programs that people and installers put there.
	{
		tool: "programs", show: ".",
		dirs: `.local/bin bin .bin .local/sbin go/bin .deno/bin .bun/bin .yarn/bin .krew/bin .arkade/bin
			.pulumi/bin .fly/bin .wasmtime/bin .wasmer/bin .foundry/bin .cabal/bin .stack/programs .nimble/bin
			.luarocks/bin .roswell/bin .modular/bin .moon/bin .opencode/bin .fzf/bin .atuin/bin .mix/escripts
			.pub-cache/bin .composer/vendor .config/composer/vendor .dprint/bin .turso .local/share/mise/bin
			.local/state/nix/profiles .local/share/claude .local/share/cursor-agent .claude/local/node_modules
			.ghcup/bin .local/share/solana/install`,
	},

	// Node.js and its kin.
	{
		tool: "nvm", vars: "NVM_DIR", dirs: ".nvm .config/nvm", mark: "nvm.sh versions",
		show: "versions alias nvm.sh nvm-exec bash_completion current",
		deny: "versions/*/*/etc/npmrc", set: "NVM_DIR=.",
	},
	{
		tool: "fnm", vars: "FNM_DIR", dirs: ".local/share/fnm .fnm", mark: "node-versions",
		show: "node-versions aliases", deny: "node-versions/*/installation/etc/npmrc", set: "FNM_DIR=.",
	},
	{
		tool: "volta", vars: "VOLTA_HOME", dirs: ".volta", mark: "tools layout.v*",
		show: "bin tools volta volta-shim volta-migrate layout.v*",
		deny: "tools/image/node/*/etc/npmrc", set: "VOLTA_HOME=.",
	},
	{
		tool: "n", vars: "N_PREFIX", dirs: "n .n", mark: "n/versions",
		show: "bin lib n/versions", deny: "n/versions/*/*/etc/npmrc",
	},
	{tool: "nodenv", vars: "NODENV_ROOT", dirs: ".nodenv", mark: "versions libexec", show: envShow, deny: "plugins/*/.git versions/*/etc/npmrc", set: "NODENV_ROOT=."},
	{tool: "npm", vars: "npm_config_prefix NPM_CONFIG_PREFIX", dirs: ".npm-global .npm-packages .local", mark: "lib/node_modules", show: "bin lib/node_modules"},
	{tool: "bun", vars: "BUN_INSTALL", dirs: ".bun", mark: "bin/bun", show: "bin install/global"},
	{tool: "deno", vars: "DENO_INSTALL", dirs: ".deno", mark: "bin/deno", show: "bin"},
	{
		tool: "pnpm", vars: "PNPM_HOME", dirs: ".local/share/pnpm Library/pnpm", mark: "pnpm global store .tools",
		show: ".", deny: "rc auth.ini .npmrc global/.npmrc global/*/.npmrc nodejs/*/etc/npmrc",
	},
	{tool: "yarn", dirs: ".config/yarn/global", show: "node_modules"},
	{tool: "proto", vars: "PROTO_HOME", dirs: ".proto", mark: "shims tools", show: "bin shims tools", deny: "tools/node/*/etc/npmrc", set: "PROTO_HOME=."},
	{tool: "playwright", vars: "PLAYWRIGHT_BROWSERS_PATH", dirs: ".cache/ms-playwright", mark: "*-[0-9]*", show: ".", set: "PLAYWRIGHT_BROWSERS_PATH=."},
	{tool: "puppeteer", vars: "PUPPETEER_CACHE_DIR", dirs: ".cache/puppeteer", mark: "chrome*", show: ".", set: "PUPPETEER_CACHE_DIR=."},
	{tool: "cypress", vars: "CYPRESS_CACHE_FOLDER", dirs: ".cache/Cypress", mark: "*/Cypress", show: ".", set: "CYPRESS_CACHE_FOLDER=."},

	// Python.
	{
		tool: "pyenv", vars: "PYENV_ROOT", dirs: ".pyenv", mark: "versions libexec/pyenv",
		show: "bin libexec shims versions version plugins pyenv.d completions src",
		deny: "plugins/*/.git versions/*/pip.conf versions/*/envs/*/pip.conf", set: "PYENV_ROOT=.",
	},
	{tool: "uv", dirs: ".local/share/uv", show: "python tools", deny: "tools/*/pip.conf", set: "UV_PYTHON_INSTALL_DIR=python"},
	{tool: "uv", vars: "UV_PYTHON_INSTALL_DIR", mark: "cpython-* pypy-*", show: ".", set: "UV_PYTHON_INSTALL_DIR=."},
	{
		tool: "conda", vars: "CONDA_PREFIX MAMBA_ROOT_PREFIX",
		dirs: "miniconda3 anaconda3 miniforge3 mambaforge micromamba .local/share/mamba .conda miniconda anaconda opt/miniconda3",
		mark: "conda-meta envs", show: ".",
		// A user's own start scripts and the state file hold variables that
		// people set for an environment; pkgs keeps the addresses that
		// packages came from, with their tokens.
		deny: `.condarc condarc .mambarc environments.txt pip.conf etc/npmrc conda-meta/state pkgs/urls.txt pkgs/urls
			pkgs/cache etc/conda/activate.d/env_vars.sh envs/*/.condarc envs/*/condarc envs/*/pip.conf
			envs/*/etc/npmrc envs/*/conda-meta/state envs/*/etc/conda/activate.d/env_vars.sh`,
	},
	{tool: "pipx", vars: "PIPX_HOME", dirs: ".local/share/pipx .local/pipx", mark: "venvs", show: "venvs shared py", deny: "venvs/*/pip.conf"},
	{tool: "poetry", vars: "POETRY_HOME", dirs: ".local/share/pypoetry", mark: "venv", show: "venv bin", deny: "venv/pip.conf"},
	{tool: "virtualenv", vars: "VIRTUAL_ENV", mark: "pyvenv.cfg", show: "bin lib lib64 include share pyvenv.cfg"},
	{
		tool: "virtualenvs", vars: "WORKON_HOME", dirs: ".virtualenvs .local/share/virtualenvs .cache/pypoetry/virtualenvs",
		mark: "*/pyvenv.cfg", show: ".", deny: "*/pip.conf */.env */.project",
	},
	{tool: "rye", vars: "RYE_HOME", dirs: ".rye", mark: "shims py", show: "shims py self tools", deny: "tools/*/pip.conf", set: "RYE_HOME=."},
	{tool: "pixi", vars: "PIXI_HOME", dirs: ".pixi", mark: "bin envs", show: "bin envs", deny: "envs/*/conda-meta/state"},
	{tool: "hatch", dirs: ".local/share/hatch", show: "pythons env"},
	{tool: "pdm", dirs: ".local/share/pdm", show: "venvs python"},

	// Rust.
	{tool: "rustup", vars: "RUSTUP_HOME", dirs: ".rustup", mark: "toolchains settings.toml", show: "toolchains settings.toml update-hashes", set: "RUSTUP_HOME=."},
	{tool: "cargo", vars: "CARGO_HOME", dirs: ".cargo", mark: "bin", show: "bin"},

	// Go.
	{tool: "go", vars: "GOROOT", dirs: "go .local/go .go", mark: "pkg/tool", show: "."},
	{tool: "go", dirs: "sdk", mark: "go*/pkg/tool", show: "go*"},
	{tool: "go", vars: "GOPATH", mark: "bin", show: "bin"},
	{tool: "goenv", vars: "GOENV_ROOT", dirs: ".goenv", mark: "versions libexec", show: envShow, deny: "plugins/*/.git", set: "GOENV_ROOT=."},

	// Managers of many.
	{
		tool: "asdf", vars: "ASDF_DATA_DIR ASDF_DIR", dirs: ".asdf", mark: "installs shims",
		show: "installs shims plugins bin lib libexec completions asdf.sh",
		deny: "plugins/*/.git installs/nodejs/*/etc/npmrc installs/python/*/pip.conf", set: "ASDF_DATA_DIR=.",
	},
	{
		tool: "mise", vars: "MISE_DATA_DIR", dirs: ".local/share/mise", mark: "installs shims",
		show: "installs shims plugins", deny: "plugins/*/.git installs/node/*/etc/npmrc installs/python/*/pip.conf",
		set: "MISE_DATA_DIR=.",
	},
	{
		tool: "homebrew", vars: "HOMEBREW_PREFIX", dirs: "/home/linuxbrew/.linuxbrew .linuxbrew", mark: "Cellar",
		show: "bin sbin lib libexec opt Cellar Caskroom share include etc/openssl@3 etc/ca-certificates etc/fonts",
		deny: "Cellar/node/*/etc/npmrc",
	},

	// The JVM, Android.
	{tool: "sdkman", vars: "SDKMAN_DIR", dirs: ".sdkman", mark: "candidates", show: "candidates bin src libexec", set: "SDKMAN_DIR=."},
	{tool: "java", vars: "JAVA_HOME JDK_HOME GRAALVM_HOME", mark: "bin/java", show: "."},
	{tool: "java", dirs: ".jdks .gradle/jdks .jabba/jdk", show: "."},
	{tool: "jenv", dirs: ".jenv", mark: "versions libexec", show: envShow, set: "JENV_ROOT=."},
	{tool: "maven", vars: "MAVEN_HOME M2_HOME", mark: "bin/mvn", show: "bin boot lib conf", deny: "conf/settings.xml.bak"},
	{tool: "gradle", vars: "GRADLE_HOME", mark: "bin/gradle", show: "bin lib"},
	{tool: "android", vars: "ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME ANDROID_NDK_ROOT", dirs: "Android/Sdk", mark: "platform-tools platforms ndk-build", show: "."},
	{tool: "kotlin", dirs: ".konan", mark: "dependencies", show: "dependencies kotlin-native-*"},

	// Ruby, PHP, Perl, Lua.
	{tool: "rbenv", vars: "RBENV_ROOT", dirs: ".rbenv", mark: "versions libexec", show: envShow, deny: "plugins/*/.git", set: "RBENV_ROOT=."},
	{tool: "rvm", vars: "rvm_path", dirs: ".rvm", mark: "rubies", show: "rubies gems bin wrappers environments scripts lib config"},
	{tool: "ruby", dirs: ".rubies", show: "."},
	{tool: "gems", dirs: ".gem/ruby .local/share/gem/ruby", show: "."},
	{tool: "phpenv", vars: "PHPENV_ROOT", dirs: ".phpenv", mark: "versions libexec", show: envShow, deny: "plugins/*/.git", set: "PHPENV_ROOT=."},
	{tool: "perl", dirs: "perl5", mark: "bin lib perlbrew", show: "bin lib perlbrew/bin perlbrew/perls"},
	{tool: "plenv", vars: "PLENV_ROOT", dirs: ".plenv", mark: "versions libexec", show: envShow, deny: "plugins/*/.git", set: "PLENV_ROOT=."},

	// The rest.
	{
		tool: "dotnet", vars: "DOTNET_ROOT", dirs: ".dotnet", mark: "dotnet tools",
		show: "dotnet host shared sdk packs templates sdk-manifests metadata library-packs tools",
	},
	{tool: "haskell", dirs: ".ghcup", mark: "ghc bin", show: "bin ghc hls"},
	{tool: "julia", dirs: ".juliaup", show: "bin"},
	{tool: "julia", dirs: ".julia", mark: "juliaup", show: "juliaup", set: "JULIAUP_DEPOT_PATH=."},
	{tool: "elan", vars: "ELAN_HOME", dirs: ".elan", mark: "toolchains", show: "bin toolchains settings.toml", set: "ELAN_HOME=."},
	{tool: "opam", vars: "OPAMROOT", dirs: ".opam", mark: "opam-init config", show: ".", deny: "log download-cache", set: "OPAMROOT=."},
	{tool: "flutter", vars: "FLUTTER_ROOT", dirs: "flutter .flutter development/flutter snap/flutter/common/flutter", mark: "bin/flutter", show: ".", deny: ".git/config"},
	{tool: "fvm", dirs: "fvm", mark: "versions", show: "versions"},
	{tool: "zig", dirs: ".zvm .zig", mark: "bin zig master", show: "."},
	{tool: "swift", vars: "SWIFTLY_HOME_DIR", dirs: ".local/share/swiftly .swiftly", mark: "toolchains config.json", show: "bin toolchains config.json", set: "SWIFTLY_HOME_DIR=."},
	{tool: "nim", dirs: ".choosenim", mark: "toolchains", show: "toolchains current"},
	{tool: "tfenv", vars: "TFENV_ROOT", dirs: ".tfenv", mark: "versions libexec", show: "bin lib libexec versions version"},
	{tool: "gcloud", dirs: "google-cloud-sdk", mark: "bin/gcloud", show: "bin lib platform VERSION", deny: "properties"},
	{tool: "cuda", vars: "CUDA_HOME CUDA_PATH", mark: "bin/nvcc", show: "."},
}

// envShow is the layout that rbenv and its descendants share.
const envShow = "bin libexec shims versions version plugins completions rbenv.d"

// never are files and folders of a home that hold credentials or private
// history. None is shown, whatever leads there; one that lies in a folder that
// is shown is denied in it.
var never = [...]string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pip",
	".git-credentials", ".pgpass", ".my.cnf", ".mylogin.cnf", ".vault-token", ".password-store",
	".terraform.d", ".terraformrc", ".s3cfg", ".boto", ".databrickscfg", ".snowflake", ".config/gh",
	".config/hub", ".config/glab-cli", ".config/git", ".config/gcloud", ".config/pip", ".config/pypoetry",
	".config/pnpm", ".config/NuGet", ".config/op", ".config/rclone", ".config/doctl", ".config/heroku",
	".config/netlify", ".config/containers", ".config/composer/auth.json", ".config/github-copilot",
	".config/anaconda", ".config/dart", ".config/hex", ".config/sops", ".config/google-chrome",
	".config/chromium", ".config/BraveSoftware", ".config/Code", ".config/Cursor", ".config/tether",
	".cargo/credentials", ".cargo/credentials.toml", ".cargo/config", ".cargo/config.toml",
	".gem/credentials", ".local/share/gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml",
	".gradle/gradle.properties", ".gradle/init.gradle", ".gradle/init.d", ".nuget/NuGet",
	".nuget/NuGet.Config", ".composer/auth.json", ".yarnrc", ".yarnrc.yml", ".bunfig.toml", ".condarc",
	".mambarc", ".conda/.condarc", ".continuum", ".anaconda", ".rattler", ".local/share/uv/credentials",
	".rye/credentials", ".rye/config.toml", ".pulumi/credentials.json", ".fly/config.yml",
	".foundry/keystores", ".julia/servers", ".pub-cache/credentials.json", ".hex", ".kaggle", ".huggingface",
	".cache/huggingface/token", ".wrangler", ".vercel", ".local/share/keyrings", ".local/share/kwalletd",
	".local/share/tether", ".local/state/tether", ".mozilla", ".thunderbird", ".claude/.credentials.json",
	".claude.json", ".codex", ".gemini", ".cursor", ".bash_history", ".zsh_history", ".python_history",
	".node_repl_history", ".psql_history", ".mysql_history", ".lesshst",
}

// neverParts are names that, anywhere in a path, mean that it is not a
// toolchain.
var neverParts = [...]string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", "keyrings", "gcloud",
	".mozilla",
}

// cacheRow is one module cache of the user's: a source that the tools inside
// read and never write.
type cacheRow struct {
	tool, vars, dirs string
	// show is what of the folder holds modules.
	show string
	// into is the variable that names, inside, the folder that corresponds.
	into string
	// set are variables by which the tool reads the cache in place.
	set string
}

// caches is the table of module caches.
var caches = [...]cacheRow{
	{tool: "go", vars: "GOMODCACHE GOPATH/pkg/mod", dirs: "go/pkg/mod", show: "cache/download", into: "GOMODCACHE"},
	{tool: "cargo", vars: "CARGO_HOME", dirs: ".cargo", show: "registry/cache registry/index", into: "CARGO_HOME"},
	{tool: "npm", vars: "npm_config_cache NPM_CONFIG_CACHE", dirs: ".npm", show: "_cacache", into: "npm_config_cache"},
	{tool: "pnpm", vars: "PNPM_HOME", dirs: ".local/share/pnpm", show: "store", into: "PNPM_HOME"},
	{tool: "yarn", vars: "YARN_CACHE_FOLDER", dirs: ".cache/yarn", show: "v6", into: "YARN_CACHE_FOLDER"},
	{tool: "yarn", vars: "YARN_GLOBAL_FOLDER", dirs: ".yarn/berry", show: "cache", into: "YARN_GLOBAL_FOLDER"},
	{tool: "corepack", vars: "COREPACK_HOME", dirs: ".cache/node/corepack", show: "v1", into: "COREPACK_HOME"},
	{tool: "bun", vars: "BUN_INSTALL/install/cache", dirs: ".bun/install/cache", show: ".", into: "BUN_INSTALL_CACHE_DIR"},
	{tool: "pip", vars: "PIP_CACHE_DIR", dirs: ".cache/pip", show: "wheels http-v2 http", into: "PIP_CACHE_DIR"},
	{tool: "uv", vars: "UV_CACHE_DIR", dirs: ".cache/uv", show: "archive-v* wheels-v* simple-v* sdists-v*", into: "UV_CACHE_DIR"},
	{tool: "maven", dirs: ".m2", show: "repository"},
	{tool: "gradle", vars: "GRADLE_USER_HOME", dirs: ".gradle", show: "caches/modules-2", set: "GRADLE_RO_DEP_CACHE=caches"},
	{tool: "gradle", vars: "GRADLE_USER_HOME", dirs: ".gradle", show: "wrapper/dists", into: "GRADLE_USER_HOME"},
	{tool: "nuget", vars: "NUGET_PACKAGES", dirs: ".nuget/packages", show: ".", set: "NUGET_FALLBACK_PACKAGES=."},
	{tool: "deno", vars: "DENO_DIR", dirs: ".cache/deno", show: "npm remote", into: "DENO_DIR"},
	{tool: "pub", vars: "PUB_CACHE", dirs: ".pub-cache", show: "hosted", into: "PUB_CACHE"},
	{tool: "composer", vars: "COMPOSER_CACHE_DIR", dirs: ".cache/composer", show: "files repo", into: "COMPOSER_CACHE_DIR"},
}
