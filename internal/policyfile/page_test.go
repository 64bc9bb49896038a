package policyfile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

var update = flag.Bool("update", false, "write docs/policy.md anew")

// pageSamples are values of each key, the narrowest first.
var pageSamples = map[string][]string{
	"profile": {"read-only", "full-access"}, "commands": {"inspection", "any"}, "reads": {"/usr", "system"},
	"allow-read": {"/srv"}, "allow-write": {"/srv"}, "protect": {"*.a"}, "lock": {"*.a"}, "allow-config": {".vscode"},
	"network": {"none", "open"}, "only-host": {"a.example", "b.example"}, "allow-host": {"a.example"}, "deny-host": {"a.example"},
	"sni": {"listed", "any"}, "upstream": {"environment"}, "publish": {"80"}, "fetch": {"public", "listed", "none"}, "env": {"A"}, "redact": {"DB_URL"}, "home": {"private", "workspace"}, "no-scrub": {"false", "true"}, "nested": {"false", "true"},
	"timeout": {"1s", "5h"}, "max-output": {"1", "9G"}, "max-procs": {"1", "9"}, "max-memory": {"1", "1G"}, "max-file-size": {"1", "2"},
	"max-open-files": {"16", "17"}, "max-cpu": {"1s", "2s"}, "max-scratch": {"1", "2"}, "min-free-disk": {"1T", "1G"},
	"provider": {"native"}, "accept": {"secrets=complete", "secrets=none"}, "approval": {"never", "ask"}, "audit": {"true"},
	"set-env": {"A=1"},
}

// pageExample stands on the page, and must be right.
const pageExample = `profile = "workspace-write"
network = "none"
protect = ["creds.json", "conf/prod.*"]
lock = ["deploy/**"]
allow-read = ["/srv/data", "~/references"]
timeout = "10m"
env = ["CI"]

[set-env]
LANG = "C.UTF-8"
`

// TestPolicyPage holds docs/policy.md to the table of keys and to what narrows.
func TestPolicyPage(t *testing.T) {
	if _, errs := Check("example", []byte(pageExample)); len(errs) > 0 {
		t.Errorf("the example: %v", errs)
	}
	var page bytes.Buffer
	page.WriteString(`# Policy files

Made from the source. A policy file is TOML; its keys are the names of the flags of ` + "`tether run`" + ` and mean the same.

Three layers are put on top of each other: ` + "`~/.config/tether/policy.toml`" + ` (or below ` + "`$XDG_CONFIG_HOME`" + `), then ` + "`.tether/policy.toml`" + ` of the workspace, then the flags. Of a single value the last layer counts; lists grow. A file of the user's that others can write is refused.

The workspace's file came with the workspace. Until you have said ` + "`tether policy trust`" + `, which holds for exactly the content that you saw, it may only narrow what the layers below it come to; one that would widen is refused as a whole. No file can name the workspace, turn the sandbox off, or open a hidden file.

` + "`tether policy show`" + ` prints what holds and which layer said so; ` + "`tether policy check FILE`" + ` finds what is wrong with a file, and what this build will refuse.

` + "```toml\n" + pageExample + "```" + `

| Key | Like | Meaning | In a workspace's file before trust |
|---|---|---|---|
`)
	samples := 0
	for _, k := range keys() {
		if k.means == "" {
			t.Errorf("%s has no meaning", k.name)
		}
		wide := 0
		for _, v := range pageSamples[k.name] {
			// On top of the strictest that a layer below may have said.
			below := Effective{Policy: policy.Default("/w")}
			c, err := Flag(k.name, v)
			if err != nil {
				t.Errorf("%s %s: %v", k.name, v, err)
			}
			switch k.name {
			case "commands":
				below.Policy = below.Policy.WithProfile(policy.ReadOnly)
				below.Policy.Commands = policy.Inspection
			case "network", "only-host", "allow-host":
				below.Policy.Network = policy.Network{Mode: policy.Offline}
				if v == "a.example" && k.name == "only-host" {
					below.Policy.Network.Mode = policy.Open // a list narrows it
				}
			case "home":
				below.Policy.Home = policy.HomePrivate
			case "reads":
				below.Policy.Reads = policy.Reads{Only: []string{"/usr"}}
			case "timeout", "max-output", "max-procs", "max-memory", "max-file-size", "max-open-files", "max-cpu", "max-scratch", "min-free-disk":
				below.Policy.Limits = policy.Limits{Time: 1e9, OutputBytes: 1, Processes: 1, MemoryBytes: 1, FileBytes: 1,
					OpenFiles: 16, CPU: 1e9, ScratchBytes: 1, FreeDisk: 1 << 40}
			}
			if widens(below, c) {
				wide++
			}
			samples++
		}
		may := "only narrower"
		switch wide {
		case 0:
			may = "yes"
		case len(pageSamples[k.name]):
			may = "no"
		}
		fmt.Fprintf(&page, "| `%s` | `%s = %s` | %s | %s |\n", k.name, k.name, k.example, strings.ReplaceAll(k.means, "|", "\\|"), may)
	}
	if samples < len(keys()) {
		t.Errorf("%d samples for %d keys", samples, len(keys()))
	}
	const path = "../../docs/policy.md"
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, page.Bytes()) {
		t.Errorf("docs/policy.md is not fresh (%v): go test ./internal/policyfile -run PolicyPage -update", err)
	}
}
