package policy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/host"
)

// Validate returns the first thing in p that is malformed, contradicts another
// part, or asks for what nothing would enforce; nil if p can be planned.
//
// Every error is a *fault.Error with a hint, and has the code POLICY_INVALID,
// but SANDBOX_BAD_WORKSPACE for a workspace that is / or ~. Whether paths
// exist, and what else makes a workspace too wide, is not judged here.
func (p Policy) Validate() error {
	if p.Profile == Nothing {
		return invalid("the policy has no profile and runs nothing", "set profile to "+list(profiles()))
	}
	if err := p.wellFormed(); err != nil {
		return err
	}
	for _, check := range []func() error{p.checkWorkspace, p.checkProfile, p.checkProtect, p.checkNetwork, p.checkEnv} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// wellFormed is the part of Validate without which p cannot even be compared:
// a value outside it could mean more to a reader than it does here.
func (p Policy) wellFormed() error {
	for _, check := range []func() error{p.checkWords, p.checkRoots, p.checkLimits} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p Policy) checkWords() error {
	if !p.runs() {
		return invalid("there is no profile number "+strconv.Itoa(int(p.Profile)), "use "+list(profiles()))
	}
	if _, err := p.Commands.MarshalText(); err != nil {
		return err
	}
	if _, err := p.Network.Mode.MarshalText(); err != nil {
		return err
	}
	if _, err := p.Home.MarshalText(); err != nil {
		return err
	}
	for _, g := range sortedKeys(p.Accept) {
		if _, err := g.MarshalText(); err != nil {
			return err
		}
		if _, err := p.Accept[g].MarshalText(); err != nil {
			return err
		}
	}
	if p.Env.NoScrub && p.Profile != FullAccess {
		return invalid("no-scrub would hand the caller's secrets to a confined command",
			"name the variables with --env NAME, or use --profile full-access")
	}
	return nil
}

func (p Policy) checkRoots() error {
	for _, l := range []struct {
		name  string
		paths []string
	}{{"read", p.Read}, {"write", p.Write}, {"reads", p.Reads.Only}} {
		for _, root := range l.paths {
			if err := checkRoot(l.name, root); err != nil {
				return err
			}
		}
	}
	if p.Workspace != "" {
		if err := checkRoot("workspace", p.Workspace); err != nil {
			return err
		}
	}
	if p.Reads.System && len(p.Reads.Only) > 0 {
		return invalid("reads lists roots and the system's folders at once",
			"keep the list to show only that, or reads = \"system\" and the roots under read")
	}
	return nil
}

func checkRoot(list, root string) error {
	if _, ok := cleanRoot(root); ok {
		return nil
	}
	what := list + " holds " + quote(root)
	switch {
	case root == "":
		return invalid(list+" holds an empty path", "leave it out, or write an absolute path")
	case strings.IndexByte(root, 0) >= 0:
		return invalid(what+", which has a NUL byte", "write the path as it is in the file system")
	case climbs(root):
		return invalid(what+", which has a .. in it", "write the path without .. (behind a link it would name another folder)")
	}
	return invalid(what+", which is not absolute", "begin it with / or ~/")
}

func (p Policy) checkLimits() error {
	l := p.Limits
	for _, e := range []struct {
		name  string
		value int64
	}{
		{"time", int64(l.Time)}, {"output", l.OutputBytes}, {"processes", l.Processes},
		{"memory", l.MemoryBytes}, {"file size", l.FileBytes}, {"open files", l.OpenFiles}, {"cpu", int64(l.CPU)},
		{"scratch", l.ScratchBytes}, {"free disk", l.FreeDisk},
	} {
		if e.value < 0 {
			return invalid("the "+e.name+" limit "+strconv.FormatInt(e.value, 10)+" is negative",
				"use a positive limit, or leave it out for the built-in one")
		}
	}
	if l.OpenFiles > 0 && l.OpenFiles < LeastOpenFiles {
		return invalid("with "+strconv.FormatInt(l.OpenFiles, 10)+" open files no program starts",
			"--max-open-files "+strconv.Itoa(LeastOpenFiles))
	}
	return nil
}

func (p Policy) checkWorkspace() error {
	switch w, _ := cleanRoot(p.Workspace); w {
	case "":
		return invalid("the policy has no workspace", "name the folder to work in with --workspace DIR")
	case "/", "~":
		return fault.New(fault.SandboxBadWorkspace, "the workspace "+w+" is so wide that it would protect nothing").
			WithHint("-C DIR, with DIR a project's own folder")
	}
	return nil
}

// checkProfile finds what the profile makes void.
func (p Policy) checkProfile() error {
	switch p.Profile {
	case ReadOnly:
		if len(p.Write) > 0 {
			return invalid("a read-only policy has the write root "+quote(p.Write[0]),
				"use --allow-read, or --profile workspace-write")
		}
	case FullAccess:
		const hint = "leave it out, or use --profile workspace-write"
		switch {
		case p.Network.Mode != Open:
			return invalid("full access cannot hold the network "+p.Network.Mode.String(),
				"use --network open, or --profile workspace-write")
		case len(p.Reads.Only) > 0:
			return invalid("full access cannot hold a list of what is read", hint)
		case len(p.Protect.Hidden)+len(p.Protect.Locked) > 0:
			return invalid("full access protects no file, also none named by a pattern", hint)
		}
	}
	return nil
}

func (p Policy) checkProtect() error {
	for _, patterns := range [][]string{p.Protect.Hidden, p.Protect.Locked} {
		if _, err := CompilePatterns(patterns); err != nil {
			return err
		}
	}
	for _, path := range p.Protect.AllowConfig {
		c, ok := cleanConfig(path)
		switch {
		case !ok:
			return invalid("allow_config holds "+quote(path)+", which is no clean path",
				"write a path from the workspace such as .vscode/settings.json, without ..")
		case c == "." || p.holdsRoot(c):
			return invalid("allow_config "+quote(path)+" would lift every lock of a root",
				"name the one file or folder, such as .vscode/settings.json")
		}
	}
	return nil
}

// holdsRoot tells whether a root lies at or below c.
func (p Policy) holdsRoot(c string) bool {
	if c == "/" || c == "~" {
		return true
	}
	for _, paths := range [][]string{{p.Workspace}, p.Read, p.Write, p.Reads.Only} {
		for _, root := range clean(paths, cleanRoot) {
			if under(root, c) {
				return true
			}
		}
	}
	return false
}

func (p Policy) checkNetwork() error {
	n := p.Network
	for _, l := range []struct {
		flag  string
		rules []string
	}{{"allow", n.Allow}, {"deny", n.Deny}} {
		for _, rule := range l.rules {
			if _, err := host.ParseRule(rule); err != nil {
				return invalid(err.Error(), err.(*host.Error).Hint)
			}
			if n.Mode != Gated {
				return invalid("the rule to "+l.flag+" "+quote(rule)+" would not be enforced, because the network is "+n.Mode.String(),
					"use --network gated, or leave the rule out")
			}
		}
	}
	if n.AnySNI && n.Mode != Gated {
		return invalid("sni any says nothing, because the network is "+n.Mode.String(), "use --network gated, or leave it out")
	}
	if n.Upstream != "" {
		if n.Mode != Gated {
			return invalid("an upstream proxy would not be used, because the network is "+n.Mode.String(), "use --network gated, or leave it out")
		}
		if p, err := host.ParseProxy(n.Upstream); n.Upstream != UpstreamEnvironment && (err != nil || p.User != "" || p.Password != "") {
			if err != nil {
				return invalid(err.Error(), err.(*host.Error).Hint)
			}
			return invalid("a policy holds no credentials, and the upstream proxy has some", "put them into the variable HTTPS_PROXY, and write upstream = \"environment\"")
		}
	}
	for _, port := range n.Publish {
		if port == 0 {
			return invalid("port 0 cannot be published", "name a port between 1 and 65535")
		}
	}
	return nil
}

func (p Policy) checkEnv() error {
	const hint = "use letters, digits and _, and no digit first"
	for _, name := range slices.Concat(p.Env.Pass, p.Env.Redact) {
		if !envName(name) {
			return invalid("bad variable name "+quote(name), hint)
		}
	}
	for _, name := range sortedKeys(p.Env.Set) {
		if !envName(name) {
			return invalid("bad variable name "+quote(name), hint)
		}
		if strings.IndexByte(p.Env.Set[name], 0) >= 0 {
			return invalid("the value of "+name+" holds a NUL byte", "no environment can carry one: encode the value")
		}
	}
	return nil
}

// sortedKeys makes sure that of several faults always the same one is told.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}
