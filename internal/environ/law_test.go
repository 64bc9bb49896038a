package environ

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

const secret = "Zq9xSECRETx7"

// hostEnv draws an environment whose variables hold the secret in every place
// where it is known to be one.
func hostEnv(t *rapid.T) []string {
	listed := []string{
		"LANG", "PATH", "TERM", "GOPROXY", "GOSUMDB", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "npm_config_registry",
		"LD_PRELOAD", "GIT_SSH", "HOME", "TMPDIR", "GOCACHE", "XDG_CACHE_HOME", "TETHER_ENV_PASSTHROUGH",
		"CARGO_REGISTRIES_X_INDEX", "CARGO_REGISTRIES_X_TOKEN", "SSL_CERT_FILE", "UV_INDEX",
	}
	urlish := rapid.Custom(func(t *rapid.T) string {
		scheme := rapid.SampledFrom([]string{"https://", "http://", "git+ssh://", "sparse+https://", "file://"}).Draw(t, "scheme")
		return scheme + rapid.SampledFrom([]string{
			secret + "@h/x", "u:" + secret + "@h/x", "u:p@" + secret + "@h", "u:a/" + secret + "@h/x",
			secret + ":@h", "h/x?token=" + secret, "h/#" + secret, "u:" + secret + "%40@h/", "u:a?" + secret + "@h/",
			"u:" + secret + `\@h`, "u:1/" + secret + "@h", "u:1/@" + secret + "@h", "u#" + secret + "@h",
		}).Draw(t, "rest")
	})
	name := rapid.OneOf(
		rapid.SampledFrom(listed),
		rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_]{0,12}`),
		rapid.StringMatching(`(LD|DYLD|GIT|BASH_FUNC|AWS|LC|GO|npm_config)_[A-Z_a-z]{1,8}`),
		rapid.String(),
	).Filter(func(s string) bool {
		return !strings.Contains(s, "=") // or the name is another one
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		n := name.Draw(t, "name")
		r, _ := lookup(n)
		var v string
		switch r {
		case drop, refuse, ours:
			v = secret + rapid.String().Draw(t, "tail")
			if n == "PATH" {
				v = "/usr/bin:" + rapid.SampledFrom([]string{".", "", "x", "/opt/x"}).Draw(t, "dir")
			}
		case url:
			v = urlish.Draw(t, "url")
		case urls:
			v = urlish.Draw(t, "url") + " n=" + urlish.Draw(t, "url")
		case goproxy:
			v = urlish.Draw(t, "url") + rapid.SampledFrom([]string{",", "|"}).Draw(t, "sep") + urlish.Draw(t, "url")
		case sumdb:
			v = "sum+1+k " + urlish.Draw(t, "url")
		default:
			v = rapid.SampledFrom([]string{"C", "/x", "1", ""}).Draw(t, "plain")
		}
		return n + "=" + v
	}), 0, 30).Draw(t, "host")
}

func TestLawNothingLeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sample()
		in.Host = hostEnv(t)
		in.Offline = rapid.Bool().Draw(t, "offline")
		if rapid.Bool().Draw(t, "modules") {
			in.GoModules = "/home/u/go/pkg/mod/cache/download"
		}
		res, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		bare := sample()
		bare.Host, bare.Offline, bare.GoModules = nil, in.Offline, in.GoModules
		without, err := Build(bare)
		if err != nil {
			t.Fatal(err)
		}
		own := map[string]bool{}
		for _, kv := range without.Env {
			name, _, _ := strings.Cut(kv, "=")
			own[name] = true
		}
		last := ""
		for _, kv := range res.Env {
			name, value, _ := strings.Cut(kv, "=")
			if strings.Contains(value, secret) {
				t.Errorf("%s shows the secret: %q", name, value)
			}
			if r, _ := lookup(name); (r == drop || r == refuse || r == ours) && !own[name] {
				t.Errorf("%s is on no list and passed", name)
			}
			if name <= last {
				t.Errorf("%q after %q: not sorted or double", name, last)
			}
			last = name
		}
		if len(res.Passed) != 0 {
			t.Errorf("passed %v without being asked", res.Passed)
		}
	})
}

func TestLawOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sample()
		in.Host = hostEnv(t)
		in.Policy.Pass = []string{"LD_PRELOAD", "GIT_SSH", "PATH", "NOT_THERE"}
		a, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		in.Host = rapid.Permutation(in.Host).Draw(t, "permuted")
		b, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("got\n%+v\nand, permuted,\n%+v", a, b)
		}
	})
}

// A policy that names more passes more and takes nothing away.
func TestLawPassIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := sample()
		in.Host = hostEnv(t)
		less, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range in.Host {
			name, _, _ := strings.Cut(kv, "=")
			if checkName(name) == nil && rapid.Bool().Draw(t, "pass") {
				in.Policy.Pass = append(in.Policy.Pass, name)
			}
		}
		more, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range less.Env {
			name, _, _ := strings.Cut(kv, "=")
			if !slices.ContainsFunc(more.Env, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
				t.Errorf("%s went away", name)
			}
		}
		for _, kv := range more.Env {
			if !slices.Contains(less.Env, kv) {
				if name, _, _ := strings.Cut(kv, "="); !slices.Contains(more.Passed, name) {
					t.Errorf("%s changed and is not named", name)
				}
			}
		}
	})
}

func FuzzBuild(f *testing.F) {
	f.Add("LANG=C\nPATH=/bin:.\nPIP_INDEX_URL=https://u:p@h/x", "A,B")
	f.Add("GOPROXY=https://a@b|direct\nLD_PRELOAD=x", "LD_PRELOAD")
	f.Fuzz(func(t *testing.T, host, pass string) {
		in := sample()
		in.Host = strings.Split(host, "\n")
		var err error
		if in.Policy.Pass, err = ParsePassthrough(pass); err != nil {
			if fault.CodeOf(err) != fault.PolicyInvalid {
				t.Fatalf("got %v", err)
			}
			in.Policy.Pass = nil
		}
		res, err := Build(in)
		if err != nil {
			t.Fatalf("got %v for names that were accepted", err)
		}
		for _, kv := range res.Env {
			if strings.IndexByte(kv, 0) >= 0 || strings.IndexByte(kv, '=') < 1 {
				t.Errorf("malformed entry %q", kv)
			}
		}
	})
}

func FuzzCleanURL(f *testing.F) {
	f.Add("https://u:p@h:1/x?y#z")
	f.Add("sparse+https://[::1]/@s/x")
	f.Fuzz(func(t *testing.T, s string) {
		out, _, ok := cleanURL(s)
		if !ok {
			return
		}
		if again, cut, ok := cleanURL(out); !ok || cut || again != out {
			t.Errorf("%q gives %q, and that %q, %t", s, out, again, ok)
		}
		_, rest, _ := strings.Cut(out, "://")
		host, _, _ := strings.Cut(rest, "/")
		if strings.ContainsAny(host, "@%") || strings.ContainsAny(out, "?#\\ ") {
			t.Errorf("%q gives %q", s, out)
		}
	})
}

func FuzzCompanyFiles(f *testing.F) {
	f.Add("[global]\nindex-url = https://u:p@h/\n extra\n[install]\nindex_url: x\n")
	f.Add("registry=https://u:p@h/\n//h/:_authToken=npm_x\n@s:registry=https://h/\nfund=false\n")
	f.Add("GOPROXY=https://u:p@h\nGOPRIVATE=x\n")
	f.Fuzz(func(t *testing.T, s string) {
		rc := Npmrc(s)
		if again := Npmrc(rc); again != rc {
			t.Errorf("Npmrc: %q gives %q, and that %q", s, rc, again)
		}
		if strings.Contains(rc, "_auth") && !strings.Contains(rc, "/") || strings.Contains(rc, "${") {
			t.Errorf("Npmrc: %q gives %q", s, rc)
		}
		in := sample()
		in.Profile = policy.ReadOnly
		in.Defaults = append(GoEnv(s), PipConf(s)...)
		if _, err := Build(in); err != nil {
			t.Errorf("got %v", err)
		}
	})
}

func TestNpmrc(t *testing.T) {
	got := Npmrc("; c\nregistry = https://u:p@npm.corp/\n//npm.corp/:_authToken=npm_abc\n_auth=eHg=\nemail=x@y\n" +
		"@corp:registry=\"https://npm.corp/@corp/\"\n@x:registry=https://${H}/\ncafile=/etc/ca.pem\nfund=false\n" +
		"audit=${X}\nscript-shell=/evil\nnode-options=--require x\n//h/:username=u\nprefix=/x\nhttps-proxy=http://u:p@h\n")
	want := "registry=https://npm.corp/\n@corp:registry=https://npm.corp/@corp/\ncafile=/etc/ca.pem\nfund=false\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPipConf(t *testing.T) {
	got := PipConf("[global]\nindex_url = https://a/\n# c\nextra-index-url =\n  https://b/\n\thttps://c/\ncert: /etc/ca.pem\n" +
		"\n  stray\n[install]\nINDEX-URL=https://i/\n[other]\ntrusted-host=x\n")
	want := []string{"PIP_INDEX_URL=https://i/", "PIP_EXTRA_INDEX_URL=https://b/ https://c/", "PIP_CERT=/etc/ca.pem"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
