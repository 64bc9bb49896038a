package main

import (
	"testing"

	"github.com/tether-sandbox/tether"
)

// TestReceipt: what runs later is named as far as it fits into one line.
func TestReceipt(t *testing.T) {
	found := func(paths ...string) (res tether.Result) {
		res.Findings = append(res.Findings, tether.Finding{Path: "/w/.git/hooks/x", Action: "quarantined"}) // told by itself
		for _, p := range paths {
			res.Findings = append(res.Findings, tether.Finding{Path: p, Action: "reported"})
		}
		return res
	}
	hides := found("/w/Makefile")
	hides.Report.Hidden = 1
	others := found("/w/Makefile")
	for _, kind := range []string{"symlink", "symlink", "git-repository"} {
		others.Findings = append(others.Findings, tether.Finding{Path: "/w/x", Kind: kind, Action: "reported"})
	}
	for _, tt := range []struct {
		res  tether.Result
		want string
	}{
		{found(), ""},
		{hides, "1 secret hidden; 1 changed file runs later on the host: /w/Makefile"},
		{others, "1 changed file runs later on the host: /w/Makefile; 2 new links lead out of the workspace; 1 new git repository"},
		{found("/a", "/b", "/c"), "3 changed files run later on the host: /a, /b, /c"},
		{found("/a", "/b", "/c", "/d"), "4 changed files run later on the host: /a, /b, /c, ..."},
	} {
		if got := receipt(tt.res); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
