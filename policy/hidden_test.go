package policy_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

var hiddenNames = map[string]policy.Class{
	".ssh": policy.HiddenAny,
	".SSH": policy.HiddenAny,

	".env":              policy.HiddenFile,
	".ENV":              policy.HiddenFile,
	".env.local":        policy.HiddenFile,
	".env.production":   policy.HiddenFile,
	".envrc":            policy.HiddenFile,
	".environment":      policy.HiddenFile,
	".env.pem":          policy.HiddenFile,
	".env.example.prod": policy.HiddenFile,
	".env-example":      policy.HiddenFile,
	".env.examples":     policy.HiddenFile,
	".env\xff":          policy.HiddenFile,
	".env\n":            policy.HiddenFile,
	"id_rsa":            policy.HiddenFile,
	"ID_RSA":            policy.HiddenFile,
	"id_dsa":            policy.HiddenFile,
	"id_ecdsa":          policy.HiddenFile,
	"id_ecdsa_sk":       policy.HiddenFile,
	"id_ed25519":        policy.HiddenFile,
	"id_ed25519_sk":     policy.HiddenFile,
	"authorized_keys":   policy.HiddenFile,
	"authorized_keys2":  policy.HiddenFile,
	"Authorized_Keys":   policy.HiddenFile,

	"tls.pem":    policy.HiddenByContent,
	"Server.PEM": policy.HiddenByContent,
	".pem":       policy.HiddenByContent,
	"a.b.key":    policy.HiddenByContent,
	"x.Key":      policy.HiddenByContent,
	"id_rsa.pem": policy.HiddenByContent,

	// Side files of editors.
	".env~":               policy.HiddenFile,
	".env.~12~":           policy.HiddenFile,
	".env.swp":            policy.HiddenFile,
	".#.env":              policy.HiddenFile,
	"#.env#":              policy.HiddenFile,
	".#.env.local":        policy.HiddenFile,
	"id_rsa.old":          policy.HiddenFile,
	"id_rsa.bak":          policy.HiddenFile,
	"id_rsa~":             policy.HiddenFile,
	"id_rsa.~1~":          policy.HiddenFile,
	"id_rsa.orig.bak~":    policy.HiddenFile,
	".id_rsa.swp":         policy.HiddenFile,
	"id_rsa.swo":          policy.HiddenFile,
	".#id_ed25519":        policy.HiddenFile,
	"#authorized_keys#":   policy.HiddenFile,
	"id_rsa.backup":       policy.HiddenFile,
	"id_rsa.tmp":          policy.HiddenFile,
	"id_rsa.save":         policy.HiddenFile,
	"tls.pem.bak":         policy.HiddenByContent,
	"tls.pem~":            policy.HiddenByContent,
	".tls.pem.swp":        policy.HiddenByContent,
	"#tls.key#":           policy.HiddenByContent,
	".#tls.key":           policy.HiddenByContent,
	"tls.key.old":         policy.HiddenByContent,
	".ssh~":               policy.HiddenAny,
	"TLS.PEM.BAK":         policy.HiddenByContent,
	".env.example.local~": policy.HiddenFile,

	// Other names of the same file where case or oddities are folded.
	".en\u200bv":                      policy.HiddenFile,
	"\ufeff.env":                      policy.HiddenFile,
	".\u017f\u017fh":                  policy.HiddenAny,
	".\u00dfh":                        policy.HiddenAny,
	".s\u200dsh":                      policy.HiddenAny,
	"tls.\u212aey":                    policy.HiddenByContent,
	"id_r\u017fa":                     policy.HiddenFile,
	"\u0131d_rsa":                     policy.HiddenFile,
	"authorized_\u212aeys":            policy.HiddenFile,
	".env.":                           policy.HiddenFile,
	"id_rsa. .":                       policy.HiddenFile,
	"tls.pem ":                        policy.HiddenByContent,
	"id_rsa.old.":                     policy.HiddenFile,
	"\xff.pem":                        policy.HiddenByContent,
	strings.Repeat("x", 251) + ".pem": policy.HiddenByContent,

	// What looks alike and is open.
	".env.example":       policy.NotHidden,
	".ENV.EXAMPLE":       policy.NotHidden,
	".env.sample":        policy.NotHidden,
	".env.template":      policy.NotHidden,
	".env.dist":          policy.NotHidden,
	".env.local.example": policy.NotHidden,
	".env.example~":      policy.NotHidden,
	".env.example.swp":   policy.NotHidden,
	"id_rsa.pub":         policy.NotHidden,
	"id_rsa.pub~":        policy.NotHidden,
	"id_ed25519.pub":     policy.NotHidden,
	"known_hosts":        policy.NotHidden,
	"known_hosts.old":    policy.NotHidden,
	"server.key.example": policy.NotHidden,
	"env":                policy.NotHidden,
	".en":                policy.NotHidden,
	"prod.env":           policy.NotHidden,
	"x.env":              policy.NotHidden,
	".sshd":              policy.NotHidden,
	"ssh":                policy.NotHidden,
	"x.ssh":              policy.NotHidden,
	"pem":                policy.NotHidden,
	"key":                policy.NotHidden,
	"xpem":               policy.NotHidden,
	"monkey":             policy.NotHidden,
	"x.keys":             policy.NotHidden,
	"x.pem.go":           policy.NotHidden,
	"id_rsa_test.go":     policy.NotHidden,
	"my_id_rsa":          policy.NotHidden,
	"my_authorized_keys": policy.NotHidden,
	"id_rs\u0430":        policy.NotHidden, // Cyrillic: no file system folds it
	"":                   policy.NotHidden,
	".":                  policy.NotHidden,
	"..":                 policy.NotHidden,
	"~":                  policy.NotHidden,
	"#":                  policy.NotHidden,
	"##":                 policy.NotHidden,
	".#":                 policy.NotHidden,
	".~1~":               policy.NotHidden,
	".bak":               policy.NotHidden,
	"main.go":            policy.NotHidden,
	"main.go.bak":        policy.NotHidden,
	"README.md":          policy.NotHidden,
	"\xff\xfe":           policy.NotHidden,
	"stra\u00dfe.txt":    policy.NotHidden,
	"#x.go#":             policy.NotHidden,
	"a.~x~":              policy.NotHidden,
	"i":                  policy.NotHidden,
	"a":                  policy.NotHidden,
	"id_rsa.2024":        policy.NotHidden, // documented as not covered
	"id_rsa (copy)":      policy.NotHidden, // documented as not covered
}

func TestHiddenName(t *testing.T) {
	for name, want := range hiddenNames {
		given := []byte(name)
		if got := policy.HiddenName(given); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
		if string(given) != name {
			t.Errorf("%q was changed to %q", name, given)
		}
	}
}

func TestClassZeroIsStrictest(t *testing.T) {
	var c policy.Class
	if c != policy.HiddenAny || !(policy.HiddenAny < policy.HiddenFile && policy.HiddenFile < policy.HiddenByContent && policy.HiddenByContent < policy.NotHidden) {
		t.Error("the classes are not in order from strict to open")
	}
	if got, want := fmt.Sprint(c, policy.NotHidden, policy.Class(9)), "hidden not hidden Class(9)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLockedName(t *testing.T) {
	locked := []string{
		".mcp.json", ".cursor", ".claude", ".codex", ".gemini", ".vscode", ".idea", ".devcontainer", ".husky",
		".tether", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".inputrc", "config.fish", ".vimrc", ".gdbinit",
		".VSCODE", ".Mcp.Json", ".tether.", ".vscode ", ".tet\u200bher", ".ba\u017fhrc", ".proﬁle", "conﬁg.fiſh",
		".\u0131dea", "Microsoft.PowerShell_profile.ps1", ".devcontainer.json",
	}
	for _, name := range locked {
		if !policy.LockedName([]byte(name)) {
			t.Errorf("%q: got open, want locked", name)
		}
	}
	for _, name := range []string{
		"", ".", "..", "mcp.json", "vscode", ".vscode2", ".vscodeignore", "bashrc", ".bashrc.d", "tether", ".tetherx",
		"x.tether", ".git", ".gitignore", "fish.config", "profile", "Makefile", "package.json", ".github", ".env",
	} {
		if policy.LockedName([]byte(name)) {
			t.Errorf("%q: got locked, want open", name)
		}
	}
}

func TestRunsLater(t *testing.T) {
	for _, rel := range []string{
		".envrc", "sub/.envrc", ".vscode/tasks.json", ".idea/runConfigurations/x.xml",
		".devcontainer/devcontainer.json", "package.json", "a/b/package.json", "Makefile", "GNUmakefile", "rules.mk",
		"conftest.py", "tests/conftest.py", ".cargo/config.toml", ".cargo/config", ".npmrc", ".pre-commit-config.yaml",
		"node_modules/.bin/git", ".venv/bin/activate", ".venv/bin/python", "venv/Scripts/activate.bat", "my/bin/activate.fish",
		".github/workflows/ci.yml", ".github/actions/x/action.yml", ".gitlab-ci.yml", "vite.config.ts", "build.rs",
		".config/fish/conf.d/x.fish", ".config/fish/config.fish", ".claude/settings.json", ".husky/pre-commit",
		"lib/python3.12/site-packages/x.pth", ".PACKAGE.JSON/../package.json", "./Makefile", "/Makefile", "PACKAGE.JSON",
	} {
		if !policy.RunsLater(rel) {
			t.Errorf("%q: got no, want that it runs later", rel)
		}
	}
	for _, rel := range []string{
		"", ".", "..", "/", "main.go", "README.md", "package.json.md", "src/config.ts", "config.js", "cargo/config.toml",
		"bin/tool", "scripts/deploy.py", "workflows/x.yml", ".github/CODEOWNERS", "node_modules/x/index.js", "makefile.txt",
		"docs/conf.d/x", "actions/x.yml", ".github/x",
	} {
		if policy.RunsLater(rel) {
			t.Errorf("%q: got that it runs later, want no", rel)
		}
	}
}

func TestLaterFolder(t *testing.T) {
	for _, name := range []string{".github", ".cargo", ".bin", "workflows", ".VENV", ".vscode", ".car\u200bgo", ".cargo. "} {
		if !policy.LaterFolder([]byte(name)) {
			t.Errorf("%q: got no, want that files run because of it", name)
		}
	}
	for _, name := range []string{"", ".", "src", "github", ".cargo2", "bin", "package.json"} {
		if policy.LaterFolder([]byte(name)) {
			t.Errorf("%q: got that files run because of it, want no", name)
		}
	}
}

func TestFold(t *testing.T) {
	for in, want := range map[string]string{"HEAD": "head", "ref\u017f": "refs", ".g\u200cit": ".git", "a. .": "a", "\u212a\xff": "k\xff"} {
		if got := string(policy.Fold(nil, []byte(in))); got != want {
			t.Errorf("Fold(%q): got %q, want %q", in, got, want)
		}
	}
}

func TestHotPathsAllocateNothing(t *testing.T) {
	ps, err := policy.CompilePatterns([]string{"*.secret", "[a-f]*.tok?n", "deploy/**/*.yml"})
	if err != nil {
		t.Fatal(err)
	}
	for name := range hiddenNames {
		base := []byte(name)
		rel := []byte("Deploy/a/b/" + name)
		if n := testing.AllocsPerRun(10, func() {
			policy.HiddenName(base)
			policy.LockedName(base)
			ps.MatchName(base)
			ps.MatchPath(rel)
		}); n != 0 {
			t.Errorf("%q: got %v allocations, want none", name, n)
		}
	}
}

// sameName are spellings that a file system which folds case takes for name.
func sameName(name []byte) [][]byte {
	upper := bytes.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, name)
	return [][]byte{
		upper,
		bytes.ReplaceAll(name, []byte("s"), []byte("\u017f")),
		bytes.ReplaceAll(name, []byte("K"), []byte("\u212a")),
		bytes.ReplaceAll(name, []byte("k"), []byte("\u212a")),
		bytes.ReplaceAll(name, []byte("fi"), []byte("\ufb01")),
		append([]byte("\u200b"), name...),
	}
}

func FuzzNamesFold(f *testing.F) {
	for name := range hiddenNames {
		f.Add([]byte(name))
	}
	for _, name := range []string{".vscode", "config.fish", ".mcp.json"} {
		f.Add([]byte(name))
	}
	f.Fuzz(func(t *testing.T, name []byte) {
		if !bytes.Equal(bytes.ToValidUTF8(name, nil), name) {
			t.Skip() // the spellings above would repair it
		}
		class, locked := policy.HiddenName(name), policy.LockedName(name)
		for _, same := range sameName(name) {
			if got := policy.HiddenName(same); got != class {
				t.Errorf("%q is %v, but %q is %v", name, class, same, got)
			}
			if got := policy.LockedName(same); got != locked {
				t.Errorf("%q is locked: %v, but %q: %v", name, locked, same, got)
			}
		}
		// A side file is hidden whenever its original is.
		for _, side := range []string{"%s~", "%s.bak", "%s.old", "#%s#", ".#%s", "%s.swp", "%s.~1~"} {
			if got := policy.HiddenName(fmt.Appendf(nil, side, name)); got > class {
				t.Errorf("%q is %v, but its side file %s is %v", name, class, side, got)
			}
		}
		policy.RunsLater(string(name))
	})
}

func BenchmarkHiddenName(b *testing.B) {
	names := [][]byte{[]byte("main.go"), []byte("README.md"), []byte("package-lock.json"), []byte("index.d.ts"),
		[]byte("node_modules"), []byte(".gitignore"), []byte("0123456789abcdef0123456789abcdef.o"), []byte("id_map.py")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if policy.HiddenName(names[i%len(names)]) != policy.NotHidden {
			b.Fatal("hidden")
		}
	}
}

func BenchmarkLockedName(b *testing.B) {
	names := [][]byte{[]byte("main.go"), []byte("README.md"), []byte("package-lock.json"), []byte(".gitignore")}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if policy.LockedName(names[i%len(names)]) {
			b.Fatal("locked")
		}
	}
}
