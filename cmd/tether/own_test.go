package main

import (
	"strings"
	"testing"
)

// TestOwnAddresses: what listens on a public address of the host itself is
// reached by a rule that names the address, and by nothing else: also by names,
// on a second address of an interface, on one that has just come, and through a
// proxy.
func TestOwnAddresses(t *testing.T) {
	at := func(host string) string { return "http://" + host + "/" }
	gates(t, func(t *testing.T, j *jail, w world) {
		stderr, log := w.hops(j, []hop{{at(own), false}, {at(own2), false}, {at("[" + own6 + "]"), false}, {at("own.test"), false}, {at("own2.test"), false},
			{at("own6.test:8080"), false}, {at("half.test"), false}, {at("ok.test"), true}, {at(pub), true}, {at("[" + pub6 + "]"), true}})
		for _, want := range []string{own + " port 80: it is an address of this host itself\nhint: --allow-host " + own + "\n",
			"own.test (" + own + ") port 80: it is an address of this host itself\nhint: --allow-host " + own + "\n",
			"own6.test (" + own6 + ") port 8080: it is an address of this host itself\nhint: --allow-host [" + own6 + "]:8080\n"} {
			if !strings.Contains(stderr, want) {
				t.Errorf("stderr does not tell %q: %s", want, stderr)
			}
		}
		if strings.Contains(log, "CAME "+own) || strings.Contains(log, "CAME ["+own6) {
			t.Errorf("a refused connection came: %s", log)
		}
		w.hops(j, []hop{{at(own + ":8080"), true}, {at("own.test:8080"), true}, {at(own), false}, {at(own2 + ":8080"), false}, {at("ok.test"), true}}, "--allow-host", own+":8080")
		w.hops(j, []hop{{at(own), true}, {at(own2), true}, {at("[" + own6 + "]"), false}}, "--allow-host", "93.184.217.0/24")
		w.hops(j, []hop{{at("own.test"), false}, {at(own), false}, {at("own2.test"), true}, {at("ok.test"), false}},
			"--only-host", "own.test", "--only-host", "own2.test", "--only-host", own2)
		w.setup = "(sleep 1; ip addr add 93.184.217.9/24 dev eth0) &"
		const late = "sleep 2; curl -sS -m 5 http://93.184.217.9/; true"
		if r, _ := w.outside(j, late); !strings.Contains(r.stdout, servedHTTP) {
			t.Fatalf("control: %s", r.all())
		}
		if r, log := w.inside(j, "curl -sS -m 1 http://93.184.217.9/; "+late); strings.Contains(r.stdout, servedHTTP) || !strings.Contains(r.stderr, "93.184.217.9 port 80: it is an address of this host itself\n") {
			t.Errorf("an address that has just come: %s\n%s", r.all(), log)
		}
		// Through a proxy: what is known here is refused here.
		w.setup, w.hosts = "", own+" myself.test\n"
		j.env = append(j.env, "HTTPS_PROXY=http://me:"+proxyPassword+"@"+resolver+":3128", "HTTP_PROXY=http://me:"+proxyPassword+"@"+resolver+":3128")
		get := "curl -sS -m 5 " + at(own) + " " + at("myself.test") + " " + at("["+own6+"]") + "; true"
		r, log := w.inside(j, get, "--upstream", "environment")
		if strings.Contains(log, "TUNNEL") || strings.Contains(r.stdout, servedHTTP) || strings.Count(r.stderr, "it is an address of this host itself") != 3 {
			t.Errorf("through a proxy: %s\n%s", r.all(), log)
		}
		r, log = w.inside(j, "curl -sS -m 5 "+at(own)+" "+at("ok.test")+"; true", "--upstream", "environment", "--allow-host", own)
		if strings.Contains(log, "TUNNEL CONNECT "+own) || strings.Count(log, "TUNNEL") != 1 || strings.Count(r.stdout, servedHTTP) != 2 {
			t.Errorf("opened, beside a proxy: %s\n%s", r.all(), log)
		}
	})
	j, w := gated(t, "native"), world{}
	fetch := func(url string, flags ...string) (result, string) {
		return w.run(j, append(append([]string{binary, "fetch", "-C", j.w}, flags...), url))
	}
	for url, flag := range map[string]string{at(own): own, at("own2.test"): own2, at("own6.test:8080"): "[" + own6 + "]:8080"} {
		r, log := fetch(url)
		if strings.Contains(r.stdout, servedHTTP) || strings.Contains(log, "SERVED") || !strings.Contains(r.stderr, "it is an address of this host itself\n") ||
			!strings.Contains(r.stderr, "hint: --allow-host "+flag+"\n") {
			t.Errorf("fetch %s: %s\n%s", url, r.all(), log)
		}
		if r, log := fetch(url, "--allow-host", flag); !strings.Contains(r.stdout, servedHTTP) {
			t.Errorf("control: fetch %s, allowed: %s\n%s", url, r.all(), log)
		}
	}
	j.env = append(j.env, "TETHER_WEB_ALLOW_PRIVATE=1")
	if r, log := fetch(at(own)); !strings.Contains(r.stdout, servedHTTP) {
		t.Errorf("TETHER_WEB_ALLOW_PRIVATE=1: %s\n%s", r.all(), log)
	}
}
