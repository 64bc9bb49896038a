package policyfile_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/policyfile"
	"github.com/tether-sandbox/tether/policy"
)

// full has every key once.
const full = `profile = "workspace-write"
commands = "any"
reads = ["/usr", '/etc/ssl']
allow-read = ["/srv/data", "~/refs"]
allow-write = ["/srv/out"]
protect = [
  "*.sqlite", # a comment
  "secret/**",
]
lock = ["deploy/**"]
allow-config = [".vscode/settings.json"]
network = "gated"
allow-host = ["a.example:8443"]
deny-host = ["b.example"]
publish = [8080, 0x50]
fetch = "public"
env = ["CI", "A=1"]
redact = ["DB_URL"]
home = "private"
no-scrub = false
timeout = "90s"
max-output = "10M"
max-procs = 2_00
max-memory = 4096
max-file-size = "1GiB"
provider = "native"
accept = ["secrets=partial"]
approval = "never"
audit = true
set-env.C = "c"

[set-env]
B = "b b"
"D" = 'd'
`

func TestEveryKey(t *testing.T) {
	for name, text := range map[string]string{
		"as it is": full,
		"CRLF":     strings.ReplaceAll(full, "\n", "\r\n"),
		"BOM":      "\xef\xbb\xbf" + full,
	} {
		t.Run(name, func(t *testing.T) {
			// set-env by dots and by a table at once is no TOML.
			text = strings.Replace(text, "set-env.C = \"c\"", "", 1)
			got := apply(t, user(t, text))
			want := policyfile.Effective{
				Policy: policy.Policy{
					Profile: policy.WorkspaceWrite, Workspace: "/w", Commands: policy.Any,
					Reads: policy.Reads{Only: []string{"/usr", "/etc/ssl"}},
					Read:  []string{"/srv/data", "~/refs"}, Write: []string{"/srv/out"},
					Protect: policy.Protect{Hidden: []string{"*.sqlite", "secret/**"}, Locked: []string{"deploy/**"},
						AllowConfig: []string{".vscode/settings.json"}},
					Network: policy.Network{Mode: policy.Gated, Public: true, Allow: []string{"a.example:8443"},
						Deny: []string{"b.example"}, Publish: []uint16{8080, 80}},
					Env: policy.Env{Pass: []string{"CI"}, Set: map[string]string{"A": "1", "B": "b b", "D": "d"}, Redact: []string{"DB_URL"}},
					Limits: policy.Limits{Time: 90 * time.Second, OutputBytes: 10 << 20, Processes: 200,
						MemoryBytes: 4096, FileBytes: 1 << 30},
					Accept: map[policy.Guarantee]policy.Grade{policy.Secrets: policy.Partial},
				},
				Provider: "native", Approval: "never", Fetch: "public", Audit: true,
			}
			got.Origins, got.FetchNetwork = nil, policy.Network{}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	many := "protect = [" + strings.Repeat(`"*.a", `, 1001) + "]"
	for _, c := range []struct{ name, text, want, hint string }{
		// Keys.
		{"unknown", "x = 1\n", `f:1:1: the key "x" is not known`, "use profile, commands, reads"},
		{"no quotation marks", "home = \"private\"\nprofile = read-only\n", "f:2:11: the text read-only stands without quotation marks", `profile = "read-only"`},
		{"no quotation marks, a number's letters", "network = none", "f:1:11: the text none stands without quotation marks", `network = "none"`},
		{"more than a word", "network = no ne", "f:1:11: ", "write lines like"},
		{"misspelt", "\n  protct = []\n", `f:2:3: the key "protct" is not known`, "did you mean protect?"},
		{"underscores", `allow_read = ["/x"]`, `"allow_read"`, `allow-read = ["/srv/data"]`},
		{"case", `Timeout = "1s"`, `"Timeout"`, "did you mean timeout?"},
		{"workspace", `workspace = "/x"`, "f:1:1: a file cannot name the workspace", "--workspace DIR"},
		{"no-network", `no-network = true`, "only a flag", `network = "none"`},
		{"no-sandbox", `no-sandbox = true`, "cannot turn the sandbox off", "leave it out"},
		{"json", `json = true`, "about one run", "command line"},
		{"dotted", `network.mode = "none"`, `the key "network.mode" is not known`, "without dots"},
		{"twice", "home = \"private\"\nhome = \"workspace\"\n", "f:2:1: home is set twice, first in line 1", "keep one"},
		{"twice, quoted", "home = \"private\"\n'home' = \"private\"\n", "f:2:1: home is set twice", "keep one"},
		{"variable twice", "env = [\"A=1\"]\n[set-env]\nA = \"2\"", `f:3:1: the variable "A" is set twice, first in line 1`, "keep one"},
		{"table twice", "[set-env]\nA = \"1\"\n[set-env]\nB = \"1\"", "f:3:2: set-env as a table is set twice", "keep one"},
		{"table after an inline one", "set-env = {A = \"1\"}\n[set-env]\nB = \"1\"", "f:2:2: set-env as a table is set twice", "keep one"},
		{"table", "[policy]\nprofile = \"read-only\"", `f:1:2: there is no table "policy"`, "without a table"},
		{"key as a table", "[network]\nmode = 1", "f:1:2: network is not a table", `network = "gated"`},
		{"array of tables", "[[set-env]]\nA = \"1\"", "set-env is not a table", ""},
		{"key under set-env", "[set-env]\nA = \"1\"\ntimeout = \"5m\"", "f:3:1: timeout stands in the table [set-env]", "move it above"},
		{"dotted variable", "[set-env]\nA.B = \"1\"", "f:2:1", ""},
		// Types.
		{"a text for a list", `protect = "*.x"`, "f:1:11: protect cannot be a text", `protect = ["*.sqlite"]`},
		{"a list for a word", `home = ["private"]`, "f:1:1: home cannot be a list", `home = "workspace"`},
		{"a number in a list", `protect = ["*.x", 7]`, `f:1:19: protect cannot hold the number "7"`, `["*.sqlite"]`},
		{"a list in a list", `protect = [["*.x"]]`, "protect cannot hold a list", ""},
		{"truth as a text", `audit = "yes"`, "f:1:9: audit cannot be a text", "audit = true"},
		{"truth for a word", `network = false`, "network cannot be true or false", ""},
		{"a fraction", `timeout = 1.5`, "timeout cannot be a fraction", ""},
		{"a date", `timeout = 2020-01-01`, "timeout cannot be a date", ""},
		{"leading zero", `max-procs = 017`, "f:1:13", ""},
		{"count as text", `max-procs = "17"`, "max-procs cannot be a text", "max-procs = 200"},
		{"far too large", `max-procs = 99999999999999999999`, "max-procs cannot be the number", ""},
		{"port as a text", `publish = ["80"]`, "publish cannot hold a text", "publish = [8080]"},
		{"a variable's number", "[set-env]\nA = 1", `f:2:5: the variable "A" cannot be the number "1"`, `A = "1"`},
		{"reads as a path", `reads = "/usr"`, `f:1:9: reads cannot be "/usr"`, `reads = "system"`},
		{"system in a list", `reads = ["/usr", "system"]`, `"system" is no root`, `reads = "system"`},
		// Values.
		{"profile", `profile = "readonly"`, `f:1:11: unknown profile "readonly"`, "did you mean read-only?"},
		{"nothing", `profile = "nothing"`, `unknown profile`, "use read-only"},
		{"network", `network = "off"`, `unknown network mode "off"`, "use none, gated or open"},
		{"provider", `provider = "brwap"`, `f:1:12: unknown provider "brwap"`, "did you mean bwrap?"},
		{"approval", `approval = "no"`, `unknown approval "no"`, "use ask or never"},
		{"fetch", `fetch = "all"`, `unknown fetch "all"`, "use public"},
		{"accept", `accept = ["secrets"]`, "GUARANTEE=GRADE", "secrets=partial"},
		{"relative root", `allow-write = ["x"]`, `f:1:16: write holds "x", which is not absolute`, "begin it with /"},
		{"climbing root", `allow-read = ["/x/../y"]`, "has a .. in it", ""},
		{"pattern", `lock = ["a/"]`, `bad pattern "a/"`, "write a"},
		{"every lock", `allow-config = ["."]`, "would lift every lock", ""},
		{"rule", `deny-host = ["a b"]`, `the rule "a b" names no host`, ""},
		{"port 0", `publish = [0]`, "a port is a whole number between 1 and 65535", ""},
		{"port too large", `publish = [65536]`, "a port is a whole number", ""},
		{"no processes", `max-procs = 0`, "positive whole number", ""},
		{"negative", `max-procs = -1`, "positive whole number", ""},
		{"zero time", `timeout = 0`, "not positive", ""},
		{"decimal size", `max-output = "10MB"`, "cannot read", "10M"},
		{"variable", `env = ["A B"]`, "bad variable name", ""},
		{"empty element", `protect = [""]`, "it is empty", ""},
		{"too many", many, "protect has more than 1000 values", ""},
		// Text.
		{"no value", "profile =\n", "f:1:", ""},
		{"open text", "profile = \"x\n", "f:1:", ""},
		{"open list", "protect = [\"a\",\n", "f:", ""},
		{"NUL", "home = \"a\x00b\"", "f:1:10: there is a NUL byte", "plain text"},
		{"Latin-1", "# \xe9\nhome = 1", "f:1:3: the text is not UTF-8", "UTF-8"},
		{"UTF-16", "\xff\xfeh\x00", "f:1:4: there is a NUL byte", ""},
		{"a carriage return", "home = \"private\"\rlock = []", "f:1:17", ""},
		{"too large", strings.Repeat("#\n", 128<<10+1), "f: the file is larger than 256 KiB", ""},
		{"deep", "home = " + strings.Repeat("[", 100_000), "f:1:", ""},
		{"deep and closed", "home = " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), "home cannot be a list", ""},
		{"many dots", strings.Repeat("a.", 50_000) + "a = 1", "is not known", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := policyfile.Parse("f", []byte(c.text))
			if err == nil {
				t.Fatalf("got no error and %+v, want %s", l.Changes, c.want)
			}
			if got := fault.CodeOf(err); got != fault.PolicyInvalid {
				t.Errorf("got the code %s, want POLICY_INVALID", got)
			}
			if !strings.HasPrefix(err.Error(), "POLICY_INVALID: f:") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300s\nwant %s", err.Error(), c.want)
			}
			if got := fault.HintOf(err); got == "" || !strings.Contains(got, c.hint) {
				t.Errorf("got the hint %q, want %q", got, c.hint)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if !reflect.DeepEqual(l, policyfile.Layer{}) {
				t.Errorf("a wrong file gave %+v", l)
			}
		})
	}
}

func TestOtherEdge(t *testing.T) {
	for _, text := range []string{
		"", "\n\n# only a comment", "\xef\xbb\xbf",
		strings.Repeat("#\n", 128<<10),
		"protect = [" + strings.Repeat(`"*.a", `, 1000) + "]",
		"protect = []\nallow-read = []",
		"reads = []", "set-env = {}", "[set-env]", "publish = [1, 65535]", "max-procs = 1", "timeout = 1",
		"set-env.A = \"\"\nset-env.home = \"x\"",
		"env = [\"A\", \"A=1\"]",
	} {
		if _, err := policyfile.Parse("f", []byte(text)); err != nil {
			t.Errorf("%.40q: got %v, want none", text, err)
		}
	}
}

// TestCheckTellsAll: a file with several errors is repaired in one go.
func TestCheckTellsAll(t *testing.T) {
	text := "profil = 1\nhome = 3\nlock = [\"ok\", \"a/\"]\n"
	var got []string
	for _, err := range checked(text) {
		got = append(got, strings.SplitN(err.Error(), ": ", 3)[1])
	}
	if want := []string{"f:1:1", "f:2:8", "f:3:15"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got errors at %v, want %v", got, want)
	}
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "k%d = 1\n", i)
	}
	if got := len(checked(b.String())); got != 20 {
		t.Errorf("got %d errors, want 20", got)
	}
	if errs := checked(strings.Replace(full, "set-env.C = \"c\"", "", 1)); len(errs) != 0 {
		t.Errorf("a good file: %v", errs)
	}
}

// TestContradictions stand in one file and are told with the line of one of the
// two.
func TestContradictions(t *testing.T) {
	for _, c := range []struct{ text, want, hint string }{
		{"profile = \"read-only\"\nallow-write = [\"/x\"]", "f:2:16: a read-only policy has the write root", "--allow-read"},
		{"network = \"none\"\nallow-host = [\"a.example\"]", `f:2:15: the rule to allow "a.example" would not be enforced`, "--network gated"},
		{"network = \"open\"\ndeny-host = [\"a.example\"]", "f:2:14: the rule to deny", "--network gated"},
		{"network = \"open\"\nonly-host = []", "f:2:1: only-host would not be enforced", "--network gated"},
		{"network = \"open\"\nonly-host = [\"a.example\"]", "f:2:14: only-host would not be enforced, because the network is open", "--network gated"},
		{"no-scrub = true", "f:1:1: no-scrub would hand", "full-access"},
		{"profile = \"full-access\"\nprotect = [\"*.x\"]", "f:2:12: full access protects no file", ""},
		{"network = \"none\"\nprofile = \"full-access\"", "f:2:1: full access cannot hold the network none", ""},
	} {
		errs := checked(c.text)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || !strings.Contains(fault.HintOf(errs[0]), c.hint) {
			t.Errorf("%q\ngot  %v (%s)\nwant %s (%s)", c.text, errs, fault.HintOf(append(errs, nil)[0]), c.want, c.hint)
		}
	}
}

// FuzzParse: no input makes it panic, every error has the code, a place and a
// hint, and what it takes it takes again after rendering.
func FuzzParse(f *testing.F) {
	for _, s := range []string{full, "", "a = [[[", "[set-env]\nA=\"1\"", "\xef\xbb\xbfhome='x'", "set-env = {A.B=1,}",
		"reads = []\nonly-host=[]\nnetwork=\"gated\"", "timeout = 0x10", "home = \"\"\"\nprivate\"\"\"", "protect = [\"\\u0041\", '''x''']"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := policyfile.Parse("f", data)
		if err != nil {
			if fault.CodeOf(err) != fault.PolicyInvalid || fault.HintOf(err) == "" || !strings.HasPrefix(err.Error(), "POLICY_INVALID: f:") {
				t.Fatalf("got %v (%s)", err, fault.HintOf(err))
			}
			return
		}
		without, err := policyfile.Apply(base())
		if err != nil {
			t.Fatal(err)
		}
		if e, err := policyfile.Apply(base(), l); err == nil {
			if !e.Policy.Within(without.Policy) {
				t.Fatalf("a file without trust widens: %+v", e.Policy)
			}
		}
		l.Trusted = true
		if e, err := policyfile.Apply(base(), l); err == nil {
			again(t, e)
		}
	})
}

// checked returns the errors of a file.
func checked(text string) []error {
	_, errs := policyfile.Check("f", []byte(text))
	return errs
}
