package environ

import (
	"maps"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// reserved names are ours alone.
func reserved(name string) bool {
	return name == "PWD" || name == "TETHER" || strings.HasPrefix(name, "TETHER_")
}

// validName admits what a kernel and a shell can carry and a report can show.
func validName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '=' {
			return false
		}
	}
	return name != "" && len(name) <= 256
}

// badValue says why no program could be given this value, or nothing.
func badValue(name, value string) string {
	if strings.IndexByte(value, 0) >= 0 {
		return "its value holds a NUL byte"
	}
	if len(name)+1+len(value) > maxValue {
		return "its value is longer than the kernel passes"
	}
	return ""
}

// check refuses an input that could not give what it asks for.
func (in *Input) check() error {
	if in.Policy.NoScrub && in.Profile != policy.FullAccess {
		return fault.New(fault.PolicyInvalid, "the whole environment passes under full-access only").
			WithHint("--profile full-access")
	}
	for _, name := range in.Policy.Pass {
		if err := checkName(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Policy.Set)) {
		if err := checkName(name); err != nil {
			return err
		}
		if why := badValue(name, in.Policy.Set[name]); why != "" {
			return fault.New(fault.PolicyInvalid, "variable "+name+" cannot be set: "+why)
		}
	}
	for _, kv := range in.Add {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !validName(name) || badValue(name, value) != "" || reserved(name) {
			return fault.New(fault.Internal, "environ: an added variable is malformed")
		}
	}
	for _, p := range []string{in.Workspace, in.Home} {
		if !realPath(p) {
			return fault.New(fault.Internal, "environ: workspace and home must be absolute paths")
		}
	}
	if in.Dir != "" && !realPath(in.Dir) {
		return fault.New(fault.Internal, "environ: the folder to start in is not an absolute path")
	}
	p := in.Private
	for _, s := range []string{
		in.Shell, in.Tmp, in.GitConfig, in.GoModules, in.MavenRepository,
		p.Cache, p.Config, p.Data, p.State, p.Runtime,
	} {
		if s != "" && !plainPath(s) {
			return fault.New(fault.Internal, "environ: a folder given is not an absolute path")
		}
	}
	if badValue("USER", in.User) != "" || !validText(in.Sandbox) {
		return fault.New(fault.Internal, "environ: user or provider is malformed")
	}
	return nil
}

func validText(s string) bool { return len(s) <= maxWord && printable(s) }

func checkName(name string) error {
	if !validName(name) {
		return fault.New(fault.PolicyInvalid, "a variable's name is empty or holds a character that names cannot hold")
	}
	if strings.ContainsAny(name, "*?,") {
		return fault.New(fault.PolicyInvalid, "variable "+name+" is a pattern; variables are passed by exact name").
			WithHint("--env " + strings.Trim(name, "*?,"))
	}
	if reserved(name) {
		return fault.New(fault.PolicyInvalid, "variable "+name+" is set by Tether alone")
	}
	return nil
}

// ParsePassthrough reads the value of TETHER_ENV_PASSTHROUGH: exact names with
// commas between. Blanks around a name and empty elements are nothing; a name
// that no variable can have is POLICY_INVALID. Names come back once each, in
// the order given.
func ParsePassthrough(s string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.Trim(name, " \t"); name == "" {
			continue
		}
		if err := checkName(name); err != nil {
			return nil, err
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
