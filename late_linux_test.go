package tether_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/policy"
)

// secretsReason is what a result says of the secrets.
func secretsReason(res tether.Result) string {
	i := slices.IndexFunc(res.Report.Grades, func(g tether.Grade) bool { return g.Guarantee == policy.Secrets })
	return res.Report.Grades[i].Reason
}

// A session with many commands keeps its watch, so that a secret is hidden from
// the very start of a command on.
func TestStandingWatch(t *testing.T) {
	s, dir := open(t, func(o *tether.Options) { o.KeepReady = true })
	const secret = "S3NTINELxyz"
	plant := func(name string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stands := false
	for end := time.Now().Add(20 * time.Second); !stands && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		reason := secretsReason(run(t, s, "true"))
		stands = strings.HasSuffix(reason, "when it is seen")
	}
	if !stands {
		t.Fatal("no watch stands")
	}
	// Short commands: what appears right when they start is hidden, and what
	// appeared before is never seen at all.
	for i := range 20 {
		before, during := fmt.Sprintf("b%d/.env", i), fmt.Sprintf("d%d/x/.env", i)
		plant(before)
		ready := make(chan struct{})
		go func() {
			defer close(ready)
			time.Sleep(time.Duration(i) * time.Millisecond)
			plant(during)
		}()
		res := run(t, s, fmt.Sprintf(`cat %s; until test -e %s; do :; done; n=0; while cat %[2]s >/dev/null 2>&1; do n=$((n+1)); test $n -gt 2000 && break; done; cat %[2]s`, before, during))
		<-ready
		if text := res.Stdout + res.Stderr; strings.Contains(text, secret) || !strings.Contains(text, "denied") {
			t.Errorf("%d: %s", i, text)
		}
	}
	// A folder that appears when nobody reads the watch is watched all the same.
	plant("new/deep/.env")
	run(t, s, "true")
	// Nothing but the watch brings it to light, however long the command waits.
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		time.Sleep(60 * time.Millisecond)
		plant("new/deep/id_rsa")
	}()
	res := run(t, s, "until test -e new/deep/id_rsa; do sleep 0.01; done; n=0; while cat new/deep/id_rsa >/dev/null 2>&1; do n=$((n+1)); test $n -gt 1000 && break; sleep 0.01; done; cat new/deep/id_rsa")
	<-ready
	if text := res.Stdout + res.Stderr; strings.Contains(text, secret) || !strings.Contains(text, "denied") {
		t.Errorf("in a folder that appeared between commands: %s", text)
	}
	fds := func() int {
		list, _ := filepath.Glob("/proc/self/fd/*")
		n := 0
		for _, l := range list {
			if to, _ := os.Readlink(l); strings.Contains(to, "inotify") {
				n++
			}
		}
		return n
	}
	settles := func(want int) int {
		for end := time.Now().Add(20 * time.Second); fds() != want && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		return fds()
	}
	if n := settles(1); n != 1 {
		t.Errorf("%d watches stand between commands", n)
	}
	s.Close()
	if n := settles(0); n != 0 {
		t.Errorf("%d watches are left", n)
	}
}
