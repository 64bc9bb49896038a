package environ

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// build builds or fails, and returns the result with Env as a map.
func build(t testing.TB, in Input) (Result, map[string]string) {
	t.Helper()
	res, err := Build(in)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	env := make(map[string]string, len(res.Env))
	for _, kv := range res.Env {
		name, value, ok := strings.Cut(kv, "=")
		if _, twice := env[name]; !ok || name == "" || twice {
			t.Errorf("malformed or double entry %q", kv)
		}
		env[name] = value
	}
	return res, env
}

func with(host ...string) Input {
	in := sample()
	in.Host = append(in.Host, host...)
	return in
}

func names(rs []Refusal) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Name)
	}
	return out
}

func TestSecretsAreDropped(t *testing.T) {
	secret := "s3cr3t-value"
	in := with("AWS_SECRET_ACCESS_KEY="+secret, "GITHUB_TOKEN="+secret, "ANTHROPIC_API_KEY="+secret,
		"MY_DB_URL=postgres://u:"+secret+"@db/x", "Xq7_random="+secret, "STRIPE_KEY="+secret,
		"CARGO_REGISTRIES_CORP_TOKEN="+secret, "npm_config__authToken="+secret, "PIP_PASSWORD="+secret,
		"TETHER_ENV_PASSTHROUGH="+secret, "lang="+secret, "LANG2="+secret, "CONDA_TOKEN="+secret)
	res, env := build(t, in)
	if s := strings.Join(res.Env, "\n"); strings.Contains(s, secret) {
		t.Errorf("the secret is in the environment:\n%s", s)
	}
	for _, n := range []string{"AWS_SECRET_ACCESS_KEY", "Xq7_random", "CARGO_REGISTRIES_CORP_TOKEN", "lang"} {
		if !slices.Contains(res.Dropped, n) {
			t.Errorf("%s is not among the dropped: %v", n, res.Dropped)
		}
	}
	for _, n := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TERM", "TMPDIR", "SHELL", "USER", "LOGNAME", "PWD"} {
		if env[n] == "" {
			t.Errorf("%s is missing", n)
		}
	}
	// The door opens: the same variables pass when nothing is scrubbed.
	in.Profile, in.Policy.NoScrub = policy.FullAccess, true
	if res, _ := build(t, in); !slices.Contains(res.Env, "GITHUB_TOKEN="+secret) {
		t.Error("control: without scrubbing the variable must pass")
	}
}

func TestHijacksAreRefusedUnlessNamed(t *testing.T) {
	for _, name := range []string{
		"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "MALLOC_TRACE",
		"BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "GLOBIGNORE",
		"BASH_FUNC_ls%%", "BASH_FUNC_x()", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PERL5OPT", "PERL5LIB",
		"PERL5DB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
		"GIT_EXTERNAL_DIFF", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PAGER", "GIT_DIR",
		"GIT_WORK_TREE", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_PARAMETERS",
		"GIT_CONFIG_SYSTEM", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_PROXY_COMMAND", "GIT_TRACE", "LESSOPEN",
		"LESSCLOSE", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "GCONV_PATH", "LOCPATH", "NLSPATH",
		"HOSTALIASES", "RES_OPTIONS", "TMPPREFIX", "SSLKEYLOGFILE", "RUSTC_WRAPPER", "MAKEFLAGS",
		"DOTNET_STARTUP_HOOKS", "RIPGREP_CONFIG_PATH", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
	} {
		in := with(name + "=/evil/x")
		res, env := build(t, in)
		if _, ok := env[name]; ok {
			t.Errorf("%s passed", name)
		}
		i := slices.IndexFunc(res.Refused, func(r Refusal) bool { return r.Name == name })
		if i < 0 || res.Refused[i].Why == "" {
			t.Errorf("%s: got refused %v, want it there with a reason", name, res.Refused)
		}
		in.Policy.Pass = []string{name}
		res, env = build(t, in)
		if env[name] != "/evil/x" || !slices.Equal(res.Passed, []string{name}) || len(res.Refused) != 0 {
			t.Errorf("%s named by the policy: got %q, passed %v, refused %v", name, env[name], res.Passed, res.Refused)
		}
	}
}

func TestPath(t *testing.T) {
	tail := ":/p/data/go/bin:/p/data/python/bin:/p/cache/cargo/bin"
	for _, c := range []struct{ host, want string }{
		{"/usr/bin:/bin", "/usr/bin:/bin" + tail},
		{":/usr/bin::.:bin:./x:~/bin:/bin:", "/usr/bin:/bin" + tail},
		{"/home/u/src/app/node_modules/.bin:/usr/bin", "/home/u/src/app/node_modules/.bin:/usr/bin" + tail},
		{"/usr/bin/:/usr/bin:/a/../b:/usr/bin", "/usr/bin" + tail},
		{"", DefaultPath + tail},
		{"relative:.", DefaultPath + tail},
		{"/a\nb:/c", "/c" + tail},
	} {
		in := sample()
		in.Host = []string{"PATH=" + c.host}
		if _, env := build(t, in); env["PATH"] != c.want {
			t.Errorf("PATH=%q: got %q, want %q", c.host, env["PATH"], c.want)
		}
		in.Policy.Pass = []string{"PATH"} // exactly as the caller has it
		if _, env := build(t, in); env["PATH"] != c.host {
			t.Errorf("PATH=%q passed by name: got %q", c.host, env["PATH"])
		}
	}
	in := sample()
	in.Host, in.Path, in.Private = nil, []string{"/opt/x/bin"}, Private{}
	if _, env := build(t, in); env["PATH"] != DefaultPath+":/opt/x/bin" {
		t.Errorf("got %q", env["PATH"])
	}
}

func TestValuesByForm(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{ // want "-" is absent
		{"LANG", "de_DE.UTF-8@euro", "de_DE.UTF-8@euro"},
		{"LANG", "C\nSECRET=x", "-"},
		{"TERM", strings.Repeat("x", maxWord+1), "-"},
		{"TERM", strings.Repeat("x", maxWord), strings.Repeat("x", maxWord)},
		{"NO_COLOR", "", ""},
		{"COLUMNS", "120", "120"},
		{"COLUMNS", "12;rm", "-"},
		{"TZ", ":Europe/Berlin", ":Europe/Berlin"},
		{"GIT_AUTHOR_NAME", "Zoë Ångström", "Zoë Ångström"},
		{"SSL_CERT_FILE", "/etc/ssl/corp.pem", "/etc/ssl/corp.pem"},
		{"SSL_CERT_FILE", "corp.pem", "-"},
		{"SSL_CERT_FILE", "", "-"},
		{"SSL_CERT_DIR", "/etc/a:b:/c", "/etc/a:/c"},
		{"PYTHONPATH", "src:/x", "src:/x"},
		{"SHELL", "/usr/bin/fish", "/usr/bin/fish"},
		{"SHELL", "/usr/local/bin/tether", "/bin/sh"},
		{"SHELL", "zsh", "/bin/sh"},
		{"GOFLAGS", "-mod=vendor -toolexec=/x -ldflags=-X=t=s -tags=a,b", "-mod=vendor -tags=a,b"},
		{"GOFLAGS", "-overlay=/x", "-"},
		{"GOPROXY", "https://u:p@corp/go|direct", "https://corp/go|direct"},
		{"GOPROXY", "https://u:p/w@corp", "off"},
		{"GOPROXY", "off", "off"},
		{"GOSUMDB", "sum.corp+1+key https://u:p@sum.corp", "sum.corp+1+key https://sum.corp"},
		{"PIP_EXTRA_INDEX_URL", "https://a:b@x/simple  https://y/simple", "https://x/simple https://y/simple"},
		{"UV_INDEX", "corp=https://t@x/simple", "corp=https://x/simple"},
		{"npm_config_registry", "https://tok:en@npm.corp:8443/r/", "https://npm.corp:8443/r/"},
		{"CARGO_REGISTRIES_CORP_INDEX", "sparse+https://t@x/", "sparse+https://x/"},
		{"GOCACHE", "/home/u/.cache/go-build", "/p/cache/go-build"},
		{"TMPDIR", "/run/user/1000", "/tmp"},
		{"HOME", "/home/u", "/home/u/src/app"},
		{"XDG_RUNTIME_DIR", "/run/user/1000", "/p/run"},
		{"TETHER_X", "1", "-"},
	} {
		in := sample()
		in.Host = []string{c.name + "=" + c.value}
		_, env := build(t, in)
		if got, ok := env[c.name]; ok && got != c.want || !ok && c.want != "-" {
			t.Errorf("%s=%q: got %q (there: %t), want %q", c.name, c.value, got, ok, c.want)
		}
	}
}

func TestCleanURL(t *testing.T) {
	for _, c := range []struct{ in, want string }{ // empty is refused
		{"https://pypi.org/simple", "https://pypi.org/simple"},
		{"https://u@h/", "https://h/"},
		{"https://u:p@h/", "https://h/"},
		{"https://u:p@ss@h:1/x", "https://h:1/x"},
		{"git+ssh://git@h/x", "git+ssh://h/x"},
		{"HTTPS://U:P@H", "HTTPS://H"},
		{"https://h/@scope/x", "https://h/@scope/x"},
		{"https://h/x?token=s#t", "https://h/x"},
		{"https://u:p@[::1]:8080/x", "https://[::1]:8080/x"},
		{"file:///srv/x", "file:///srv/x"},
		{"https://user:pa/ss@h/", ""},
		{"https://to/ken@h/", ""},
		{"https://user:pa?ss@h/", ""},
		{"https://u:p\\@h/", ""},
		{"https://u%3Ap%40h/", ""},
		{"https://h:port/", ""},
		{"https:///x", ""},
		{"https://", ""},
		{"u:p@h", ""},
		{"//u:p@h/", ""},
		{"https:u:p@h", ""},
		{"ht tps://h", ""},
		{"https://h/ x", ""},
		{"https://h/${TOKEN}", ""},
		{"https://[::1/", ""},
		{"https://[::1]x/", ""},
		{"", ""},
	} {
		got, _, ok := cleanURL(c.in)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q: got %q, %t, want %q", c.in, got, ok, c.want)
		}
	}
}

func TestGoProxyOrder(t *testing.T) {
	for _, c := range []struct {
		host    string
		offline bool
		modules string
		want    string
	}{
		{"", false, "", ""},
		{"", false, "/home/u/go/pkg/mod/cache/download", "file:///home/u/go/pkg/mod/cache/download,https://proxy.golang.org,direct"},
		{"https://u:p@corp", false, "/m", "file:///m,https://corp"},
		{"https://corp", true, "/m", "file:///m,off"},
		{"", true, "/m x", "file:///m%20x,off"},
		{"file:///srv/proxy", true, "/m", "file:///m,file:///srv/proxy"},
		{"off", false, "/m", "file:///m,off"},
	} {
		in := sample()
		in.GoModules, in.Offline = c.modules, c.offline
		if c.host != "" {
			in.Host = []string{"GOPROXY=" + c.host}
		}
		if _, env := build(t, in); env["GOPROXY"] != c.want {
			t.Errorf("%+v: got %q", c, env["GOPROXY"])
		}
	}
}

func TestDefaultsStandIn(t *testing.T) {
	in := with("GOPRIVATE=host.corp")
	in.Defaults = append(GoEnv("GOPRIVATE=file.corp\nGOPROXY=https://u:p@corp\nGOCACHE=/x\nLD_PRELOAD=/x\nGOFLAGS=-mod=mod\n"),
		PipConf("[global]\nindex-url = https://u:p@pip.corp/simple\n")...)
	res, env := build(t, in)
	for name, want := range map[string]string{
		"GOPRIVATE": "host.corp", "GOPROXY": "https://corp", "GOCACHE": "/p/cache/go-build", "GOFLAGS": "-mod=mod",
		"PIP_INDEX_URL": "https://pip.corp/simple", "LD_PRELOAD": "",
	} {
		if env[name] != want {
			t.Errorf("%s: got %q, want %q", name, env[name], want)
		}
	}
	if !slices.Contains(res.Trimmed, "PIP_INDEX_URL") {
		t.Errorf("trimmed: got %v", res.Trimmed)
	}
}

func TestPolicyBeatsAll(t *testing.T) {
	in := with("TOKEN=caller", "CARGO_HOME=/home/u/.cargo", "LANG=C.UTF-8")
	in.Add = []string{"HTTPS_PROXY=http://127.0.0.1:1", "RUSTUP_HOME=/home/u/.rustup"}
	in.Policy = policy.Env{
		Pass: []string{"TOKEN", "CARGO_HOME", "LANG", "NOT_THERE", "BOTH"},
		Set:  map[string]string{"BOTH": "set", "PYTHONNOUSERSITE": "", "HTTPS_PROXY": "x"},
	}
	in.Host = append(in.Host, "BOTH=host")
	res, env := build(t, in)
	for name, want := range map[string]string{
		"TOKEN": "caller", "CARGO_HOME": "/home/u/.cargo", "BOTH": "set", "PYTHONNOUSERSITE": "", "HTTPS_PROXY": "x",
		"RUSTUP_HOME": "/home/u/.rustup", "TETHER": "1", "TETHER_SANDBOX": "native",
	} {
		if env[name] != want {
			t.Errorf("%s: got %q, want %q", name, env[name], want)
		}
	}
	// LANG passes anyway and is no widening.
	if want := []string{"CARGO_HOME", "TOKEN"}; !slices.Equal(res.Passed, want) {
		t.Errorf("passed: got %v, want %v", res.Passed, want)
	}
	if want := []string{"NOT_THERE"}; !slices.Equal(res.Absent, want) {
		t.Errorf("absent: got %v, want %v", res.Absent, want)
	}
}

func TestAmbiguousAndMalformedHost(t *testing.T) {
	in := with("LANG=xx", "NOVALUE-sk-secret", "=C:=x", "A B=secret", "NUL=a\x00b", "NUL2\x00=x", "TERM=xterm-256color")
	in.Policy.Pass = []string{"NUL", "HUGE"}
	in.Host = append(in.Host, "HUGE="+strings.Repeat("x", maxValue))
	res, env := build(t, in)
	if _, ok := env["LANG"]; ok || !slices.Equal(names(res.Refused), []string{"HUGE", "LANG", "NUL"}) {
		t.Errorf("got LANG %q, refused %v", env["LANG"], res.Refused)
	}
	if env["TERM"] != "xterm-256color" {
		t.Error("the same value twice is no conflict")
	}
	if s := strings.Join(append(res.Env, res.Dropped...), " "); strings.Contains(s, "secret") {
		t.Errorf("text of malformed entries shows: %s", s)
	}
}

func TestBuildErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*Input)
		code fault.Code
	}{
		{"no-scrub under a jail", func(in *Input) { in.Policy.NoScrub = true }, fault.PolicyInvalid},
		{"pass empty", func(in *Input) { in.Policy.Pass = []string{""} }, fault.PolicyInvalid},
		{"pass with =", func(in *Input) { in.Policy.Pass = []string{"A=B"} }, fault.PolicyInvalid},
		{"pass pattern", func(in *Input) { in.Policy.Pass = []string{"AWS_*"} }, fault.PolicyInvalid},
		{"pass ours", func(in *Input) { in.Policy.Pass = []string{"TETHER_X"} }, fault.PolicyInvalid},
		{"set PWD", func(in *Input) { in.Policy.Set = map[string]string{"PWD": "/"} }, fault.PolicyInvalid},
		{"set NUL", func(in *Input) { in.Policy.Set = map[string]string{"A": "s3cret\x00"} }, fault.PolicyInvalid},
		{"set name NUL", func(in *Input) { in.Policy.Set = map[string]string{"A\x00": ""} }, fault.PolicyInvalid},
		{"no workspace", func(in *Input) { in.Workspace = "" }, fault.Internal},
		{"relative home", func(in *Input) { in.Home = "x" }, fault.Internal},
		{"parent in a folder", func(in *Input) { in.Private.Cache = "/a/../b" }, fault.Internal},
		{"bad addition", func(in *Input) { in.Add = []string{"novalue"} }, fault.Internal},
		{"addition of ours", func(in *Input) { in.Add = []string{"TETHER=2"} }, fault.Internal},
	} {
		in := sample()
		c.do(&in)
		res, err := Build(in)
		if fault.CodeOf(err) != c.code || len(res.Env) != 0 {
			t.Errorf("%s: got %v and %d variables, want %s", c.name, err, len(res.Env), c.code)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows a value", c.name)
		}
	}
}

func TestFullAccess(t *testing.T) {
	in := with("TOKEN=x", "GOCACHE=/home/u/.cache/go-build")
	in.Profile, in.Home, in.Sandbox = policy.FullAccess, "/home/u", ""
	_, env := build(t, in)
	for _, n := range []string{"TOKEN", "XDG_CACHE_HOME", "PYTHONNOUSERSITE", "MAVEN_OPTS", "TETHER_SANDBOX"} {
		if v, ok := env[n]; ok {
			t.Errorf("%s: got %q, want it absent", n, v)
		}
	}
	in.Policy.NoScrub = true
	in.Host = append(in.Host, "TETHER_X=1", "PWD=/elsewhere")
	_, env = build(t, in)
	if env["TOKEN"] != "x" || env["PWD"] != in.Workspace || env["TETHER_X"] != "" || env["HOME"] != "/home/u" {
		t.Errorf("got %v", env)
	}
}

func TestEmptyPrivateLeavesOut(t *testing.T) {
	in := sample()
	in.Private = Private{}
	res, env := build(t, in)
	for name, value := range env {
		if strings.HasPrefix(value, "/p/") && name != "GIT_CONFIG_GLOBAL" {
			t.Errorf("%s=%s", name, value)
		}
	}
	if len(res.Create) != 0 {
		t.Errorf("create: got %v", res.Create)
	}
}

func TestCertificatesAndCreate(t *testing.T) {
	res, _ := build(t, with("SSL_CERT_FILE=/home/u/ca.pem", "SSL_CERT_DIR=/home/u/certs:/etc/certs", "NODE_EXTRA_CA_CERTS=/home/u/ca.pem"))
	if want := []string{"/etc/certs", "/home/u/ca.pem", "/home/u/certs"}; !slices.Equal(res.Certificates, want) {
		t.Errorf("got %v, want %v", res.Certificates, want)
	}
	made := map[string]bool{"/p/": true}
	for _, p := range res.Create {
		parent := strings.TrimRight(p, "/")
		parent = parent[:strings.LastIndex(parent, "/")+1]
		if !made[parent] {
			t.Errorf("%s comes before its parent", p)
		}
		made[p] = true
	}
}

// Everything that we set takes the place of the caller's: a name in the sets
// must not also pass.
func TestSetsAreNotPassed(t *testing.T) {
	in := sample()
	for _, s := range slices.Concat(sets[:], offline[:]) {
		in.Host = append(in.Host, s.name+"=/callers/value")
	}
	in.Offline = true
	_, env := build(t, in)
	for name, value := range env {
		if value == "/callers/value" {
			t.Errorf("%s has the caller's value", name)
		}
	}
	seen := map[string]bool{}
	for _, s := range slices.Concat(sets[:], offline[:]) {
		if seen[s.name] {
			t.Errorf("%s is set twice", s.name)
		}
		seen[s.name] = true
	}
}

func TestParsePassthrough(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
		bad  bool
	}{
		{"", nil, false},
		{"A", []string{"A"}, false},
		{" A, B ,,A,\tC", []string{"A", "B", "C"}, false},
		{"BASH_FUNC_x%%", []string{"BASH_FUNC_x%%"}, false},
		{"A=B", nil, true},
		{"A B", nil, true},
		{"A\nB", nil, true},
		{"A\x00", nil, true},
		{"AWS_*", nil, true},
		{"TETHER_X", nil, true},
		{"PWD", nil, true},
	} {
		got, err := ParsePassthrough(c.in)
		if (err != nil) != c.bad || !slices.Equal(got, c.want) {
			t.Errorf("%q: got %v, %v, want %v", c.in, got, err, c.want)
		}
		if err != nil && fault.CodeOf(err) != fault.PolicyInvalid {
			t.Errorf("%q: got %v", c.in, err)
		}
	}
}

func TestInputIsNotChanged(t *testing.T) {
	in := with("TOKEN=x")
	in.Policy.Pass, in.Policy.Set = []string{"Z", "TOKEN"}, map[string]string{"A": "1"}
	host, pass, set := slices.Clone(in.Host), slices.Clone(in.Policy.Pass), maps.Clone(in.Policy.Set)
	build(t, in)
	if !slices.Equal(host, in.Host) || !slices.Equal(pass, in.Policy.Pass) || !maps.Equal(set, in.Policy.Set) {
		t.Error("Build changed its input")
	}
}
