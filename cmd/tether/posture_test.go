//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/need"
	"github.com/tether-sandbox/tether/policy"
)

// posture is what testdata/posture.c prints of itself.
type posture struct {
	// one are keys with one line.
	one map[string]string
	// status is /proc/self/status, ns the namespaces, first what process 1
	// opens, env the environment, limits the rlimits by number.
	status, ns, first, env, limits map[string]string
	mounts                         map[string][]string // options of what stands at a path, the uppermost
}

// buildPosture puts the program into the workspace.
func (j *jail) buildPosture() {
	j.t.Helper()
	gcc := need.Program(j.t, "gcc")
	if out, err := exec.Command(gcc, "-O1", "-o", filepath.Join(j.w, "posture"), "testdata/posture.c").CombinedOutput(); err != nil {
		j.t.Fatalf("gcc: %v\n%s", err, out)
	}
}

func parsePosture(t testing.TB, r result) posture {
	t.Helper()
	if r.exit != 0 || !strings.HasPrefix(r.stdout, "fds") {
		t.Fatalf("the program: exit %d: %s", r.exit, r.all())
	}
	p := posture{one: map[string]string{}, status: map[string]string{}, ns: map[string]string{}, first: map[string]string{},
		env: map[string]string{}, limits: map[string]string{}, mounts: map[string][]string{}}
	parent := map[string]string{}
	for line := range strings.Lines(r.stdout) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		word, rest, _ := strings.Cut(value, " ")
		switch key {
		case "ns":
			p.ns[word] = rest
		case "first":
			p.first[word] = rest
		case "rlimit":
			p.limits[word] = rest
		case "env":
			name, v, _ := strings.Cut(value, "=")
			p.env[name] = v
		case "status":
			k, v, _ := strings.Cut(value, ":")
			p.status[k] = strings.TrimSpace(v)
		case "mount":
			f := strings.Fields(value)
			at := f[4]
			if parent[at] == f[0] {
				continue // below the one that is known
			}
			parent[at] = f[1]
			p.mounts[at] = strings.Split(f[5], ",")
		default:
			p.one[key] = value
		}
	}
	return p
}

// alwaysSet are the variables that every command gets, and sometimesSet those
// that depend on the machine's toolchains and the company's settings. Nothing
// else may be there.
var (
	alwaysSet = `BUNDLE_USER_HOME BUN_INSTALL_CACHE_DIR CABAL_DIR CARGO_HOME CCACHE_DIR COMPOSER_CACHE_DIR COMPOSER_HOME
COREPACK_ENABLE_DOWNLOAD_PROMPT COREPACK_HOME CURL_HOME DENO_DIR DOCKER_CONFIG DOTNET_CLI_HOME DOTNET_CLI_TELEMETRY_OPTOUT
DOTNET_NOLOGO GEM_SPEC_CACHE GIT_CONFIG_GLOBAL GNUPGHOME GOCACHE GOMODCACHE GOPATH GRADLE_USER_HOME HEX_HOME HISTFILE HOME
INPUTRC LANG LESSHISTFILE MAVEN_OPTS MIX_HOME MYSQL_HISTFILE NODE_REPL_HISTORY NUGET_HTTP_CACHE_PATH NUGET_PACKAGES
PATH PIP_CACHE_DIR PNPM_HOME POETRY_CACHE_DIR PSQL_HISTORY PUB_CACHE PWD PYTHONNOUSERSITE PYTHONUSERBASE PYTHON_HISTORY
REDISCLI_HISTFILE SCCACHE_DIR SHELL SQLITE_HISTORY TERM TETHER TETHER_SANDBOX TMPDIR UV_CACHE_DIR WGETRC XDG_CACHE_HOME
XDG_CONFIG_HOME XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME YARN_CACHE_FOLDER YARN_GLOBAL_FOLDER ZDOTDIR npm_config_cache
npm_config_userconfig`
	offlineSet   = `CARGO_NET_OFFLINE UV_OFFLINE npm_config_offline npm_config_update_notifier GOPROXY`
	sometimesSet = `GOPROXY GOSUMDB GOPRIVATE GONOPROXY GONOSUMDB GOINSECURE GOTOOLCHAIN GOFLAGS GOROOT PIP_INDEX_URL
PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST RUSTUP_HOME NVM_DIR FNM_DIR VOLTA_HOME NODENV_ROOT PYENV_ROOT RBENV_ROOT GOENV_ROOT
SDKMAN_DIR ASDF_DATA_DIR MISE_DATA_DIR UV_PYTHON_INSTALL_DIR PLAYWRIGHT_BROWSERS_PATH JAVA_HOME GRADLE_RO_DEP_CACHE
NUGET_FALLBACK_PACKAGES USER LOGNAME`
)

// sooner is what stands in oom_score_adj of what the kernel ends before its caller.
func sooner(callers string) string {
	n, _ := strconv.Atoi(callers)
	return strconv.Itoa(min(n+300, 1000))
}

// TestPosture compares everything that a command inherits with what it must be,
// as a whole: a thing that is not expected is as wrong as one that is missing.
func TestPosture(t *testing.T) {
	for _, network := range []string{"none", "open"} {
		t.Run("network="+network, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.systemPath()
				j.buildPosture()
				j.mustHost("git init -q . && mkdir .vscode")
				j.plant(".env")
				// Things that must not cross, and that do without Tether.
				dirty := "exec 9</etc/passwd; umask 027; export EVIL=1 LD_PRELOAD=; trap '' HUP PIPE USR1; "
				out := parsePosture(t, j.host(dirty+"exec ./posture"))
				if out.one["fds"] == "0 1 2" || out.one["ignored"] == "" || out.env["EVIL"] != "1" || out.one["umask"] != "0027" {
					t.Fatalf("control: outside there is nothing to keep away: %v", out.one)
				}
				flags := []string{"--network", network}
				cmd := j.command(append(flags, "--", "./posture")...)
				cmd.Args = append([]string{"sh", "-c", dirty + `exec "$@"`, "sh"}, cmd.Args...)
				cmd.Path, _ = exec.LookPath("sh")
				in := parsePosture(t, j.built(finishCommand(t, cmd)))

				uid, gid := os.Geteuid(), os.Getegid()
				if uid == 0 && j.provider == "bwrap" {
					uid, gid = foreignUID, foreignUID
				}
				bits := "0xcf" // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, locked
				if j.provider == "bwrap" {
					bits = "0" // out of reach there; the bounding set is empty, and no_new_privs is on
				}
				wholly(t, "process", in.one, map[string]string{
					"fds": "0 1 2", "uid": fmt.Sprintf("%d %d %d", uid, uid, uid), "gid": fmt.Sprintf("%d %d %d", gid, gid, gid),
					"securebits": bits, "keepcaps": "0", "nonewprivs": "1", "pdeathsig": "0", "subreaper": "0", "dumpable": "1",
					"personality": "0", "leader": "1", "parent": "1", "terminal": "-1", "priority": out.one["priority"],
					"hostname": out.one["hostname"], "umask": "0027", "cwd": j.w, "ignored": "", "blocked": "",
					"oom": sooner(out.one["oom"]),
				})
				none := "0000000000000000"
				groups := fmt.Sprint(gid)
				if os.Geteuid() == 0 {
					groups = "" // dropped
				} else if len(strings.Fields(out.status["Groups"])) > 1 {
					groups = in.status["Groups"] // an ordinary user cannot drop them
				}
				for key, want := range map[string]string{"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
					"NoNewPrivs": "1", "Seccomp": "2", "PPid": "1", "Groups": groups, "TracerPid": "0", "Threads": "1", "SigIgn": none, "SigBlk": none} {
					got := in.status[key]
					if n, err := strconv.ParseUint(got, 16, 64); key == "SigIgn" && err == nil {
						// 32 and 33 are the C library's own; make(1) hands them on ignored.
						got = fmt.Sprintf("%016x", n&^(3<<31))
					}
					if got != want {
						t.Errorf("status: %s is %q, want %q", key, got, want)
					}
				}
				if in.status["NSsid"] != in.status["Pid"] {
					t.Errorf("session %s of process %s, want its own", in.status["NSsid"], in.status["Pid"])
				}
				limits := out.limits
				limits["4"] = "1 1" // no core file, and no core handler
				// As many as are allowed, and the inner stage's own threads; in the first
				// moment the hard limit has room for more of those.
				var soft, hard int
				if n, err := fmt.Sscan(in.limits["6"], &soft, &hard); n != 2 || err != nil || soft > hard ||
					soft <= policy.BuiltinProcesses || hard > policy.BuiltinProcesses+enforce.OwnThreads {
					t.Errorf("limit of processes: got %q", in.limits["6"])
				}
				limits["6"] = in.limits["6"]
				wholly(t, "limits", in.limits, limits)
				for ns, id := range out.ns {
					shared := in.ns[ns] == id
					want := ns == "net" && network == "open" || ns == "cgroup" && j.provider == "native"
					if shared != want {
						t.Errorf("namespace %s: shared with the host: %v, want %v", ns, shared, want)
					}
				}
				for file, got := range in.first {
					if file != "mountinfo" && got == "readable" {
						t.Errorf("/proc/1/%s is readable", file)
					}
				}
				in.checkEnv(t, network)
				in.checkMounts(t, j, flags)
			})
		})
	}
}

// wholly compares two maps as wholes.
func wholly(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			t.Errorf("%s: %s is %q, want %q", what, k, g, w)
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %s is %q, want it absent", what, k, g)
		}
	}
}

func (p posture) checkEnv(t testing.TB, network string) {
	t.Helper()
	must := strings.Fields(alwaysSet)
	may := strings.Fields(sometimesSet)
	if network == "none" {
		must = append(must, strings.Fields(offlineSet)...)
	}
	for _, name := range must {
		if _, ok := p.env[name]; !ok {
			t.Errorf("the variable %s is missing", name)
		}
	}
	for name, value := range p.env {
		if !slices.Contains(must, name) && !slices.Contains(may, name) {
			t.Errorf("the variable %s=%s is there", name, value)
		}
	}
}

// checkMounts compares the mounts that a command sees with the steps that
// explain prints.
func (p posture) checkMounts(t testing.TB, j *jail, flags []string) {
	t.Helper()
	words := append([]string{"explain", "--json", "--provider", j.provider, "-C", j.w}, flags...)
	cmd := exec.Command(binary, words...)
	cmd.Env, cmd.Dir = j.env, j.w
	r := finishCommand(t, cmd)
	var plan struct{ Steps []string }
	if err := json.Unmarshal([]byte(r.stdout), &plan); err != nil || len(plan.Steps) < 20 {
		t.Fatalf("explain: %v: %s", err, r.all())
	}
	type expected struct{ readonly, tolerated bool }
	want := map[string]expected{"/": {readonly: true}}
	var recursive []string // what brings mounts of its own, which are then as closed
	for _, line := range plan.Steps {
		f := strings.Fields(line)
		ro := strings.Contains(line, "[ro") || strings.Contains(line, ",ro")
		gone := strings.Contains(line, "gone") || strings.Contains(line, "optional")
		switch at := f[1]; f[0] {
		case "symlink", "dir", "sysctl":
		case "seal":
			e := want[at]
			want[at] = expected{true, e.tolerated}
		case "self":
			if j.provider == "bwrap" && strings.HasPrefix(at, "/proc/") {
				continue // bwrap's own
			}
			want[at] = expected{ro, gone}
		case "bind":
			if ro {
				recursive = append(recursive, at)
			}
			want[at] = expected{ro, gone}
		case "tmpfs", "proc":
			want[at] = expected{false, gone}
		default:
			want[at] = expected{true, gone}
		}
	}
	nodes := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts", "/dev/shm"}
	for _, n := range nodes {
		want[n] = expected{}
	}
	if j.provider == "native" {
		// What masks are cloned from, below the /dev/pts that is seen.
		for _, source := range []string{"cover", "mask-dir", "mask-file"} {
			want["/dev/pts/"+source] = expected{readonly: true, tolerated: true}
		}
	}
	for at, options := range p.mounts {
		e, planned := want[at]
		below := slices.ContainsFunc(recursive, func(dir string) bool { return strings.HasPrefix(at, dir+"/") })
		switch {
		case !planned && !below:
			t.Errorf("mounts: %s (%v) was not planned", at, options)
		case (e.readonly || !planned) && !slices.Contains(options, "ro"):
			t.Errorf("mounts: %s (%v) is writable", at, options)
		case planned && !e.readonly && !slices.Contains(options, "rw"):
			t.Errorf("mounts: %s (%v) is not writable", at, options)
		}
		if !slices.Contains(options, "nosuid") {
			t.Errorf("mounts: %s (%v) starts set-uid programs", at, options)
		}
		if !slices.Contains(options, "nodev") && (!slices.Contains(nodes, at) || at == "/dev/shm") {
			t.Errorf("mounts: %s (%v) has live devices", at, options)
		}
	}
	for at, e := range want {
		if _, there := p.mounts[at]; !there && !e.tolerated {
			t.Errorf("mounts: %s is missing", at)
		}
	}
	for _, at := range []string{j.w + "/.env", j.w + "/.vscode", j.w + "/.git/hooks"} {
		if o := p.mounts[at]; !slices.Contains(o, "ro") {
			t.Errorf("mounts: %s (%v) is not closed", at, o)
		}
	}
	for _, at := range []string{j.w, "/tmp"} {
		if o := p.mounts[at]; !slices.Contains(o, "rw") {
			t.Errorf("mounts: %s (%v) is not writable", at, o)
		}
	}
}

// TestProcessors: a command may use the processors that its caller may, all of
// them and no other, wherever the inner stage was started.
func TestProcessors(t *testing.T) {
	need.Program(t, "taskset")
	providers(t, func(t *testing.T, j *jail) {
		j.systemPath()
		const script = "grep Cpus_allowed: /proc/self/status"
		want := j.host(script).stdout
		if got := j.run(script).stdout; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		one := func(cmd *exec.Cmd) string {
			cmd.Args = append([]string{"taskset", "1", cmd.Path}, cmd.Args[1:]...)
			cmd.Path, _ = exec.LookPath("taskset")
			return j.built(finishCommand(t, cmd)).stdout
		}
		plain := one(exec.Command("sh", "-c", script))
		if runtime.NumCPU() > 1 && plain == want {
			t.Fatalf("control: taskset changes nothing: %q", plain)
		}
		if got := one(j.command("--network", "none", "--", "sh", "-c", script)); got != plain {
			t.Errorf("on one processor: got %q, want %q", got, plain)
		}
	})
}
