package policyfile

import (
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/typo"
	"github.com/tether-sandbox/tether/policy"
)

// form is the TOML form of a key's value.
type form uint8

const (
	word  form = iota // a string
	truth             // true or false
	count             // a whole number
	size              // a string or a whole number
	list              // an array of strings
	ports             // an array of whole numbers
	reads             // the string "system" or an array of strings
	table             // a table of strings
)

// key is one key of a policy file.
type key struct {
	name    string
	form    form
	example string
	means   string // for docs/policy.md
}

// keys lists the keys in the order in which they are printed. A table comes
// last, as TOML wants it.
func keys() []key {
	return []key{
		{"profile", word, `"workspace-write"`, "`read-only`, `workspace-write` or `full-access`"},
		{"commands", word, `"inspection"`, "what `read-only` may start: `inspection`, or `any`"},
		{"reads", reads, `"system"`, "`system`, or exactly the folders of the machine that are shown instead"},
		{"allow-read", list, `["/srv/data"]`, "folders and files also shown, read-only; absolute, or from `~/`"},
		{"allow-write", list, `["/srv/out"]`, "folders and files also shown, writable"},
		{"protect", list, `["*.sqlite"]`, "names, or paths with a slash, that are hidden besides the built-in ones"},
		{"lock", list, `["deploy/**"]`, "names or paths that cannot be changed besides the built-in ones"},
		{"allow-config", list, `[".vscode"]`, "files or folders whose own lock is lifted; a folder that is locked, such as `.vscode`, is lifted whole"},
		{"nested", truth, `true`, "let the command build sandboxes of its own (bwrap, tether, browsers); write and secrets are then graded Partial"},
		{"network", word, `"gated"`, "`none`, `gated` (the default) or `open`"},
		{"only-host", list, `["example.com"]`, "the only hosts that are reached: names, `*.name` (not the name itself), addresses, networks, each with ports such as `:443`, `:80,443` or `:3000-3010`"},
		{"allow-host", list, `["example.com:8443"]`, "hosts that are reached besides; a rule without a port means 80 and 443; a name opens public addresses only, others, and the host's own, must be named by address, but for `localhost`"},
		{"deny-host", list, `["example.com"]`, "hosts that are never reached; a rule without a port means all"},
		{"sni", word, `"any"`, "what TLS to a listed host must name: `listed` (the default), a host that is reached, or `any`, also none or a hidden one"},
		{"upstream", word, `"environment"`, "an HTTP proxy through which public hosts are reached: its URL without credentials, or `environment`, which is what HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say; it resolves names, whose addresses are then not judged"},
		{"publish", ports, `[8080]`, "ports of the command that the host reaches, on a loopback address of the workspace's own"},
		{"fetch", word, `"public"`, "`public`, `listed` or `none`: what the fetch tool reaches, instead of what the network says"},
		{"env", list, `["CI", "LANG=C.UTF-8"]`, "variables that pass, or NAME=VALUE that are set"},
		{"redact", list, `["DB_URL"]`, "variables whose values, of 16 bytes or more, stay out of all output, whatever they look like"},
		{"home", word, `"workspace"`, "what HOME names: `workspace`, or `private`"},
		{"no-scrub", truth, `true`, "pass the whole environment; under `full-access` only"},
		{"timeout", size, `"90s"`, "when a command is ended: 90s, 1m30s, 2h, or seconds; without it after 2 minutes where output is captured (`--json`, MCP), else never; more than these 2 minutes is wider"},
		{"max-output", size, `"10M"`, "how much of stdout and of stderr is kept when they are captured: 10M, or bytes; without it 1M"},
		{"max-procs", count, `200`, "processes and threads at a time; without it 4096, and more is wider"},
		{"max-memory", size, `"2G"`, "memory of the whole tree; refused where nothing can hold it"},
		{"max-file-size", size, `"1G"`, "size of each file that is written"},
		{"max-open-files", count, `1024`, "open files of each process, at least 16"},
		{"max-cpu", size, `"10m"`, "processor time of the whole tree, in whole seconds"},
		{"max-scratch", size, `"512M"`, "what each private folder in memory holds, such as /tmp and /dev/shm; it only lowers what the machine's memory gives"},
		{"min-free-disk", size, `"2G"`, "what stays free on each disk that the command may write, which is ended when less is left; without it 1G, or 5 % of a smaller disk, and less is wider"},
		{"provider", word, `"auto"`, "`auto`, `native`, `bwrap`, `landlock`, `seatbelt` or `guard`"},
		{"accept", list, `["secrets=partial"]`, "the lowest grade of a guarantee that is accepted, where the machine cannot do better"},
		{"approval", word, `"ask"`, "who is asked for more: `ask`, or `never`, and it is refused"},
		{"audit", truth, `true`, "keep a durable log of runs without a session"},
		{"set-env", table, `{ LANG = "C.UTF-8" }`, "variables that are set"},
	}
}

func keyNamed(name string) (key, bool) {
	for _, k := range keys() {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

// isScalar tells whether the last layer that says something is the only one
// that counts.
func isScalar(name string) bool {
	k, ok := keyNamed(name)
	return ok && (k.form == word || k.form == truth || k.form == count || k.form == size)
}

func invalid(what, hint string) *fault.Error {
	return fault.New(fault.PolicyInvalid, what).WithHint(hint)
}

// Flag reads the value of a flag that has the same name as a key. The error is
// a *fault.Error with POLICY_INVALID. Paths are not made absolute.
func Flag(name, text string) (Change, error) {
	c := Change{Key: name, Value: text}
	return c, check(c)
}

// check says whether one value is good by itself: whether it contradicts
// others is for Apply.
func check(c Change) error {
	if c.Empty {
		return nil
	}
	var e Effective
	// A policy in which nothing else is wrong, so that the error is the
	// value's. The workspace is one that no value can lie in by accident.
	e.Policy = policy.Default("/.no-workspace")
	e.Policy.Network = policy.Network{Mode: policy.Gated}
	if c.Key == "reads" {
		e.Policy.Reads = policy.Reads{}
	}
	if err := set(&e, c); err != nil {
		return err
	}
	switch c.Key {
	case "network":
		return nil
	case "no-scrub":
		e.Policy.Profile = policy.FullAccess
	}
	if e.Policy.Profile == policy.FullAccess {
		e.Policy.Network = policy.Network{Mode: policy.Open}
	}
	return e.Policy.Validate()
}

// set puts one value into e. It never writes into what a copy of e shares.
func set(e *Effective, c Change) (err error) {
	p, s := &e.Policy, c.Value
	switch c.Key {
	case "profile":
		p.Profile, err = policy.ParseProfile(s)
	case "commands":
		p.Commands, err = policy.ParseCommands(s)
	case "nested":
		p.Nested, err = boolean(s)
	case "home":
		p.Home, err = policy.ParseHome(s)
	case "network":
		p.Network.Mode, err = policy.ParseNetworkMode(s)
	case "reads":
		switch {
		case c.Empty:
		case s == "system":
			p.Reads.System = true
		default:
			p.Reads.Only = add(p.Reads.Only, s)
		}
	case "allow-read":
		p.Read = add(p.Read, s)
	case "allow-write":
		p.Write = add(p.Write, s)
	case "protect":
		p.Protect.Hidden = add(p.Protect.Hidden, s)
	case "lock":
		p.Protect.Locked = add(p.Protect.Locked, s)
	case "allow-config":
		p.Protect.AllowConfig = add(p.Protect.AllowConfig, s)
	case "only-host", "allow-host":
		if !c.Empty {
			p.Network.Allow = add(p.Network.Allow, s)
		}
	case "deny-host":
		p.Network.Deny = add(p.Network.Deny, s)
	case "sni":
		s, err = oneOf("sni", s, "listed", "any")
		p.Network.AnySNI = s == "any"
	case "upstream":
		p.Network.Upstream = s
	case "publish":
		n, perr := strconv.ParseUint(s, 10, 16)
		if perr != nil || n == 0 {
			return invalid("a port is a whole number between 1 and 65535, not "+quote(s), "--publish 8080")
		}
		p.Network.Publish = add(p.Network.Publish, uint16(n))
	case "fetch":
		e.Fetch, err = oneOf("fetch", s, "public", "listed", "none")
	case "env", "set-env":
		v, perr := policy.ParseEnv(s)
		if perr != nil {
			return perr
		}
		p.Env.Add(v)
	case "redact":
		p.Env.Redact = add(p.Env.Redact, s)
	case "no-scrub":
		p.Env.NoScrub, err = boolean(s)
	case "timeout":
		p.Limits.Time, err = policy.ParseDuration(s)
	case "max-output":
		p.Limits.OutputBytes, err = policy.ParseSize(s)
	case "max-memory":
		p.Limits.MemoryBytes, err = policy.ParseSize(s)
	case "max-file-size":
		p.Limits.FileBytes, err = policy.ParseSize(s)
	case "max-procs":
		p.Limits.Processes, err = number("processes", s, "--max-procs 200")
	case "max-open-files":
		p.Limits.OpenFiles, err = number("open files", s, "--max-open-files 1024")
	case "max-cpu":
		p.Limits.CPU, err = policy.ParseDuration(s)
	case "max-scratch":
		p.Limits.ScratchBytes, err = policy.ParseSize(s)
	case "min-free-disk":
		p.Limits.FreeDisk, err = policy.ParseSize(s)
	case "provider":
		e.Provider, err = oneOf("provider", s, "auto", "native", "bwrap", "landlock", "seatbelt", "guard")
	case "accept":
		g, grade, perr := policy.ParseAccept(s)
		if perr != nil {
			return perr
		}
		accepted := make(map[policy.Guarantee]policy.Grade, len(p.Accept)+1)
		for k, v := range p.Accept {
			accepted[k] = v
		}
		accepted[g] = grade
		p.Accept = accepted
	case "approval":
		e.Approval, err = oneOf("approval", s, "ask", "never")
	case "audit":
		e.Audit, err = boolean(s)
	default:
		return unknownKey(c.Key)
	}
	return err
}

// add appends without writing into what a copy of the list shares.
func add[T any](list []T, v T) []T { return append(list[:len(list):len(list)], v) }

func number(of, s, hint string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n <= 0 {
		return 0, invalid("a number of "+of+" is a positive whole number, not "+quote(s), hint)
	}
	return n, nil
}

func boolean(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, invalid("cannot read "+quote(s)+" as true or false", "write true or false")
}

func oneOf(what, s string, words ...string) (string, error) {
	for _, w := range words {
		if s == w {
			return s, nil
		}
	}
	hint := "use " + words[0]
	if n := len(words); n > 1 {
		hint = "use " + strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	if near := typo.Nearest(s, words); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return "", invalid("unknown "+what+" "+quote(s), hint)
}

// quote makes foreign text safe and short enough for one line of an error.
func quote(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}

// unknownKey refuses a key that no file may have, with the right spelling.
func unknownKey(name string) *fault.Error {
	switch name {
	case "workspace", "C":
		return invalid("a file cannot name the workspace", "leave it out, and type --workspace DIR or start in the folder")
	case "no-sandbox":
		return invalid("a file cannot turn the sandbox off", "leave it out")
	case "no-network":
		return invalid("the key no-network is only a flag", `network = "none"`)
	case "json", "report", "session", "v", "verbose":
		return invalid("the key "+name+" is about one run", "leave it out, and type it on the command line")
	case "p":
		return invalid("the key p is not known", `profile = "workspace-write"`)
	}
	var names []string
	for _, k := range keys() {
		names = append(names, k.name)
	}
	if near := typo.Nearest(name, names); near != "" {
		k, _ := keyNamed(near)
		return invalid("the key "+quote(name)+" is not known", "did you mean "+near+"? write it like "+near+" = "+k.example)
	}
	return invalid("the key "+quote(name)+" is not known", "use "+strings.Join(names, ", "))
}
