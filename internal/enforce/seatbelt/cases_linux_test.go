package seatbelt_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/seatbelt"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// belted is a tree, the plan of a command in it, and the profile's rules.
type belted struct {
	tree
	plan  *plan.Plan
	rules profile
}

func (b belted) under(t *testing.T, profile policy.Profile, mode policy.NetworkMode) belted {
	t.Helper()
	p, err := b.tree.plan(b.policy(profile, mode))
	if err != nil {
		t.Fatal(err)
	}
	b.plan, b.rules = p, evaluate(t, p, seatbelt.Options{Gate: 61888})
	return b
}

// closed are the questions to which a hidden file answers no, with one file
// beside it that answers yes.
func (b belted) closed(t *testing.T, hidden ...string) {
	t.Helper()
	answer(t, b.rules, []ask{reads(b.ws+"/a.txt", true), writes(b.ws+"/a.txt", true), moves(b.ws+"/a.txt", true)})
	for _, path := range hidden {
		answer(t, b.rules, []ask{reads(path, false), writes(path, false), moves(path, false), {query{op: "file-write-data", name: path}, false},
			{query{op: "file-write-mode", name: path}, false}, {query{op: "file-link", name: path}, false}, {query{op: "file-clone", name: path}, false}})
	}
}

// locked are those to which a locked file answers: read, and no more.
func (b belted) locked(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		answer(t, b.rules, []ask{reads(path, true), writes(path, false), moves(path, false), {query{op: "file-link", name: path}, false}})
	}
}

func (b belted) sockets(t *testing.T, paths ...string) {
	t.Helper()
	answer(t, b.rules, []ask{{query{op: "network-outbound", name: b.ws + "/own.sock"}, true}})
	for _, path := range paths {
		answer(t, b.rules, []ask{{query{op: "network-outbound", name: path}, false}})
	}
}

// evaluatedBy are the acceptance cases that are decided by the profile alone.
var evaluatedBy = map[string]func(t *testing.T, b belted){
	"EC-001": func(t *testing.T, b belted) { b.closed(t, b.ws+"/.env") },
	"EC-002": func(t *testing.T, b belted) {
		b.closed(t, b.ws+"/deep/node_modules/x/.env.local", b.ws+`/sub dir/"q"/.env`, b.ws+"/tls/server.key")
	},
	"EC-004": func(t *testing.T, b belted) { b.closed(t, b.ws+"/.ENV.prod") },
	"EC-005": func(t *testing.T, b belted) { b.closed(t, b.ws+"/innocent.txt") },
	"EC-014": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{moves(b.ws+"/src", true), moves(b.ws+"/deep/node_modules", false), moves(b.ws+"/deep", false), moves(b.ws, false)})
	},
	"EC-015": func(t *testing.T, b belted) { b.closed(t, b.ws+"/.env") },
	"EC-016": func(t *testing.T, b belted) { b.closed(t, b.ws+"/.env") },
	"EC-022": func(t *testing.T, b belted) {
		b.locked(t, b.ws+"/.git/hooks/new")
		answer(t, b.rules, []ask{writes(b.ws+"/.git/index.lock", true)})
	},
	"EC-023": func(t *testing.T, b belted) { b.locked(t, b.ws+"/.git/config") },
	"EC-024": func(t *testing.T, b belted) { answer(t, b.rules, []ask{moves(b.ws+"/.git", false)}) },
	"EC-034": func(t *testing.T, b belted) { b.locked(t, b.ws+"/.husky/pre-commit") },
	"EC-044": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{writes(b.home+"/.zshrc", false), reads(b.home+"/.zshrc", false)})
	},
	"EC-045": func(t *testing.T, b belted) { b.locked(t, b.ws+"/.vscode/tasks.json", b.ws+"/.tether/policy.toml") },
	"EC-046": func(t *testing.T, b belted) {
		if seatbelt.Program != "/usr/bin/sandbox-exec" {
			t.Error("the launcher is not the system's")
		}
		answer(t, b.rules, []ask{writes(seatbelt.Program, false)})
	},
	"EC-049": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{writes(b.top+"/private/tmp/x", false), reads(b.top+"/private/tmp/other", false), writes(b.top+"/private/var/tmp/x", false), writes(b.plan.Tmp+"/x", true)})
	},
	"EC-050": func(t *testing.T, b belted) {
		for _, path := range []string{"/usr/bin/x", "/private/etc/hosts", "/Library/x", "/Users/u/x", "/Users/v/x", "/opt/homebrew/bin/git", "/private/var/folders/zz/T/other"} {
			answer(t, b.rules, []ask{writes(b.top+path, false), moves(b.top+path, false)})
		}
		answer(t, b.rules, []ask{writes(b.ws+"/x", true)})
	},
	"EC-061": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{reads(b.home+"/.ssh/id_rsa", false), reads(b.home+"/.aws/credentials", false), reads(b.top+"/System/Volumes/Data/Users/u/.ssh/id_rsa", false),
			reads(b.home+"/Library/Keychains/login.keychain-db", false), reads(b.top+"/Library/Keychains/System.keychain", false)})
	},
	"EC-063": func(t *testing.T, b belted) {
		for _, ws := range []string{b.home, b.top + "/Users", b.top, b.top + "/private/tmp", b.top + "/System/Library"} {
			pol := b.policy(policy.WorkspaceWrite, policy.Offline)
			pol.Workspace = ws
			if _, err := b.tree.plan(pol); err == nil {
				t.Errorf("%s is taken for a workspace", ws)
			}
		}
	},
	"EC-064": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{writes(b.home+"/x", false), moves(b.ws, false)})
	},
	"EC-069": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{{query{op: "mach-lookup", name: "com.apple.authd"}, false}, {query{op: "job-creation", name: "x"}, false}, {query{op: "lsopen", name: "x"}, false},
			{query{op: "appleevent-send", name: "com.apple.Terminal"}, false}})
	},
	"EC-070": func(t *testing.T, b belted) {
		b.sockets(t, b.top+"/opt/homebrew/lib/s.sock", b.top+"/usr/local/var/s.sock")
	},
	"EC-072": func(t *testing.T, b belted) {
		b.sockets(t, b.top+"/private/tmp/tmux-501/default", "/private/tmp/tmux-501/default")
	},
	"EC-073": func(t *testing.T, b belted) {
		b.sockets(t, b.top+"/private/var/run/docker.sock", b.home+"/.docker/run/docker.sock")
	},
	"EC-074": func(t *testing.T, b belted) {
		for _, name := range []string{"com.apple.launchd", "com.apple.SecurityServer", "com.apple.secd", "com.apple.pasteboard.1", "com.apple.coreservices.launchservicesd"} {
			answer(t, b.rules, []ask{{query{op: "mach-lookup", name: name}, false}})
		}
	},
	"EC-076": func(t *testing.T, b belted) {
		b.sockets(t, "/private/tmp/com.apple.launchd.x/Listeners", b.home+"/Library/editor.sock")
	},
	"EC-078": func(t *testing.T, b belted) {
		p := *b.plan
		p.Sockets = []string{b.ws + "/host.sock"}
		rules := evaluate(t, &p, seatbelt.Options{})
		answer(t, rules, []ask{{query{op: "network-outbound", name: b.ws + "/host.sock"}, false}, {query{op: "network-outbound", name: b.ws + "/own.sock"}, true}})
	},
	"EC-079": func(t *testing.T, b belted) {
		for _, mode := range []policy.NetworkMode{policy.Offline, policy.Gated} {
			answer(t, b.under(t, policy.WorkspaceWrite, mode).rules, []ask{{query{op: "network-outbound", name: "localhost:5432"}, false}})
		}
		answer(t, b.under(t, policy.WorkspaceWrite, policy.Open).rules, []ask{{query{op: "network-outbound", name: "localhost:5432"}, true}})
	},
	"EC-106": func(t *testing.T, b belted) {
		answer(t, b.under(t, policy.WorkspaceWrite, policy.Gated).rules, []ask{{query{op: "network-outbound", name: "93.184.216.34:443"}, false}, {query{op: "network-outbound", name: "localhost:61888"}, true}})
	},
	"EC-107": func(t *testing.T, b belted) {
		answer(t, b.under(t, policy.WorkspaceWrite, policy.Gated).rules, []ask{{query{op: "network-outbound", name: "8.8.8.8:53"}, false}, {query{op: "network-outbound", name: "/private/var/run/mDNSResponder"}, false}})
	},
	"EC-184": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{reads(b.ws+"/.env.example", true), writes(b.ws+"/.env.example", true)})
	},
	"EC-196": func(t *testing.T, b belted) {
		b.closed(t, b.ws+`/sub dir/"q"/.env`)
		answer(t, b.rules, []ask{reads(b.ws+`/sub dir/"q"/other`, true)})
	},
	"EC-198": func(t *testing.T, b belted) {
		link := b.top + "/Users/u/link"
		if err := os.Symlink(b.ws, link); err != nil {
			t.Fatal(err)
		}
		pol := b.policy(policy.WorkspaceWrite, policy.Offline)
		pol.Workspace = link
		p, err := b.tree.plan(pol)
		if err != nil {
			t.Fatal(err)
		}
		answer(t, evaluate(t, p, seatbelt.Options{}), []ask{writes(b.ws+"/x", true), reads(b.ws+"/.env", false)})
	},
	"EC-199": func(t *testing.T, b belted) {
		answer(t, b.rules, []ask{stats(b.home, true), reads(b.home, false), writes(b.ws+"/x", true)})
	},
	"EC-201": func(t *testing.T, b belted) {
		b = b.under(t, policy.ReadOnly, policy.Offline)
		answer(t, b.rules, []ask{reads(b.ws+"/a.txt", true), writes(b.ws+"/a.txt", false), reads(b.ws+"/.env", false), writes(b.plan.Tmp+"/x", false)})
	},
}

// TestCases holds the list of what the acceptance cases come to under seatbelt
// to the questions: what is called evaluated is asked here, and passes.
func TestCases(t *testing.T) {
	raw, err := os.ReadFile("testdata/cases.tsv")
	if err != nil {
		t.Fatal(err)
	}
	b := belted{tree: grow(t)}.under(t, policy.WorkspaceWrite, policy.Offline)
	var evaluated []string
	for line := range strings.Lines(string(raw)) {
		number, verdict, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case !ok, verdict != "evaluated" && verdict != "shared" && !strings.HasPrefix(verdict, "limit: "):
			t.Errorf("%q is no verdict", line)
		case verdict == "evaluated":
			evaluated = append(evaluated, number)
			check := evaluatedBy[number]
			if check == nil {
				t.Errorf("%s is called evaluated and nothing is asked", number)
				continue
			}
			t.Run(number, func(t *testing.T) { check(t, b) })
		}
	}
	for number := range evaluatedBy {
		if !slices.Contains(evaluated, number) {
			t.Errorf("%s is asked and not called evaluated", number)
		}
	}
}
