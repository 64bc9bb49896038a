package fact_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

func TestOpen(t *testing.T) {
	facts := []fact.Fact{
		{Kind: fact.Intent, ID: "1"}, {Kind: fact.Intent, ID: "2"}, {Kind: fact.Outcome, ID: "1"}, {Kind: fact.Denial, ID: "2"},
	}
	open := fact.Open(facts)
	if len(open) != 1 || open[0].ID != "2" {
		t.Errorf("got %v, want the intent 2 alone", open)
	}
	if got := fact.Open(nil); len(got) != 0 {
		t.Errorf("got %v of no facts", got)
	}
}

// TestForm pins the JSON form: logs of years ago must open.
func TestForm(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 5, time.UTC)
	for _, c := range []struct {
		f    fact.Fact
		want string
	}{
		{fact.Fact{Kind: fact.Start, Time: at, World: "local", Workspace: "/w", Parent: "p", Mode: "read-only"},
			`{"kind":"session/start","time":"2026-11-30T12:00:00.000000005Z","world":"local","workspace":"/w","parent":"p","mode":"read-only"}`},
		{fact.Fact{Kind: fact.PresetSet, Preset: fact.PresetFullAccess, Origin: fact.Settings, By: fact.System},
			`{"kind":"permission/preset","by":"tether","preset":"danger-full-access","origin":"settings"}`},
		{fact.Fact{Kind: fact.ApprovalSet, Approval: "ask", By: fact.Person}, `{"kind":"approval/policy","by":"person","approval":"ask"}`},
		{fact.Fact{Kind: fact.Intent, ID: "1", Turn: "t", What: "a <b> && c", Uses: []string{"g"}},
			`{"kind":"command/intent","id":"1","turn":"t","what":"a <b> && c","uses":["g"]}`},
		{fact.Fact{Kind: fact.Outcome, ID: "1", Exit: 3, Code: fault.LimitTime}, `{"kind":"command/outcome","id":"1","exit":3,"code":"LIMIT_TIME"}`},
		{fact.Fact{Kind: fact.Denial, Path: "/x", Rule: "r", Remedy: "--allow-write /x"}, `{"kind":"denial","path":"/x","rule":"r","remedy":"--allow-write /x"}`},
		{fact.Fact{Kind: fact.Fetch, Host: "h:443"}, `{"kind":"fetch","host":"h:443"}`},
		{fact.Fact{Kind: fact.GrantGiven, ID: "g", Why: "w", Grant: &fact.Grant{Path: "/x", Write: true, Scope: fact.Session, Expires: at}},
			`{"kind":"grant","id":"g","why":"w","grant":{"path":"/x","write":true,"scope":"session","expires":"2026-11-30T12:00:00.000000005Z"}}`},
		{fact.Fact{Kind: fact.ChildRun, ID: "c", Ended: true}, `{"kind":"child","id":"c","ended":true}`},
		{fact.Fact{Kind: fact.Note, What: "a\xffb\x00\n\u2028é"}, `{"kind":"note","what":"a\\xffb\u0000\n\u2028é"}`},
	} {
		b, err := c.f.MarshalJSON()
		if err != nil || string(b) != c.want {
			t.Errorf("got %s, %v, want %s", b, err, c.want)
		}
		again, err := fact.Parse(b)
		if b2, err2 := again.MarshalJSON(); err != nil || err2 != nil || string(b2) != string(b) || !again.Known() {
			t.Errorf("got %s, %v, %v after a round, want %s", b2, err, err2, b)
		}
	}
}

func TestFuture(t *testing.T) {
	for _, line := range []string{
		`{"kind":"teleport","time":"2026-11-30T12:00:00Z","where":{"x":[1,2]}}`,
		`{"kind":"note","what":"x","mood":"good","zeal":null}`,
		`{"kind":"note","exit":"soon"}`,
		`{"kind":{"name":"note"},"what":"x"}`,
		`{"kind":"grant","id":"g","by":"person","grant":{"path":"/x","scope":"session","weekdays":true}}`,
		`{"kind":"grant","id":"g","by":"person","grant":{"path":"/x","scope":"session"},"weekdays":true}`,
	} {
		f, err := fact.Parse([]byte(line))
		if err != nil || f.Known() {
			t.Errorf("%s: got %v, known %v, want a fact of the future", line, err, f.Known())
		}
		b, err := f.MarshalJSON()
		var got, want any
		if err != nil || json.Unmarshal(b, &got) != nil || json.Unmarshal([]byte(line), &want) != nil {
			t.Fatalf("%s: %s, %v", line, b, err)
		}
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		if string(g) != string(w) {
			t.Errorf("got %s, want all of %s kept", g, w)
		}
		s := fact.Fold([]fact.Fact{f})
		if len(s.Grants) > 0 {
			t.Errorf("%s: a grant that says more than we understand is in force", line)
		}
	}
	for _, line := range []string{``, `null`, `[]`, `1`, `{`, `{} {}`, `"x"`, `{"kind":"note"}x`} {
		if f, err := fact.Parse([]byte(line)); err == nil {
			t.Errorf("%q: got %v, want an error", line, f)
		}
	}
}

func TestClip(t *testing.T) {
	for _, n := range []int{0, fact.MaxText - 1, fact.MaxText, fact.MaxText + 1, 1 << 20} {
		long := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		got := fact.Clip(long, fact.MaxText)
		if len(got) > fact.MaxText || (n <= fact.MaxText) != (got == long) || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%d bytes: got %d", n, len(got))
		}
	}
	if got := (fact.Fact{Grant: &fact.Grant{Command: []string{"a", "four"}}}).Longest(); got != 4 {
		t.Errorf("got %d, want the longest word of a grant, 4", got)
	}
}

// FuzzParse: what parses is written again, and then stays as it is.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"kind":"note","what":"x\ud800","y":[1, 2]}`))
	f.Add([]byte(`{"KIND":"note","kind":3,"grant":{"mode":1}}`))
	f.Add([]byte("{\"kind\":\"note\",\"\xff\":\"\xfe\"}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		one, err := fact.Parse(b)
		if err != nil {
			return
		}
		fact.Fold([]fact.Fact{one, one})
		first, err := one.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		two, err := fact.Parse(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := two.MarshalJSON()
		if err != nil || string(first) != string(second) {
			t.Errorf("got %s, %v, want %s", second, err, first)
		}
		if strings.ContainsRune(string(first), '\n') {
			t.Errorf("a line break in %q", first)
		}
	})
}
