package fact_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func at(minute int) time.Time {
	return time.Date(2026, 11, 30, 12, minute, 0, 0, time.UTC)
}

var (
	person = fact.Change{By: fact.Person, At: at(0)}
	model  = fact.Change{By: fact.Model, At: at(0)}
	writes = fact.Default{Preset: fact.PresetWorkspaceWrite, Origin: fact.Deployment}
)

func modeGrant(id, mode string, s fact.Scope) fact.Fact {
	return fact.Fact{Kind: fact.GrantGiven, ID: id, By: fact.Person, Time: at(0), Grant: &fact.Grant{Mode: mode, Scope: s}}
}

func pinned(p fact.Preset) fact.Fact {
	return fact.Fact{Kind: fact.PresetSet, Preset: p, Origin: fact.Deployment, By: fact.System}
}

func turn(id string) fact.Fact { return fact.Fact{Kind: fact.TurnStart, ID: id, Time: at(0)} }

func TestPermissions(t *testing.T) {
	full := fact.Default{Preset: fact.PresetFullAccess, Origin: fact.Settings}
	mode := func(m string) fact.Fact { return fact.Fact{Kind: fact.Mode, Mode: m, By: fact.Person} }
	selected := func(p fact.Preset) fact.Fact {
		return fact.Fact{Kind: fact.PresetSet, Preset: p, Origin: fact.Selection, By: fact.Person}
	}
	for _, c := range []struct {
		name  string
		facts []fact.Fact
		d     fact.Default
		want  string
	}{
		{"nothing and no default", nil, fact.Default{}, "nothing never custom "},
		{"the default where no fact is", nil, writes, "workspace-write ask workspace-write deployment"},
		{"a settings default", nil, full, "full-access never danger-full-access settings"},
		{"a default of the future", nil, fact.Default{Preset: "audit", Origin: fact.Settings}, "nothing never custom "},
		{"a fact beats the default", []fact.Fact{pinned(fact.PresetReadOnly)}, full, "read-only ask read-only deployment"},
		{"a selection", []fact.Fact{pinned(fact.PresetReadOnly), selected(fact.PresetWorkspaceWrite)}, full, "workspace-write ask workspace-write selection"},
		{"drift is custom and has no origin", []fact.Fact{selected(fact.PresetWorkspaceWrite), mode("read-only")}, full, "read-only ask custom "},
		{"drift into the pair of another preset is custom still",
			[]fact.Fact{selected(fact.PresetWorkspaceWrite), mode("full-access"), {Kind: fact.ApprovalSet, Approval: "never", By: fact.Person}}, writes,
			"full-access never custom "},
		{"and back again", []fact.Fact{selected(fact.PresetWorkspaceWrite), mode("read-only"), mode("workspace-write")}, full, "workspace-write ask workspace-write selection"},
		{"custom cannot be set", []fact.Fact{pinned(fact.PresetReadOnly), selected(fact.Custom)}, full, "read-only ask read-only deployment"},
		{"nor an origin made up", []fact.Fact{{Kind: fact.PresetSet, Preset: fact.PresetFullAccess, Origin: "heaven"}}, writes, "workspace-write ask workspace-write deployment"},
		{"nor does a model select", []fact.Fact{{Kind: fact.PresetSet, Preset: fact.PresetFullAccess, Origin: fact.Selection, By: fact.Model}}, writes,
			"workspace-write ask workspace-write deployment"},
		{"settings reach a blank session", []fact.Fact{pinned(fact.PresetReadOnly), pinned(fact.PresetWorkspaceWrite)}, full, "workspace-write ask workspace-write deployment"},
		{"but not a started one", []fact.Fact{pinned(fact.PresetReadOnly), turn("1"), pinned(fact.PresetWorkspaceWrite)}, full, "read-only ask read-only deployment"},
		{"not even to narrow it", []fact.Fact{pinned(fact.PresetWorkspaceWrite), turn("1"), pinned(fact.PresetReadOnly)}, full, "workspace-write ask workspace-write deployment"},
		{"a model's word on asking", []fact.Fact{pinned(fact.PresetFullAccess), {Kind: fact.ApprovalSet, Approval: "ask", By: fact.Model}}, writes,
			"full-access never danger-full-access deployment"},
		{"nor one that chose", []fact.Fact{selected(fact.PresetReadOnly), pinned(fact.PresetWorkspaceWrite)}, full, "read-only ask read-only selection"},
		{"nor one whose mode was chosen", []fact.Fact{mode("read-only"), pinned(fact.PresetWorkspaceWrite)}, writes, "read-only ask custom "},
		{"an unreadable mode is the strictest", []fact.Fact{pinned(fact.PresetWorkspaceWrite), mode("cosmic")}, full, "nothing ask custom "},
		{"an unreadable preset too", []fact.Fact{selected("audit")}, full, "nothing never custom "},
		{"a widening without a grant is none", []fact.Fact{pinned(fact.PresetReadOnly), turn("1"), mode("full-access")}, full, "read-only ask read-only deployment"},
		{"with one it is", []fact.Fact{pinned(fact.PresetReadOnly), turn("1"), modeGrant("g", "workspace-write", fact.Once),
			{Kind: fact.Mode, Mode: "workspace-write", Uses: []string{"g"}}}, full, "workspace-write ask custom "},
		{"as far as it goes", []fact.Fact{pinned(fact.PresetReadOnly), turn("1"), modeGrant("g", "workspace-write", fact.Once),
			{Kind: fact.Mode, Mode: "full-access", Uses: []string{"g"}}}, full, "read-only ask read-only deployment"},
		{"and once", []fact.Fact{pinned(fact.PresetReadOnly), turn("1"), modeGrant("g", "workspace-write", fact.Once),
			{Kind: fact.Mode, Mode: "workspace-write", Uses: []string{"g"}}, mode("read-only"),
			{Kind: fact.Mode, Mode: "workspace-write", Uses: []string{"g"}}}, full, "read-only ask read-only deployment"},
		{"a child stays below its ceiling", []fact.Fact{{Kind: fact.Start, Parent: "p", Mode: "read-only"}, selected(fact.PresetWorkspaceWrite)}, full, "read-only ask custom "},
		{"a child without one has nothing", []fact.Fact{{Kind: fact.Start, Parent: "p"}}, full, "nothing never custom "},
	} {
		p := fact.Fold(c.facts).Permissions(c.d)
		if got := fmt.Sprint(p.Mode, " ", p.Approval, " ", p.Preset, " ", p.Origin); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestEnterMode(t *testing.T) {
	with := func(c fact.Change, grant string) fact.Change { c.Grant = grant; return c }
	blank, child := []fact.Fact{pinned(fact.PresetWorkspaceWrite)}, []fact.Fact{{Kind: fact.Start, Parent: "p", Mode: "workspace-write"}}
	inTurn := append(slices.Clone(blank), turn("1"), modeGrant("g", "full-access", fact.Session))
	between := append(slices.Clone(inTurn), fact.Fact{Kind: fact.TurnEnd, ID: "1"})
	expired := append(slices.Clone(between), fact.Fact{Kind: fact.GrantGiven, ID: "x", By: fact.Person,
		Grant: &fact.Grant{Mode: "full-access", Scope: fact.Session, Expires: at(0)}})
	for _, c := range []struct {
		name  string
		facts []fact.Fact
		to    policy.Profile
		by    fact.Change
		want  fault.Code
		n     int
	}{
		{"the same is a success and nothing else", inTurn, policy.WorkspaceWrite, model, "", 0},
		{"the same by default", nil, policy.WorkspaceWrite, model, "", 0},
		{"narrow in a turn", inTurn, policy.ReadOnly, person, fault.SandboxNarrowDenied, 0},
		{"narrow in a turn, by the model", inTurn, policy.ReadOnly, model, fault.SandboxNarrowDenied, 0},
		{"narrow between turns", between, policy.ReadOnly, person, "", 1},
		{"narrow between turns, by the model", between, policy.ReadOnly, model, fault.SandboxNarrowDenied, 0},
		{"widen in a turn without a grant", inTurn, policy.FullAccess, model, fault.ApprovalDenied, 0},
		{"widen in a turn without a grant, by a person", inTurn, policy.FullAccess, person, fault.ApprovalDenied, 0},
		{"widen with a grant", inTurn, policy.FullAccess, with(model, "g"), "", 1},
		{"widen with somebody else's grant", inTurn, policy.FullAccess, with(model, "h"), fault.ApprovalDenied, 0},
		{"widen with an expired grant", expired, policy.FullAccess, with(person, "x"), fault.ApprovalDenied, 0},
		{"a choice before anything began", blank, policy.FullAccess, person, "", 1},
		{"not by the model", blank, policy.FullAccess, model, fault.ApprovalDenied, 0},
		{"a choice pins the default first", nil, policy.ReadOnly, person, "", 2},
		{"a child above its parent", child, policy.FullAccess, person, fault.ApprovalDenied, 0},
		{"no mode", between, policy.Nothing, person, fault.PolicyInvalid, 0},
		{"no mode at all", between, 17, person, fault.PolicyInvalid, 0},
	} {
		s := fact.Fold(c.facts)
		before := s.Permissions(writes)
		facts, err := s.EnterMode(c.to, c.by, writes)
		if fault.CodeOf(err) != c.want || len(facts) != c.n {
			t.Errorf("%s: got %v, %v, want %q and %d facts", c.name, facts, err, c.want, c.n)
		}
		for _, f := range facts {
			s.Add(f)
		}
		want := before.Mode
		if c.want == "" {
			want = c.to
		}
		if got := s.Permissions(writes).Mode; got != want {
			t.Errorf("%s: then got %v, want %v", c.name, got, want)
		}
	}
}

func TestPresetAndApproval(t *testing.T) {
	s := fact.Fold([]fact.Fact{pinned(fact.PresetReadOnly), turn("1")})
	for _, c := range []struct {
		name string
		do   func() ([]fact.Fact, error)
		want fault.Code
	}{
		{"custom", func() ([]fact.Fact, error) { return s.SelectPreset(fact.Custom, person, writes) }, fault.PolicyInvalid},
		{"a wider preset", func() ([]fact.Fact, error) { return s.SelectPreset(fact.PresetWorkspaceWrite, person, writes) }, fault.ApprovalDenied},
		{"never in a turn", func() ([]fact.Fact, error) { return s.SetApproval(fact.Never, person, writes) }, fault.SandboxNarrowDenied},
		{"ask again", func() ([]fact.Fact, error) { return s.SetApproval(fact.Asking, model, writes) }, ""},
		{"no policy", func() ([]fact.Fact, error) { return s.SetApproval(9, person, writes) }, fault.PolicyInvalid},
		{"a model's approval", func() ([]fact.Fact, error) {
			return s.Approve("g", fact.Grant{Host: "h:1", Scope: fact.Once}, model)
		}, fault.ApprovalDenied},
		{"another world", func() ([]fact.Fact, error) {
			return nil, fact.Fold([]fact.Fact{{Kind: fact.Start, World: "a"}}).InWorld("b")
		}, fault.SandboxSplitWorld},
		{"a wider child", func() ([]fact.Fact, error) { return s.Spawn("c", policy.WorkspaceWrite, model, writes) }, fault.ApprovalDenied},
	} {
		if facts, err := c.do(); fault.CodeOf(err) != c.want || len(facts) > 0 {
			t.Errorf("%s: got %v, %v, want %q", c.name, facts, err, c.want)
		}
	}
	s.Add(fact.Fact{Kind: fact.TurnEnd, ID: "1"})
	facts, err := s.SetApproval(fact.Never, person, writes)
	if err != nil || len(facts) != 1 {
		t.Fatalf("got %v, %v, want never between turns", facts, err)
	}
	if _, err := s.Ask("q", fact.Grant{Host: "h:1", Scope: fact.Once}, model, writes); err != nil {
		t.Errorf("got %v, want that a question may be put", err)
	}
	s.Add(facts[0])
	if _, err := s.Ask("q", fact.Grant{Host: "h:1", Scope: fact.Once}, model, writes); fault.CodeOf(err) != fault.ApprovalDenied {
		t.Errorf("got %v, want no question under never", err)
	}
	if _, err := s.SetApproval(fact.Asking, model, writes); fault.CodeOf(err) != fault.ApprovalDenied {
		t.Errorf("got %v, want that a model cannot turn questions on", err)
	}
	if facts, err := s.Spawn("c", policy.ReadOnly, model, writes); err != nil || len(facts) != 1 {
		t.Errorf("got %v, %v, want a child", facts, err)
	}
}

func TestGrants(t *testing.T) {
	host := func(id string, s fact.Scope, expires time.Time) fact.Fact {
		return fact.Fact{Kind: fact.GrantGiven, ID: id, By: fact.Person, Grant: &fact.Grant{Host: "h:443", Scope: s, Expires: expires}}
	}
	s := fact.Fold([]fact.Fact{
		{Kind: fact.Ask, ID: "once"}, host("once", fact.Once, time.Time{}), host("long", fact.Session, at(10)), host("ever", fact.Project, time.Time{}),
		host("ever", fact.Once, at(1)), host("", fact.Session, time.Time{}),
		{Kind: fact.GrantGiven, ID: "m", By: fact.Model, Grant: &fact.Grant{Host: "h:1", Scope: fact.Session}},
		{Kind: fact.GrantGiven, ID: "bad", By: fact.Person, Grant: &fact.Grant{Host: "h:1", Path: "/x", Scope: fact.Session}},
	})
	names := func(turn string, now time.Time) (list []string) {
		for _, h := range s.InForce(turn, now) {
			list = append(list, h.ID)
		}
		return list
	}
	check := func(what, turn string, now time.Time, want ...string) {
		t.Helper()
		if got := names(turn, now); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	if len(s.Asks) > 0 || s.Skipped != 4 {
		t.Errorf("got %v asks, %d skipped, want none and 4", s.Asks, s.Skipped)
	}
	check("before it expires", "", at(9), "once", "long", "ever")
	check("when it expires", "", at(10), "once", "ever")
	s.Add(fact.Fact{Kind: fact.TurnStart, ID: "t", Time: at(9)})
	check("in a turn that began before", "t", at(30), "once", "long", "ever")
	check("in no turn", "u", at(30), "once", "ever")
	if _, err := s.Withdraw("ever", person); fault.CodeOf(err) != fault.SandboxNarrowDenied {
		t.Errorf("got %v, want no revocation in a turn", err)
	}
	s.Add(fact.Fact{Kind: fact.Intent, ID: "1", Turn: "t", Uses: []string{"once", "long"}, Time: at(20)})
	check("spent", "t", at(30), "long", "ever")
	s.Add(fact.Fact{Kind: fact.GrantGiven, ID: "meanwhile", By: fact.Person, Time: at(20), Grant: &fact.Grant{Host: "h:1", Scope: fact.Once}})
	check("given while a command runs", "t", at(30), "long", "ever", "meanwhile")
	s.Add(fact.Fact{Kind: fact.Use, ID: "1", Turn: "t", Uses: []string{"meanwhile"}, Time: at(20)})
	check("and spent by it", "t", at(30), "long", "ever")
	s.Add(fact.Fact{Kind: fact.TurnEnd, ID: "t", Time: at(20)})
	check("the clock set back", "", at(1), "ever")
	facts, err := s.Withdraw("ever", person)
	if err != nil || len(facts) != 1 {
		t.Fatalf("got %v, %v, want a revocation between turns", facts, err)
	}
	s.Add(facts[0])
	check("revoked", "", at(21))
	if facts, err := s.Withdraw("ever", person); err != nil || facts != nil {
		t.Errorf("got %v, %v, want that a second revocation changes nothing", facts, err)
	}
	if _, err := s.Approve("ever", fact.Grant{Host: "h:1", Scope: fact.Once}, person); err == nil {
		t.Error("a revoked grant came back under its name")
	}
}

func TestGrantCheck(t *testing.T) {
	for _, c := range []struct {
		g    fact.Grant
		want fault.Code
	}{
		{fact.Grant{Path: "/x/y", Write: true, Scope: fact.Project}, ""},
		{fact.Grant{Path: "/x/.env.example", Scope: fact.Once}, ""},
		{fact.Grant{Path: "/x/.env", Scope: fact.Once}, fault.ApprovalDenied},
		{fact.Grant{Path: "/x/.ssh/config", Scope: fact.Once}, fault.ApprovalDenied},
		{fact.Grant{Path: "/x/.SSH", Scope: fact.Once}, fault.ApprovalDenied},
		{fact.Grant{Path: "x", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Path: "/x/../y", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:443", Scope: fact.Once}, ""},
		{fact.Grant{Host: "h", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "*.h:443", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "[::1]:80", Scope: fact.Once}, ""},
		{fact.Grant{Host: "::1", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:80-90", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:80,443", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:1-65535", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "10.0.0.0/8:80", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Command: []string{"git", "push"}, Scope: fact.Session}, ""},
		{fact.Grant{Mode: "danger-full-access", Scope: fact.Once}, ""},
		{fact.Grant{Mode: "nothing", Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:443", Write: true, Scope: fact.Once}, fault.PolicyInvalid},
		{fact.Grant{Host: "h:443"}, fault.PolicyInvalid},
		{fact.Grant{Scope: fact.Once}, fault.PolicyInvalid},
	} {
		if got := fault.CodeOf(c.g.Check()); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.g, got, c.want)
		}
	}
	g := fact.Grant{Path: "/a/b"}
	for p, want := range map[string]bool{"/a/b": true, "/a/b/c": true, "/a/bc": false, "/a": false, "/a/b/../c": false, "a/b": false, "": false} {
		if g.CoversPath(p, false) != want || g.CoversPath(p, true) {
			t.Errorf("%q: got %v to read and %v to write, want %v and false", p, g.CoversPath(p, false), g.CoversPath(p, true), want)
		}
	}
	if (fact.Grant{}).CoversPath("/", false) || (fact.Grant{}).CoversHost("") || (fact.Grant{}).CoversCommand(nil) {
		t.Error("the zero grant covers something")
	}
	if g := (fact.Grant{Command: []string{"git", "push"}}); !g.CoversCommand([]string{"git", "push"}) || g.CoversCommand([]string{"git", "push", "-f"}) {
		t.Error("a command is not compared word by word")
	}
}

// facts draws lists in which names meet.
func facts(t *rapid.T, label string) []fact.Fact {
	kinds := []fact.Kind{fact.Start, fact.Mode, fact.PresetSet, fact.ApprovalSet, fact.TurnStart, fact.TurnEnd, fact.Intent, fact.Use, fact.Outcome,
		fact.Edit, fact.Fetch, fact.Denial, fact.Finding, fact.Ask, fact.GrantGiven, fact.Revoke, fact.ChildRun, fact.Note, "future", ""}
	id := rapid.SampledFrom([]string{"", "a", "b", "c"})
	mode := rapid.SampledFrom([]string{"", "nothing", "read-only", "workspace-write", "full-access", "cosmic"})
	one := rapid.Custom(func(t *rapid.T) fact.Fact {
		f := fact.Fact{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), ID: id.Draw(t, "id"), Turn: id.Draw(t, "turn"), Mode: mode.Draw(t, "mode"),
			Time: at(rapid.IntRange(0, 9).Draw(t, "minute")), Uses: rapid.SliceOfN(id, 0, 2).Draw(t, "uses"),
			By:       rapid.SampledFrom([]fact.Actor{fact.Person, fact.Person, fact.Program, fact.Model, fact.System, ""}).Draw(t, "by"),
			Preset:   rapid.SampledFrom([]fact.Preset{fact.PresetReadOnly, fact.PresetWorkspaceWrite, fact.PresetFullAccess, fact.Custom, "audit"}).Draw(t, "preset"),
			Origin:   rapid.SampledFrom([]fact.Origin{fact.Deployment, fact.Settings, fact.Selection, "heaven"}).Draw(t, "origin"),
			Approval: rapid.SampledFrom([]string{"ask", "never", "perhaps"}).Draw(t, "approval"),
			Ended:    rapid.Bool().Draw(t, "ended"),
		}
		if rapid.Bool().Draw(t, "with grant") {
			f.Grant = &fact.Grant{Mode: mode.Draw(t, "widest"), Scope: rapid.SampledFrom([]fact.Scope{fact.Once, fact.Session, "long"}).Draw(t, "scope")}
			if rapid.Bool().Draw(t, "expires") {
				f.Grant.Expires = at(rapid.IntRange(0, 9).Draw(t, "end"))
			}
		}
		return f
	})
	return rapid.SliceOfN(one, 0, 30).Draw(t, label)
}

func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := facts(t, "a"), facts(t, "b")
		whole := fact.Fold(slices.Concat(a, b))

		// The fold of a + b is that from the fold of a over b, and a clone is
		// touched by neither.
		s := fact.Fold(a)
		kept := s.Clone()
		for _, f := range b {
			s.Add(f)
		}
		if !reflect.DeepEqual(s, whole) {
			t.Fatalf("got %+v, want %+v", s, whole)
		}
		if again := fact.Fold(a); !reflect.DeepEqual(kept, again) {
			t.Fatalf("a clone changed: got %+v, want %+v", kept, again)
		}

		// What was written and read back has the same state.
		var read []fact.Fact
		for _, f := range slices.Concat(a, b) {
			line, err := f.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			back, err := fact.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, back)
		}
		replay := fact.Fold(read)
		if fmt.Sprintf("%+v", replay.Permissions(writes)) != fmt.Sprintf("%+v", whole.Permissions(writes)) || replay.Skipped != whole.Skipped {
			t.Fatalf("replay: got %+v, want %+v", replay, whole)
		}

		// Independent sessions do not touch each other, in whatever order
		// their facts come.
		left, right := a, b
		var sa, sb fact.State
		for len(left) > 0 || len(right) > 0 {
			if len(right) == 0 || len(left) > 0 && rapid.Bool().Draw(t, "left") {
				sa.Add(left[0])
				left = left[1:]
			} else {
				sb.Add(right[0])
				right = right[1:]
			}
		}
		if !reflect.DeepEqual(sa, fact.Fold(a)) || !reflect.DeepEqual(sb, fact.Fold(b)) {
			t.Fatal("two sessions got mixed up")
		}
	})
}

// TestWideningLaw: once a session has started, its mode rises only by a fact
// that uses a grant in force, in every prefix of every list of facts.
func TestWideningLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s fact.State
		s.Add(pinned(fact.PresetReadOnly))
		s.Add(turn("a"))
		for _, f := range facts(t, "facts") {
			before, held := s.Permissions(writes).Mode, s.Clone().Grants
			s.Add(f)
			now := s.Permissions(writes)
			if now.Mode <= before {
				continue
			}
			if !slices.ContainsFunc(held, func(h fact.Held) bool { return slices.Contains(f.Uses, h.ID) && !h.Spent && !h.Revoked }) {
				t.Fatalf("%+v widened %v to %v without a grant of %+v", f, before, now.Mode, held)
			}
			if now.Origin != "" && now.Origin != fact.Selection && now.Origin != fact.Deployment {
				t.Fatalf("got the origin %q, which no fact that counts has", now.Origin)
			}
		}
	})
}

// TestDecisionsHold: what a decision answers, the fold believes.
func TestDecisionsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fact.Fold(facts(t, "facts"))
		d := fact.Default{Preset: rapid.SampledFrom([]fact.Preset{fact.PresetReadOnly, fact.PresetWorkspaceWrite, fact.PresetFullAccess}).Draw(t, "default"), Origin: fact.Settings}
		to := rapid.SampledFrom([]policy.Profile{policy.ReadOnly, policy.WorkspaceWrite, policy.FullAccess}).Draw(t, "to")
		c := fact.Change{By: rapid.SampledFrom([]fact.Actor{fact.Person, fact.Model}).Draw(t, "by"), Grant: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "grant"), At: at(5)}
		before := s.Permissions(d).Mode
		list, err := s.EnterMode(to, c, d)
		if err != nil {
			return
		}
		skipped := s.Skipped
		for _, f := range list {
			s.Add(f)
		}
		if got := s.Permissions(d).Mode; got != to || s.Skipped != skipped {
			t.Fatalf("from %v: got %v and %d skipped of %+v, want %v", before, got, s.Skipped-skipped, list, to)
		}
	})
}
