package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestManyProcesses: many processes write one session and another one beside it
// at once; all of it is there, in its own log.
func TestManyProcesses(t *testing.T) {
	j := newJail(t, "native")
	const each = 4
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		for n := range each {
			cmd := j.command("--session", id, "--", "sh", "-c", fmt.Sprintf("echo %s-%d > /tmp/%d; cat /tmp/%d", id, n, n, n))
			wg.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil || string(out) != fmt.Sprintf("%s-%d\n", id, n) {
					t.Errorf("%s %d: got %v: %s", id, n, err, out)
				}
			})
		}
	}
	wg.Wait()
	for _, id := range []string{"a", "b"} {
		if r := j.verb("", "session", "verify", id); r.exit != 0 {
			t.Errorf("verify: %s", r.all())
		}
		r := j.verb("", "session", "log", id, "--json")
		in, out := map[string]bool{}, 0
		for line := range strings.Lines(r.stdout) {
			var f struct {
				Fact struct{ Kind, ID, What string }
			}
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			switch f.Fact.Kind {
			case "command/intent":
				if !strings.Contains(f.Fact.What, id+"-") {
					t.Errorf("%s holds %q", id, f.Fact.What)
				}
				in[f.Fact.ID] = true
			case "command/outcome":
				if !in[f.Fact.ID] {
					t.Errorf("%s: an outcome without its intent: %s", id, line)
				}
				out++
			}
		}
		if len(in) != each || out != each {
			t.Errorf("%s: %d intents, %d outcomes, want %d", id, len(in), out, each)
		}
	}
	// One that runs is seen, and its session cannot be removed.
	cmd := j.command("--session", "a", "--", "sh", "-c", "echo here; sleep 60")
	p, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if r := j.verb("", "session", "rm", "a"); r.exit != exitOurs || !strings.Contains(r.stderr, "in use") {
		t.Errorf("rm of a session in use: got exit %d: %s", r.exit, r.all())
	}
	if r := j.verb("", "session", "list"); !strings.Contains(r.stdout, "in use") {
		t.Errorf("list: %s", r.all())
	}
	if r := j.verb("", "session", "show", "a"); !strings.Contains(r.stdout, "no outcome") {
		t.Errorf("show: %s", r.all())
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// The crash shows, and the session goes on.
	if r := j.run("true", "--session", "a"); r.exit != 0 {
		t.Errorf("after a crash: %s", r.all())
	}
	if r := j.verb("", "session", "show", "a"); strings.Count(r.stdout, "no outcome") != 1 {
		t.Errorf("show: %s", r.all())
	}
	if r := j.verb("", "session", "rm", "a", "b"); r.exit != 0 {
		t.Errorf("rm: %s", r.all())
	}
}

// TestSessionHosts: a host that was refused is granted to a session: this port,
// in this session, until it is revoked.
func TestSessionHosts(t *testing.T) {
	j := gated(t, "native")
	w := world{}
	list := []hop{{"http://ok.test:5432/", false}, {"http://ok.test:3000/", false}, {"http://ok.test/", true}}
	stderr, _ := w.hops(j, list, "--session", "net")
	if !strings.Contains(stderr, "hint: tether session grant net --host ok.test:5432\n") {
		t.Errorf("no hint for the session: %s", stderr)
	}
	if r := j.verb("", "why", "net"); !strings.Contains(r.stdout, "EGRESS_DENIED") || !strings.Contains(r.stdout, "tether session grant net --host ok.test:5432\n") {
		t.Errorf("why: %s", r.all())
	}
	grant := func(args ...string) string {
		t.Helper()
		r := j.verb("", append([]string{"session", "grant", "net"}, args...)...)
		if r.exit != 0 {
			t.Fatalf("grant %q: %s", args, r.all())
		}
		return strings.TrimSpace(r.stdout)
	}
	id := grant("--host", "ok.test:5432")
	list[0].open = true
	w.hops(j, list, "--session", "net")
	w.hops(j, []hop{{"http://ok.test:5432/", false}}, "--session", "other")
	if r := j.verb("", "session", "revoke", "net", id); r.exit != 0 {
		t.Fatalf("revoke: %s", r.all())
	}
	list[0].open = false
	w.hops(j, list, "--session", "net")
	grant("--host", "ok.test:5432", "--for", "once")
	list[0].open = true
	w.hops(j, list, "--session", "net")
	list[0].open = false
	w.hops(j, list, "--session", "net")
	for _, flags := range [][]string{{"--allow-host", "other.test:5432"}, {"--upstream", "http://proxy.test:3128"}} { // what a grant opens, and what none does
		if r := j.verb("", append(append([]string{"run", "--session", "net"}, flags...), "--", "echo", "RAN")...); r.exit != exitOurs || r.stdout != "" ||
			!strings.Contains(r.stderr, "anything else, such as --upstream, needs a new session\nhint: tether session grant -h\n") {
			t.Errorf("%q: %s", flags, r.all())
		}
	}
	for _, host := range []string{"ok.test", "*.test:80", "http://ok.test:80"} {
		if r := j.verb("", "session", "grant", "net", "--host", host); r.exit != exitOurs || !strings.Contains(r.stderr, "POLICY_INVALID") {
			t.Errorf("grant %q: %s", host, r.all())
		}
	}
}
