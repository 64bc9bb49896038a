package seatbelt_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

var update = flag.Bool("update", false, "write testdata/*.golden anew")

const (
	home    = "/Users/u"
	ws      = home + "/w"
	private = "/private/var/folders/zz/u0/T/tether-1"
)

// mac is a plan as it is made on a Mac, with one of everything.
func mac(profile policy.Profile, mode policy.NetworkMode) *plan.Plan {
	write := profile == policy.WorkspaceWrite
	view := func(path string, origin plan.Origin, write bool) plan.View {
		return plan.View{Root: plan.Root{Path: path, Dev: 1, Ino: uint64(len(path))}, Origin: origin, Writable: write}
	}
	pol := policy.Default(ws)
	pol.Profile, pol.Network.Mode, pol.Network.Publish = profile, mode, []uint16{3000}
	p := &plan.Plan{
		Policy: pol, Workspace: plan.Root{Path: ws}, Dir: ws,
		Views: []plan.View{
			view("/usr", plan.System, false), view("/bin", plan.System, false), view("/sbin", plan.System, false),
			view("/System", plan.System, false), view("/Library", plan.System, false),
			view("/private/etc", plan.System, false), view("/private/var/db/timezone", plan.System, false),
			view("/System/Volumes/Preboot/Cryptexes", plan.System, false),
			view("/opt/homebrew/bin", plan.System, false), view("/opt/homebrew/Cellar", plan.System, false),
			view(ws, plan.Workspace, write), view("/Volumes/data/more", plan.Added, write), view(ws+"/vendor", plan.Added, false),
			view(home+"/.rustup", plan.Toolchain, false), view(home+"/go/pkg/mod", plan.Toolchain, false),
			view(home+"/.local/state/tether/cache/k", plan.Cache, write),
		},
		Covers: []string{"/System/Volumes", "/Library/Keychains"},
		Links:  []plan.Link{{Path: "/tmp", To: "private/tmp"}, {Path: "/var", To: "private/var"}, {Path: "/etc", To: "private/etc"}},
		Scratch: []plan.Scratch{{Path: private, Mode: 0o755}, {Path: private + "/tmp", Mode: 0o700, Writable: write},
			{Path: private + "/user", Mode: 0o700, Writable: write}},
		Files: []plan.File{{Path: private + "/gitconfig", Content: []byte("[core]\n")}},
		Locks: []plan.Lock{
			{Path: ws + "/.git", Writable: true, Why: "pin"},
			{Path: ws + "/.git/config", Content: []byte("[core]\n"), Why: "credentials are left out"},
			{Path: ws + "/.git/hooks", Why: "locked"},
			{Path: ws + "/.vscode", Why: "locked"},
		},
		Masks: []secrets.Mask{
			{Path: ws + "/.env", Why: "name"},
			{Path: ws + "/app/conf/tls.key", Kind: secrets.MaskStub, Why: "tracked"},
			{Path: ws + "/.ssh", Kind: secrets.MaskDir, Why: "name"},
			{Path: ws + `/a "quoted" \ name/.env`, Why: "name"},
		},
		Sockets: []string{ws + "/host.sock"},
	}
	p.Views[9].NoExec = false
	p.Views[14].NoExec = true
	return p
}

func TestProfileGolden(t *testing.T) {
	for _, profile := range []policy.Profile{policy.ReadOnly, policy.WorkspaceWrite} {
		for _, mode := range []policy.NetworkMode{policy.Offline, policy.Gated, policy.Open} {
			name := profile.String() + "-" + mode.String()
			t.Run(name, func(t *testing.T) {
				got, err := seatbelt.Profile(mac(profile, mode), seatbelt.Options{Gate: 61888, Terminal: "/dev/ttys042"})
				if err != nil {
					t.Fatal(err)
				}
				again, _ := seatbelt.Profile(mac(profile, mode), seatbelt.Options{Gate: 61888, Terminal: "/dev/ttys042"})
				if again != got || !strings.HasSuffix(got, ")\n") {
					t.Error("the same plan gives another text, or one without an end of line")
				}
				if _, err := parseProfile(got); err != nil {
					t.Error(err)
				}
				path := "testdata/" + name + ".golden"
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil || string(want) != got {
					t.Errorf("%s is not what is made (%v): -update\n%s", path, err, got)
				}
			})
		}
	}
}

// ask is a table of questions to one profile.
type ask struct {
	query
	want bool
}

func answer(t *testing.T, rules profile, asks []ask) {
	t.Helper()
	for _, a := range asks {
		got, agree := rules.allows(a.query)
		if got != a.want || !agree {
			t.Errorf("%+v: got %v, want %v; both readings agree: %v", a.query, got, a.want, agree)
		}
	}
}

func reads(path string, want bool) ask  { return ask{query{op: "file-read-data", name: path}, want} }
func writes(path string, want bool) ask { return ask{query{op: "file-write-create", name: path}, want} }
func moves(path string, want bool) ask  { return ask{query{op: "file-write-unlink", name: path}, want} }
func stats(path string, want bool) ask  { return ask{query{op: "file-read-metadata", name: path}, want} }

// TestFiles asks about the files that matter most, both ways.
func TestFiles(t *testing.T) {
	rules := evaluate(t, mac(policy.WorkspaceWrite, policy.Offline), seatbelt.Options{})
	answer(t, rules, []ask{
		reads("/usr/bin/true", true), writes("/usr/bin/true", false), reads("/System/Library/x", true),
		reads("/System/Volumes/Data/Users/u/.ssh/id_rsa", false), stats("/System/Volumes/Data", false), stats("/System/Volumes", true),
		reads("/System/Volumes/Preboot/Cryptexes/OS/dyld", true), reads("/Library/Keychains/System.keychain", false),
		reads("/opt/homebrew/bin/git", true), reads("/opt/homebrew/etc/secret", false), stats("/opt/homebrew", true), reads("/opt/homebrew", false),
		reads(ws+"/a", true), writes(ws+"/a", true), moves(ws+"/a", true), moves(ws, false), writes(ws+"/vendor/x", false), reads(ws+"/vendor/x", true),
		reads(home+"/.ssh/id_rsa", false), reads(home+"/.aws/credentials", false), reads(home+"/.gnupg/x", false), writes(home+"/.zshrc", false),
		reads(home+"/Library/Keychains/login.keychain-db", false), reads(home+"/Library/Application Support/Google/Chrome/Default/Cookies", false),
		reads(home, false), stats(home, true), stats(home+"/.ssh", false), reads(home+"/.rustup/x", true), writes(home+"/.rustup/x", false),
		reads(ws+"/.env", false), writes(ws+"/.env", false), moves(ws+"/.env", false), stats(ws+"/.env", true), reads(ws+"/.env2", true),
		reads(ws+"/app/conf/tls.key", false), stats(ws+"/app/conf/tls.key", true), moves(ws+"/app/conf", false), moves(ws+"/app", false), moves(ws+"/other", true),
		reads(ws+"/.ssh/x", false), stats(ws+"/.ssh/x", false), stats(ws+"/.ssh", true), reads(ws+"/.ssh", false), writes(ws+"/.ssh/x", false),
		reads(ws+`/a "quoted" \ name/.env`, false), reads(ws+`/a "quoted" \ name/x`, true),
		reads(ws+"/.git/config", false), writes(ws+"/.git/config", false), reads(ws+"/.git/HEAD", true), writes(ws+"/.git/HEAD", true), moves(ws+"/.git", false),
		reads(ws+"/.git/hooks/pre-commit", true), writes(ws+"/.git/hooks/pre-commit", false), moves(ws+"/.git/hooks", false),
		reads("/private/tmp/x", false), writes("/private/tmp/x", false), writes(private+"/tmp/x", true), writes(private+"/x", false),
		reads(private+"/gitconfig", true), writes(private+"/gitconfig", false), stats("/tmp", true), reads("/private/var/folders/zz/u0/T/other", false),
		reads("/dev/ttys001", false), reads("/", true), stats("/Users", true), reads("/Users", false), reads("/dev/disk0", false),
		{query{op: "file-write-data", name: "/dev/null"}, true}, writes("/dev/x", false),
		{query{op: "file-link", name: ws + "/.env"}, false}, {query{op: "file-link", name: ws + "/a"}, true}, {query{op: "file-link", name: "/usr/bin/true"}, false},
		{query{op: "process-exec", name: "/usr/bin/true"}, true}, {query{op: "process-exec", name: home + "/go/pkg/mod/x"}, false},
		{query{op: "process-exec", name: home + "/x"}, false},
	})
	readonly := evaluate(t, mac(policy.ReadOnly, policy.Offline), seatbelt.Options{})
	answer(t, readonly, []ask{reads(ws+"/a", true), writes(ws+"/a", false), writes(private+"/tmp/x", false), reads(ws+"/.env", false),
		{query{op: "network-bind", name: ws + "/s"}, false}})
}

// TestServices asks what else a process may do, each kind both ways.
func TestServices(t *testing.T) {
	rules := evaluate(t, mac(policy.WorkspaceWrite, policy.Offline), seatbelt.Options{Terminal: "/dev/ttys042"})
	service := func(name string, want bool) ask { return ask{query{op: "mach-lookup", name: name}, want} }
	setting := func(name string, want bool) ask { return ask{query{op: "sysctl-read", name: name}, want} }
	answer(t, rules, []ask{
		{query{op: "signal", target: "self"}, true}, {query{op: "signal", target: "same-sandbox"}, true}, {query{op: "signal", target: "others"}, false},
		{query{op: "process-info-pidinfo", target: "same-sandbox"}, true}, {query{op: "process-info-pidinfo", target: "others"}, false},
		service("com.apple.system.opendirectoryd.libinfo", true), service("com.apple.trustd.agent", false), service("com.apple.SecurityServer", false),
		service("com.apple.pasteboard.1", false), service("com.apple.coreservices.launchservicesd", false), service("com.apple.cfprefsd.agent", false),
		// Peers 64, 65, 66: Node, OpenMP, Python.
		setting("hw.ncpu", true), setting("machdep.cpu.brand_string", true), setting("hw.model", true), setting("kern.procargs2", false), setting("kern.proc.all", false),
		{query{op: "sysctl-write", name: "hw.ncpu"}, false},
		{query{op: "ipc-posix-shm-write-create", name: "/__KMP_REGISTERED_LIB_123"}, true}, {query{op: "ipc-posix-shm-write-create", name: "/__KMP_REGISTERED_LIB_1x"}, false},
		{query{op: "ipc-posix-shm-write-create", name: "/other"}, false},
		{query{op: "ipc-posix-sem", name: "/mp-abc"}, true}, {query{op: "ipc-posix-sem", name: "/others"}, false},
		// 77: preferences of other programs hold secrets; neither is open.
		{query{op: "user-preference-read", name: "com.apple.x"}, false}, {query{op: "user-preference-write", name: "com.apple.x"}, false},
		{query{op: "appleevent-send", name: "com.apple.finder"}, false}, {query{op: "lsopen", name: "x"}, false}, {query{op: "iokit-open", name: "x"}, false},
		{query{op: "mach-register", name: "x"}, false}, {query{op: "job-creation", name: "x"}, false}, {query{op: "process-fork"}, true},
		{query{op: "pseudo-tty"}, true}, {query{op: "file-write-data", name: "/dev/ttys042"}, true}, {query{op: "file-write-data", name: "/dev/ttys041"}, false},
		{query{op: "file-write-data", name: "/dev/ttys041", own: true}, true}, {query{op: "file-ioctl", name: "/dev/ttys042"}, true},
	})
}

// TestNetwork asks where bytes may go (peers 67, 69, 70, 71).
func TestNetwork(t *testing.T) {
	out := func(to string, want bool) ask { return ask{query{op: "network-outbound", name: to}, want} }
	bind := func(at string, want bool) ask { return ask{query{op: "network-bind", name: at}, want} }
	trust := func(want bool) ask { return ask{query{op: "mach-lookup", name: "com.apple.trustd.agent"}, want} }
	common := []ask{
		out(ws+"/s.sock", true), bind(ws+"/s.sock", true), out(ws+"/host.sock", false), out("/private/var/run/docker.sock", false),
		out(ws+"/vendor/s.sock", false), out(ws+"/.ssh/agent", false), out("/private/tmp/com.apple.launchd.x/Listeners", false),
		{query{op: "system-socket", name: "AF_UNIX"}, true}, {query{op: "system-socket", name: "AF_SYSTEM"}, false},
	}
	for _, c := range []struct {
		mode policy.NetworkMode
		asks []ask
	}{
		{policy.Offline, []ask{out("localhost:61888", false), out("1.1.1.1:443", false), bind("localhost:3000", true), bind("localhost:3001", false),
			out("localhost:3000", false), bind("*:3000", false), out("/private/var/run/mDNSResponder", false), trust(false)}},
		{policy.Gated, []ask{out("localhost:61888", true), out("localhost:61889", false), out("1.1.1.1:443", false), bind("localhost:61888", false),
			bind("localhost:3000", true), out("/private/var/run/mDNSResponder", false), trust(true)}},
		{policy.Open, []ask{out("localhost:5432", true), out("1.1.1.1:443", true), bind("localhost:8080", true), out("/private/var/run/mDNSResponder", true), trust(true)}},
	} {
		t.Run(c.mode.String(), func(t *testing.T) {
			rules := evaluate(t, mac(policy.WorkspaceWrite, c.mode), seatbelt.Options{Gate: 61888})
			answer(t, rules, append(c.asks, common...))
		})
	}
	if _, err := seatbelt.Profile(mac(policy.WorkspaceWrite, policy.Gated), seatbelt.Options{}); fault.CodeOf(err) != fault.SandboxUnavailable {
		t.Errorf("a gated network without a gate: got %v, want a refusal", err)
	}
}

// TestRefused are plans that cannot be told.
func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*plan.Plan){
		"full access": func(p *plan.Plan) { p.Policy.Profile = policy.FullAccess },
		"nothing":     func(p *plan.Plan) { p.Policy.Profile = policy.Nothing },
		"elsewhere":   func(p *plan.Plan) { p.Views[0].At = "/elsewhere" },
		"newline":     func(p *plan.Plan) { p.Masks[0].Path = ws + "/a\n(allow default)" },
		"not UTF-8":   func(p *plan.Plan) { p.Masks[0].Path = ws + "/\xff" },
		"relative":    func(p *plan.Plan) { p.Locks[0].Path = "a" },
		"dots":        func(p *plan.Plan) { p.Views[0].Path = "/usr/../etc" },
	} {
		t.Run(name, func(t *testing.T) {
			p := mac(policy.WorkspaceWrite, policy.Offline)
			change(p)
			_, err := seatbelt.Profile(p, seatbelt.Options{})
			if _, ok := errors.AsType[*fault.Error](err); !ok || fault.CodeOf(err) != fault.SandboxUnavailable {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// FuzzPath puts any bytes where a path goes: the profile is refused, or hides
// exactly this path, and says nothing that it did not say without.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a", `/a"`, `/a\`, `/a\"`, "/a\n", `/a") (allow default) (deny file-read-data (literal "`, "/\xff", "/a;b", "/#\"", "/ü", "/a\u0085", "/a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p := &plan.Plan{Policy: policy.Default("/w"), Views: []plan.View{{Root: plan.Root{Path: "/"}, Writable: true}}}
		p.Policy.Network.Mode = policy.Offline
		p.Views[0].Path = "/w"
		clean, err := seatbelt.Profile(p, seatbelt.Options{})
		if err != nil {
			t.Fatal(err)
		}
		before, err := parseProfile(clean)
		if err != nil {
			t.Fatal(err)
		}
		p.Masks = []secrets.Mask{{Path: "/w" + path}}
		text, err := seatbelt.Profile(p, seatbelt.Options{})
		if err != nil {
			return
		}
		rules, err := parseProfile(text)
		if err != nil {
			t.Fatalf("%q breaks the profile: %v\n%s", path, err, text)
		}
		masked := "/w" + path
		if got, agree := rules.allows(query{op: "file-read-data", name: masked}); got || !agree {
			t.Errorf("%q can be read", masked)
		}
		for _, q := range []query{{op: "file-read-data", name: "/w/other"}, {op: "file-read-data", name: "/etc/x"}, {op: "file-write-create", name: "/etc/x"},
			{op: "network-outbound", name: "1.1.1.1:443"}, {op: "mach-lookup", name: "x"}, {op: "signal", target: "others"}} {
			want, _ := before.allows(q)
			if q.name == masked || strings.HasPrefix(q.name, masked+"/") {
				want = false
			}
			if got, _ := rules.allows(q); got != want {
				t.Errorf("%q changes the answer to %+v to %v", path, q, got)
			}
		}
	})
}
