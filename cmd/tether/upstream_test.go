package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestUpstreamProxy: a proxy of the company's is chained only if the policy says
// so. The rules speak before it is asked for anything, names and requests inside
// of a tunnel are judged as ever, and its credentials stay outside.
func TestUpstreamProxy(t *testing.T) {
	const at = "93.184.216.53:3128"
	variables := func(password, at string) []string {
		url := "http://me:" + password + "@" + at
		return []string{"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "NO_PROXY=other.test"}
	}
	gates(t, func(t *testing.T, j *jail, w world) {
		j.env = append(j.env, variables(proxyPassword, at)...)
		get := func(url, more string) string { return "curl -sS -m 5 " + more + " '" + url + "'; " }
		r, log := w.inside(j, get("http://only-the-proxy.test/", ""))
		if strings.Contains(log, "TUNNEL") || strings.Contains(r.stdout, servedHTTP) {
			t.Fatalf("control: without the policy's word: %s\n%s", r.all(), log)
		}
		up := []string{"--upstream", "environment", "-v"}
		r, log = w.inside(j, get("http://only-the-proxy.test/", "")+get("http://ok.test:443/", "")+get("http://"+pub+"/", "")+get("http://other.test/", "")+"env; true", up...)
		if strings.Count(r.stdout, servedHTTP) != 4 || !strings.Contains(r.stdout, "host=other.test") || strings.Contains(log, "TUNNEL CONNECT other.test") ||
			strings.Contains(log, "ASKED only-the-proxy.test.") {
			t.Errorf("%s\n%s", r.all(), log)
		}
		for _, want := range []string{"CONNECT only-the-proxy.test:80", "CONNECT ok.test:443", "CONNECT " + pub + ":80"} {
			if strings.Count(log, "TUNNEL "+want+"\n") != 1 {
				t.Errorf("not once: %s: %s", want, log)
			}
		}
		if strings.Contains(r.all(), proxyPassword) || strings.Contains(r.all(), "REDACTED") {
			t.Errorf("the credentials are inside: %s", r.all())
		}
		if !strings.Contains(r.stderr, "network  Partial") || !strings.Contains(r.stderr, "through the upstream proxy http://"+at) {
			t.Errorf("the report does not say so: %s", r.stderr)
		}
		// What the proxy must never hear of, though it would go there.
		r, log = w.inside(j, get("http://denied.test/", "")+get("http://"+private+"/", "")+get("http://"+metadata+"/", "")+get("http://metadata.google.internal/", "")+
			get("http://localhost:3128/", "--noproxy '' ")+get("http://ok.test:5432/", "")+get("http://"+at+"/", "")+"true",
			append(up, "--deny-host", "denied.test", "--allow-host", at)...)
		if strings.Contains(log, "TUNNEL") || strings.Contains(r.stdout, servedHTTP) {
			t.Errorf("%s\n%s", r.all(), log)
		}
		for _, want := range []string{"denied.test", private + " port 80: it is a private address", "it is the upstream proxy itself", "port 5432 is not one of base public"} {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("not told: %q: %s", want, r.stderr)
			}
		}
		// The names inside, and secrets.
		j.env = append(j.env, "MY_TOKEN=tok-0123456789-AbCdEfGhIj")
		r, log = w.inside(j, get("http://ok.test/", "")+get("http://ok.test/", "-H 'Host: evil.test'")+"true", append(up, "--only-host", "ok.test")...)
		direct := j.provider == "native" && !w.oneNet // a client of a proxy in absolute form is given the host that it dialled
		if direct && (strings.Count(r.stdout, servedHTTP) != 1 || !strings.Contains(r.stderr, "its HTTP on a connection to ok.test names this host")) {
			t.Errorf("%s\n%s", r.all(), log)
		}
		r, log = w.inside(j, get("http://ok.test/?k=tok-0123456789-Ab'\"CdEfGhIj\"'", "")+"true", up...)
		if strings.Contains(r.stdout, servedHTTP) || !strings.Contains(r.stderr, "EGRESS_SECRET") {
			t.Errorf("%s\n%s", r.all(), log)
		}
		// What goes wrong is told, without credentials.
		for want, env := range map[string][]string{at + " does not take the credentials (407)": variables("wrong-pa55word-QxZ17", at),
			"93.184.216.53:3129 cannot be reached: connect: connection refused": variables(proxyPassword, "93.184.216.53:3129"),
			"nowhere.test:3128 cannot be reached: there is no such host\n":      variables(proxyPassword, "nowhere.test:3128")} {
			k := *j
			k.env = append(append([]string(nil), j.env...), env...)
			r, log := w.inside(&k, get("http://ok.test/", "")+"true", up...)
			if strings.Contains(r.stdout, servedHTTP) || !strings.Contains(r.stderr, "ok.test port 80: the upstream proxy http://"+want) || strings.Contains(r.all(), "pa55word") {
				t.Errorf("%s: %s\n%s", want, r.all(), log)
			}
		}
		r, log = w.inside(j, get("http://ok.test/", "")+"true", "--upstream", "http://"+at)
		if !strings.Contains(r.stderr, "wants credentials (407)") {
			t.Errorf("without credentials: %s\n%s", r.all(), log)
		}
		// A name that leads to the proxy where only the proxy knows it.
		const ask = "curl -sS -m 5 ${ALL_PROXY:+--preproxy $ALL_PROXY} -x http://sneak.test:3128 http://denied.test/; " +
			"curl -sS -m 5 ${ALL_PROXY:+--preproxy $ALL_PROXY} -p -x http://sneak.test:3128 http://denied.test/; true"
		sneak := append(up, "--allow-host", "sneak.test:3128", "--deny-host", "denied.test")
		r, log = w.inside(j, "curl -sS -m 5 ${ALL_PROXY:+-x $ALL_PROXY} http://sneak.test:3128/path", sneak...)
		if strings.Count(log, "TUNNEL") != 2 || !strings.Contains(log, "TUNNEL CONNECT sneak.test:3128") || !strings.Contains(log, "TUNNEL GET /path") {
			t.Errorf("control: what asks no proxy: %s\n%s", r.all(), log)
		}
		r, log = w.inside(j, ask, sneak...)
		if strings.Count(log, "TUNNEL") != 2 || strings.Count(log, "TUNNEL CONNECT sneak.test:3128") != 2 || !strings.Contains(r.stderr, "at the port of the upstream proxy") {
			t.Errorf("through itself: %s\n%s", r.all(), log)
		}
	})
	j := gated(t, "native")
	j.env = append(j.env, variables(proxyPassword, at)...)
	for url, reached := range map[string]bool{"http://only-the-proxy.test/": true, "http://10.0.0.5/": false, "http://localhost/": false} {
		r, log := (world{}).run(j, []string{binary, "fetch", "-C", j.w, "--upstream", "environment", url})
		if strings.Contains(r.stdout, servedHTTP) != reached || strings.Contains(log, "TUNNEL") != reached || strings.Contains(r.all(), proxyPassword) {
			t.Errorf("fetch %s: %s\n%s", url, r.all(), log)
		}
	}
	for flag, want := range map[string]string{"http://me:SECRET@h:1": "a policy holds no credentials", "socks5://h": "cannot be chained", "h:x": "cannot be read"} {
		if r := finishCommand(t, j.command("--upstream", flag, "--", "echo", "RAN")); r.exit != exitOurs || !strings.Contains(r.stderr, want) || strings.Contains(r.all(), "SECRET") {
			t.Errorf("%s: %s", flag, r.all())
		}
	}
	j.write(filepath.Join(j.state, "tether/policy.toml"), "network = \"gated\"\nupstream = \"http://me:SECRET@h\"\n")
	if r := j.run("echo RAN"); r.exit != exitOurs || !strings.Contains(r.stderr, "policy.toml:2:") || strings.Contains(r.all(), "SECRET") {
		t.Errorf("file: %s", r.all())
	}
}
