package policy_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1":                   1,
		"4096":                4096,
		"0001":                1,
		"512k":                512 << 10,
		"10M":                 10 << 20,
		"1GiB":                1 << 30,
		"1gib":                1 << 30,
		"2T":                  2 << 40,
		"9223372036854775807": math.MaxInt64,
		"8388607T":            8388607 << 40,
		"9007199254740991k":   9007199254740991 << 10,
	} {
		if got, err := policy.ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "0", "00k", "-1", "+1", "-10M", "M", "10MB", "10KB", "1.5G", "1e3", "0x10", "1_000", "10 M",
		"10M ", " 10M", "10Mi", "10iB", "10B", "10P", "10m\x00", "١", "10Ｍ", "10\u212a",
		"9223372036854775808", "8388608T", "9007199254740992k", strings.Repeat("9", 1000),
	} {
		got, err := policy.ParseSize(text)
		if got != 0 {
			t.Errorf("%.40q: got %d together with an error", text, got)
		}
		refused(t, err, "10M")
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1":          time.Second,
		"90":         90 * time.Second,
		"1.5":        1500 * time.Millisecond,
		"1ns":        1,
		"1m30s":      90 * time.Second,
		"2h":         2 * time.Hour,
		"9223372036": 9223372036 * time.Second,
	} {
		if got, err := policy.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "0", "0s", "-1", "-1s", "1d", "s", "10 s", ".", "1.2.3", "1e3", "NaN", "inf",
		"9223372037", "0.0000000001", "99999999999999999999", "infinity", "1s\x00"} {
		got, err := policy.ParseDuration(text)
		if got != 0 {
			t.Errorf("%q: got %v together with an error", text, got)
		}
		refused(t, err, "90s")
	}
}

func TestParseEnv(t *testing.T) {
	value := func(s string) *string { return &s }
	for text, want := range map[string]policy.EnvVar{
		"A":           {Name: "A"},
		"_":           {Name: "_"},
		"a1_B":        {Name: "a1_B"},
		"A=":          {Name: "A", Value: value("")},
		"A=b":         {Name: "A", Value: value("b")},
		"A=b=c":       {Name: "A", Value: value("b=c")},
		"A= b\n\xff ": {Name: "A", Value: value(" b\n\xff ")},
	} {
		got, err := policy.ParseEnv(text)
		if err != nil || got.Name != want.Name || (got.Value == nil) != (want.Value == nil) ||
			got.Value != nil && *got.Value != *want.Value {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, hint := range map[string]string{
		"": "NAME", "=": "NAME", "=x": "NAME", "1A": "NAME", "A B": "NAME", "A-B=x": "NAME", "A.B": "NAME",
		" A": "NAME", "A =x": "NAME", "É": "NAME", "A\x00": "NAME", "BASH_FUNC_x%%=() { :; }": "NAME",
		"A[0]": "NAME", "A{": "NAME", "`": "NAME", "@": "NAME", "A=\x00": "encode",
	} {
		_, err := policy.ParseEnv(text)
		refused(t, err, hint)
	}
}

func TestEnvAddSharesNothing(t *testing.T) {
	var base policy.Env
	for _, s := range []string{"A", "B", "X=1"} {
		v, err := policy.ParseEnv(s)
		if err != nil {
			t.Fatal(err)
		}
		base.Add(v)
	}
	one, two := base, base
	x := "2"
	one.Add(policy.EnvVar{Name: "C"})
	two.Add(policy.EnvVar{Name: "D"})
	one.Add(policy.EnvVar{Name: "X", Value: &x})
	if got := strings.Join(one.Pass, "") + strings.Join(two.Pass, ""); got != "ABCABD" {
		t.Errorf("passed names: got %q, want ABCABD", got)
	}
	if one.Set["X"] != "2" || two.Set["X"] != "1" || base.Set["X"] != "1" {
		t.Errorf("got X=%s and X=%s, want 2 and 1", one.Set["X"], two.Set["X"])
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"1", "10M", "1GiB", "8388607T", "-1", "0", "10MB", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := policy.ParseSize(s)
		if (n > 0) != (err == nil) {
			t.Fatalf("%q: got %d and %v", s, n, err)
		}
		if err != nil {
			refused(t, err, "10M")
			return
		}
		// The same bytes, written out, are the same size.
		if again, err := policy.ParseSize(strconv.FormatInt(n, 10)); err != nil || again != n {
			t.Fatalf("%q: got %d, then %d, %v", s, n, again, err)
		}
		if again, err := policy.ParseSize(policy.SizeText(n)); err != nil || again != n {
			t.Fatalf("%q: got %d, spelled %s, then %d, %v", s, n, policy.SizeText(n), again, err)
		}
	})
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"1", "1.5", "90s", "1m30s", "-1", "0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := policy.ParseDuration(s)
		if (d > 0) != (err == nil) {
			t.Fatalf("%q: got %v and %v", s, d, err)
		}
		if err != nil {
			refused(t, err, "90s")
			return
		}
		if again, err := policy.ParseDuration(d.String()); err != nil || again != d {
			t.Fatalf("%q: got %v, then %v, %v", s, d, again, err)
		}
	})
}

func FuzzParseEnv(f *testing.F) {
	for _, s := range []string{"A", "A=", "A=b=c", "1", "A B=x", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := policy.ParseEnv(s)
		if err != nil {
			if fault.CodeOf(err) != fault.PolicyInvalid || v != (policy.EnvVar{}) {
				t.Fatalf("%q: got %+v and %v", s, v, err)
			}
			return
		}
		back := v.Name
		if v.Value != nil {
			back += "=" + *v.Value
		}
		if back != s {
			t.Fatalf("got %q back from %q", back, s)
		}
		p := policy.Default("/w")
		p.Env.Add(v)
		if err := p.Validate(); err != nil {
			t.Fatalf("%q was parsed, but is refused: %v", s, err)
		}
	})
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"read-only", "danger-full-access", "gated", "private", "any", "ipc", "PARTIAL", "secrets=partial", "x=y", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := policy.ParseProfile(s); err == nil {
			if again, err := policy.ParseProfile(p.String()); err != nil || again != p {
				t.Fatalf("%q: got %v, then %v, %v", s, p, again, err)
			}
		} else {
			refused(t, err, "use ")
		}
		if g, grade, err := policy.ParseAccept(s); err == nil {
			if !strings.EqualFold(g.String()+"="+grade.String(), s) {
				t.Fatalf("%q: got %v=%v", s, g, grade)
			}
		} else {
			refused(t, err, "")
		}
	})
}
