package policy_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// refused checks that err is a POLICY_INVALID with a hint that says hint.
func refused(t *testing.T, err error, hint string) {
	t.Helper()
	if got := fault.CodeOf(err); got != fault.PolicyInvalid {
		t.Errorf("code: got %q, want %q (error %v)", got, fault.PolicyInvalid, err)
	}
	if got := fault.HintOf(err); got == "" || !strings.Contains(got, hint) {
		t.Errorf("hint: got %q, want it to hold %q (error %v)", got, hint, err)
	}
	if _, ok := errors.AsType[*fault.Error](err); err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) || !ok {
		t.Errorf("the error %q is not one clean line of a *fault.Error", err)
	}
}

func TestParseProfile(t *testing.T) {
	for text, want := range map[string]policy.Profile{
		"read-only":          policy.ReadOnly,
		"workspace-write":    policy.WorkspaceWrite,
		"full-access":        policy.FullAccess,
		"danger-full-access": policy.FullAccess,
	} {
		if got, err := policy.ParseProfile(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for text, hint := range map[string]string{
		"":                        "use read-only, workspace-write or full-access",
		"nothing":                 "use read-only",
		"readonly":                "did you mean read-only?",
		"Read_Only":               "did you mean read-only?",
		"workspace":               "did you mean workspace-write?",
		"workspce-wirte":          "did you mean workspace-write?",
		"full":                    "did you mean full-access?",
		"danger":                  "did you mean danger-full-access?",
		"read-only ":              "did you mean read-only?",
		"\x1b[31m":                "use read-only",
		strings.Repeat("x", 1e5):  "use read-only",
		"read-only\x00full-acces": "use read-only",
	} {
		got, err := policy.ParseProfile(text)
		if got != policy.Nothing {
			t.Errorf("%.40q: got %v together with an error, want nothing", text, got)
		}
		refused(t, err, hint)
		if strings.Contains(fault.HintOf(err), "did you") != strings.Contains(hint, "did you") {
			t.Errorf("%.40q: got the hint %q, want %q", text, fault.HintOf(err), hint)
		}
		if len(err.Error()) > 300 {
			t.Errorf("%.40q: the error has %d bytes", text, len(err.Error()))
		}
	}
}

// TestEnumsRoundTrip holds every enum to one law: text, parse and marshal
// agree on every value, and refuse the neighbours of the range.
func TestEnumsRoundTrip(t *testing.T) {
	enum(t, 4, 1, policy.ParseProfile)
	enum(t, 3, 0, policy.ParseNetworkMode)
	enum(t, 2, 0, policy.ParseHome)
	enum(t, 2, 0, policy.ParseCommands)
	enum(t, len(policy.Guarantees), 0, policy.ParseGuarantee)
	enum(t, 3, 0, policy.ParseGrade)
}

func enum[T interface {
	~int
	String() string
	MarshalText() ([]byte, error)
}](t *testing.T, n, firstParsed int, parse func(string) (T, error)) {
	t.Helper()
	seen := map[string]bool{}
	for v := range T(n) {
		text := v.String()
		if seen[text] {
			t.Errorf("%T: %q is the spelling of two values", v, text)
		}
		seen[text] = true
		if b, err := v.MarshalText(); err != nil || string(b) != text {
			t.Errorf("%T %v: marshal got %q, %v", v, v, b, err)
		}
		var back T = -1
		if err := any(&back).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil || back != v {
			t.Errorf("%T %v: unmarshal got %v, %v", v, v, back, err)
		}
		if got, err := parse(text); int(v) >= firstParsed && (err != nil || got != v) {
			t.Errorf("%T: parsing %q got %v, %v", v, text, got, err)
		}
	}
	for _, v := range []T{-1, T(n)} {
		if !strings.Contains(v.String(), "(") {
			t.Errorf("%T: the value %d outside the range prints as %q", v, int(v), v.String())
		}
		if _, err := v.MarshalText(); err == nil {
			t.Errorf("%T: the value %d outside the range was marshalled", v, int(v))
		}
	}
	for _, text := range []string{"", " ", "x", "zzzzzzzzzzzz"} {
		v := T(n - 1)
		err := any(&v).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		refused(t, err, "use ")
		if v != 0 {
			t.Errorf("%T: after the error %v it is %v, want the zero value", v, err, v)
		}
	}
}

func TestParseGradeIgnoresCase(t *testing.T) {
	for _, text := range []string{"partial", "Partial", "PARTIAL"} {
		if got, err := policy.ParseGrade(text); err != nil || got != policy.Partial {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestParseAccept(t *testing.T) {
	g, grade, err := policy.ParseAccept("secrets=partial")
	if g != policy.Secrets || grade != policy.Partial || err != nil {
		t.Errorf("got %v, %v, %v", g, grade, err)
	}
	for text, hint := range map[string]string{
		"":                  "secrets=partial",
		"secrets":           "secrets=partial",
		"=partial":          "use read, write",
		"secret=partial":    "did you mean secrets?",
		"secrets=":          "use None, Partial or Complete",
		"secrets=half":      "use None, Partial or Complete",
		"secrets=partial=x": "use None",
		" secrets=partial":  "did you mean secrets?",
		"all=none":          "use read, write",
	} {
		_, _, err := policy.ParseAccept(text)
		refused(t, err, hint)
	}
}

func TestPolicyAsJSON(t *testing.T) {
	p := policy.Default("/w")
	p.Accept = map[policy.Guarantee]policy.Grade{policy.Secrets: policy.Partial}
	for _, p := range []policy.Policy{p, {}} {
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var back policy.Policy
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, p) {
			t.Errorf("got %+v, want %+v, through %s", back, p, b)
		}
	}
	b, _ := json.Marshal(p)
	for _, want := range []string{`"workspace-write"`, `"gated"`, `"secrets":"Partial"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("got %s, want %s in it", b, want)
		}
	}
}

func TestRequired(t *testing.T) {
	type req = map[policy.Guarantee]policy.Grade
	const (
		none, partial, complete = policy.None, policy.Partial, policy.Complete
	)
	base := policy.Default("/w")
	base.Network = policy.Network{Mode: policy.Open}
	gated := base
	gated.Network.Mode = policy.Gated
	with := func(p policy.Policy, accept req) policy.Policy { p.Accept = accept; return p }
	limited := func(l policy.Limits) policy.Policy { p := base; p.Limits = l; return p }
	always := req{policy.Read: complete, policy.Write: complete, policy.Secrets: complete, policy.Process: complete}
	for _, tt := range []struct {
		name   string
		policy policy.Policy
		want   req // over always
	}{
		{"open network", base, req{}},
		{"gated network", gated, req{policy.NetworkGuarantee: complete}},
		{"no network", base.WithProfile(policy.ReadOnly), req{}},
		{"time and output need no kernel", limited(policy.Limits{Time: 1, OutputBytes: 1}), req{}},
		{"processes", limited(policy.Limits{Processes: 1}), req{policy.LimitsGuarantee: complete}},
		{"memory", limited(policy.Limits{MemoryBytes: 1}), req{policy.LimitsGuarantee: complete}},
		{"open files", limited(policy.Limits{OpenFiles: 16}), req{policy.LimitsGuarantee: complete}},
		{"cpu", limited(policy.Limits{CPU: 1}), req{policy.LimitsGuarantee: complete}},
		{"free disk", limited(policy.Limits{FreeDisk: 1}), req{policy.LimitsGuarantee: none}},
		{"scratch", limited(policy.Limits{ScratchBytes: 1}), req{policy.LimitsGuarantee: complete}},
		{"file size", limited(policy.Limits{FileBytes: 1}), req{policy.LimitsGuarantee: complete}},
		{"accept lowers one", with(gated, req{policy.Secrets: partial}),
			req{policy.Secrets: partial, policy.NetworkGuarantee: complete}},
		{"accept raises none", with(base, req{policy.NetworkGuarantee: complete, policy.LimitsGuarantee: partial}), req{}},
		{"accept asks for ipc", with(base, req{policy.IPC: partial}), req{policy.IPC: partial}},
		{"accept with no grade counts not", with(base, req{policy.Read: -1, policy.Write: 3}), req{}},
		{"accepted limits", with(limited(policy.Limits{Processes: 1}), req{policy.LimitsGuarantee: none}), req{}},
		{"full access", base.WithProfile(policy.FullAccess), req{policy.Read: none, policy.Write: none,
			policy.Secrets: none, policy.Process: none}},
		{"full access with ipc", with(base.WithProfile(policy.FullAccess), req{policy.IPC: complete}),
			req{policy.Read: none, policy.Write: none, policy.Secrets: none, policy.Process: none}},
		{"nothing", with(policy.Policy{}, req{policy.Read: none}), req{policy.NetworkGuarantee: complete,
			policy.IPC: complete, policy.LimitsGuarantee: complete}},
		{"no profile at all", policy.Policy{Profile: 9}, req{policy.NetworkGuarantee: complete,
			policy.IPC: complete, policy.LimitsGuarantee: complete}},
	} {
		for _, g := range policy.Guarantees {
			want := always[g]
			if w, ok := tt.want[g]; ok {
				want = w
			}
			if got := tt.policy.Required(g); got != want {
				t.Errorf("%s: %v: got %v, want %v", tt.name, g, got, want)
			}
		}
		if got := tt.policy.Required(99); tt.policy.Profile != policy.FullAccess && got != complete {
			t.Errorf("%s: an unknown guarantee got %v, want Complete", tt.name, got)
		}
	}
}
