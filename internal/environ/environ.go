// Package environ builds the environment of a confined command from an
// allowlist.
//
// A variable passes because its name is on the list and its value has the form
// that the list expects, because the policy names it, or because we set it.
// Everything else is dropped, so that a secret under a name nobody thought of
// cannot leak. URLs pass without user information, query and fragment.
//
// Not promised: a secret that somebody put into an allowed variable in its
// plain form (a token as a path segment of a registry's URL, a password as
// LANG) is not recognised; and a variable that the policy passes is passed as
// it is. Whoever starts the jail must also start every helper with the
// built environment, by descriptor and not by argument: process 1 inside shows
// the environment that it was started with, and argument lists are public.
package environ

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/policy"
)

// DefaultPath is PATH for a caller that has none that can be used.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Private are folders inside that are ours, writable and outside of the
// workspace. A folder left empty leaves out what would lie in it; under a
// profile other than FullAccess that lets programs fall back to HOME.
type Private struct {
	Cache, Config, Data, State, Runtime string
}

// Input is what an environment is built from. All paths are absolute and as
// they are spelled inside.
type Input struct {
	// Host is the caller's environment in the form of os.Environ.
	Host []string
	// Defaults stand in, under the same rules, for variables that Host does
	// not have: what GoEnv and PipConf read from configuration files.
	Defaults []string
	// Profile is the policy's; NoScrub needs FullAccess, and only FullAccess
	// leaves programs the folders that they take by themselves.
	Profile policy.Profile
	// Policy names what passes or is set besides the allowlist.
	Policy policy.Env

	// Workspace is the canonical workspace; Dir the folder that the command
	// starts in, empty for the workspace.
	Workspace, Dir string
	// Home is what HOME names.
	Home string
	// User is the login name; empty leaves USER and LOGNAME out.
	User string
	// Shell replaces SHELL, for callers whose own SHELL is Tether; empty
	// keeps the caller's when it is a well-known one, else /bin/sh.
	Shell string
	// Tmp is the temporary folder; empty is /tmp.
	Tmp string
	// Private are the folders for what programs keep.
	Private Private
	// Path adds folders after the caller's PATH.
	Path []string
	// Add are NAME=VALUE pairs that the plan brings (toolchains, proxy); they
	// beat the caller's and ours, and are beaten by the policy's.
	Add []string
	// GitConfig is the filtered copy of git's global file.
	GitConfig string
	// GoModules is the user's cache/download folder of Go modules and
	// MavenRepository the local repository, where shown read-only.
	GoModules, MavenRepository string
	// Offline says that the command has no network.
	Offline bool
	// Sandbox names the provider for TETHER_SANDBOX; empty when unconfined.
	Sandbox string
}

// Refusal is a variable that was not passed, and why.
type Refusal struct {
	Name string
	Why  string
}

// Result is an environment and what became of the caller's. It holds values
// in Env only; everything else are names and may be logged.
type Result struct {
	// Env is sorted and holds every name once.
	Env []string
	// Passed are the variables that pass only because Policy.Pass names them:
	// the widenings that a report names.
	Passed []string
	// Absent are names of Policy.Pass that the caller does not have.
	Absent []string
	// Trimmed passed without a part of theirs, such as credentials in a URL.
	Trimmed []string
	// Refused were not passed for a reason worth telling.
	Refused []Refusal
	// Dropped are the names that are simply not on the list.
	Dropped []string
	// Certificates are the files and folders of certificates that Env names;
	// who hides the place that they lie in should show them.
	Certificates []string
	// Create are the folders (with a final slash, mode 0700) and empty files
	// that must exist for Env to hold, parents first.
	Create []string
}

// Build builds the environment. It is a function of its input: the order of
// Host does not matter, and a name that Host holds twice with different values
// passes with neither, because programs differ in which one they read.
//
// Order of strength: the caller's, ours, Add, Policy.Pass, Policy.Set, and
// last what cannot be overridden (PWD, TETHER, TETHER_SANDBOX). The error is
// POLICY_INVALID for names and values that the policy may not hold and INTERNAL
// for an input that the caller got wrong; no error holds a value.
func Build(in Input) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	var res Result
	host, bad := read(in.Host)
	for name, why := range bad {
		if r, _ := lookup(name); r == drop && !in.Policy.NoScrub && !slices.Contains(in.Policy.Pass, name) {
			res.Dropped = append(res.Dropped, name)
		} else {
			res.Refused = append(res.Refused, Refusal{name, why})
		}
	}
	env := make(map[string]string, 96)
	if in.Policy.NoScrub {
		maps.Copy(env, host)
		for name := range env {
			if reserved(name) {
				delete(env, name)
			}
		}
	} else {
		in.fromHost(host, env, &res)
		in.apply(env)
		env["PATH"] = in.searchPath(host["PATH"])
		if in.Shell != "" {
			env["SHELL"] = in.Shell
		} else if env["SHELL"] == "" {
			env["SHELL"] = "/bin/sh"
		}
	}
	for _, kv := range in.Add {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	in.fromPolicy(host, env, &res)
	env["PWD"] = in.Dir
	if in.Dir == "" {
		env["PWD"] = in.Workspace
	}
	env["TETHER"] = "1"
	if in.Sandbox != "" {
		env[sandboxName] = in.Sandbox
	}
	res.finish(env)
	in.creates(env, &res)
	return res, nil
}

// read turns os.Environ form into a map, and says which names cannot be
// passed whatever the policy is. What is not NAME=VALUE is left out without a
// word: its text may be the value of something.
func read(list []string) (m, bad map[string]string) {
	m = make(map[string]string, len(list))
	for _, kv := range list {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !validName(name) {
			continue
		}
		why := badValue(name, value)
		if have, twice := m[name]; twice && have != value {
			why = ambiguous
		}
		m[name] = value
		if why == "" || bad[name] == ambiguous {
			continue
		}
		if bad == nil {
			bad = map[string]string{}
		}
		bad[name] = why
	}
	for name := range bad {
		delete(m, name)
	}
	return m, bad
}

const ambiguous = "it is there twice with different values"

// fromHost passes what the table passes.
func (in *Input) fromHost(host, env map[string]string, res *Result) {
	one := func(name, value string, caller bool) {
		r, why := lookup(name)
		if r == drop && caller {
			res.Dropped = append(res.Dropped, name)
		} else if r == refuse && caller {
			res.Refused = append(res.Refused, Refusal{name, why})
		}
		if r == drop || r == refuse || r == ours || value == "" && r != word && r != text {
			return
		}
		out, cut, ok := clean(r, value)
		if !ok {
			res.Refused = append(res.Refused, Refusal{name, "its value does not have the form that is let through"})
			return
		}
		if cut {
			res.Trimmed = append(res.Trimmed, name)
		}
		env[name] = out
	}
	for name, value := range host {
		one(name, value, true)
	}
	defaults, _ := read(in.Defaults)
	for name, value := range defaults {
		if _, have := host[name]; !have {
			one(name, value, false)
		}
	}
}

// fromPolicy passes and sets what the policy names.
func (in *Input) fromPolicy(host, env map[string]string, res *Result) {
	for _, name := range in.Policy.Pass {
		if _, set := in.Policy.Set[name]; set {
			continue
		}
		value, ok := host[name]
		if !ok && slices.ContainsFunc(res.Refused, func(r Refusal) bool { return r.Name == name }) {
			continue
		}
		if !ok {
			res.Absent = append(res.Absent, name)
			continue
		}
		if have, ok := env[name]; ok && have == value {
			continue
		}
		env[name] = value
		res.Passed = append(res.Passed, name)
		res.forget(name)
	}
	for name, value := range in.Policy.Set {
		env[name] = value
		res.forget(name)
	}
}

// forget takes back what was said of a name that passes after all.
func (r *Result) forget(name string) {
	same := func(s string) bool { return s == name }
	r.Dropped = slices.DeleteFunc(r.Dropped, same)
	r.Trimmed = slices.DeleteFunc(r.Trimmed, same)
	r.Refused = slices.DeleteFunc(r.Refused, func(x Refusal) bool { return x.Name == name })
}

// finish sorts everything.
func (r *Result) finish(env map[string]string) {
	r.Env = make([]string, 0, len(env))
	for name, value := range env {
		r.Env = append(r.Env, name+"="+value)
		if k, _ := lookup(name); k == caFile || k == caFiles {
			for p := range strings.SplitSeq(value, ":") {
				if plainPath(p) {
					r.Certificates = append(r.Certificates, path.Clean(p))
				}
			}
		}
	}
	slices.SortFunc(r.Env, func(a, b string) int {
		an, _, _ := strings.Cut(a, "=")
		bn, _, _ := strings.Cut(b, "=")
		return strings.Compare(an, bn)
	})
	for _, list := range []*[]string{&r.Passed, &r.Absent, &r.Trimmed, &r.Dropped, &r.Certificates} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.SortFunc(r.Refused, func(a, b Refusal) int { return strings.Compare(a.Name, b.Name) })
}

// creates lists what must be there before a program meets env.
func (in *Input) creates(env map[string]string, res *Result) {
	if in.Profile == policy.FullAccess {
		return
	}
	p := in.Private
	for _, dir := range []string{p.Cache, p.Config, p.Data, p.State, p.Runtime} {
		if dir != "" {
			res.Create = append(res.Create, path.Clean(dir)+"/")
		}
	}
	// gpg makes only its default folder; an empty file keeps curl from
	// looking on in HOME and zsh from asking a new user, and wget takes no
	// other.
	if p.Data != "" && env["GNUPGHOME"] == path.Join(p.Data, "gnupg") {
		res.Create = append(res.Create, path.Join(p.Data, "gnupg")+"/")
	}
	if p.Config != "" {
		for _, f := range []string{"curl", "zsh"} {
			dir := path.Join(p.Config, f)
			res.Create = append(res.Create, dir+"/", path.Join(dir, "."+f+"rc"))
		}
		res.Create = append(res.Create, path.Join(p.Config, "wgetrc"))
	}
}

func (in *Input) tmp() string {
	if in.Tmp == "" {
		return "/tmp"
	}
	return in.Tmp
}

// sandboxName is the variable that tells a command what confines it.
const sandboxName = "TETHER_SANDBOX"

// Within returns an environment as Build made it, for a sandbox of another
// provider.
func Within(env []string, provider string) []string {
	out := slices.Clone(env)
	for i, kv := range out {
		if strings.HasPrefix(kv, sandboxName+"=") {
			out[i] = sandboxName + "=" + provider
		}
	}
	return out
}
