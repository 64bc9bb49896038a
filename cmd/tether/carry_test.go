package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// thief waits for secrets, gives each another name the moment that it is there,
// and says for how many milliseconds it could read it: "way number time", with
// "open" for a time that never ended and "late" where it came too late.
const thief = `use Time::HiRes qw(time);
my ($new, $add) = split " ", $ENV{CALLS};
for my $i (0 .. $ENV{ROUNDS} - 1) {
	my ($d, $way, $got) = ("r$i", $i % 4, 0);
	my ($from, $to) = ($way == 3 ? "$d/in/.ssh" : "$d/.env", "$d/x");
	my $fd = syscall($new, 0); open(my $in, "<&=", $fd) or die;
	syscall($add, $fd, my $at = $way == 3 ? "$d/in" : $d, 0x180);
	sysread($in, my $event, 4096);
	if ($way == 0) { $got = rename $from, $to }
	if ($way == 1) { $got = link $from, $to }
	if ($way == 2) { $got = rename($from, "$d/a") && rename("$d/a", "$d/b") && rename("$d/b", $to) }
	if ($way == 3) { $got = rename($from, "$d/in/x") && rename("$d/in", "$d/out"); $to = "$d/out/x/k" }
	print("$way $i late\n"), next unless $got;
	my $begin = time;
	while (time < $begin + 1.5) { open(my $f, "<", $to) or last; <$f>; close $f; select(undef, undef, undef, 0.0002) }
	my $took = time - $begin;
	print "$way $i ", ($took >= 1.5 ? "open" : sprintf("%.1f", 1000 * $took)), "\n";
}
`

// What a command gives another name before it is covered is hidden under that.
func TestCarry(t *testing.T) {
	need.Program(t, "perl")
	calls := map[string]string{"amd64": "294 254", "arm64": "26 27"}[runtime.GOARCH]
	if calls == "" {
		t.Skip("the numbers of inotify's calls are not known")
	}
	const rounds = 24
	j := newJail(t, "native")
	for i := range rounds {
		j.mustHost(fmt.Sprintf("mkdir -p r%d/in", i))
	}
	j.own()
	// The door: without Tether it reads what it took for as long as it likes.
	go func() {
		time.Sleep(time.Second)
		j.plant("r0/.env")
	}()
	j.opens("CALLS='"+calls+"' ROUNDS=1 perl -e '"+thief+"'; cat r0/x", j.secret)
	j.mustHost("rm r0/x")
	res := lateRun(t, j, "perl -e '"+thief+"'; cat r*/x r*/out/x/k", func() {
		for i := range rounds {
			time.Sleep(100 * time.Millisecond)
			if i%4 == 3 {
				aside := filepath.Join(filepath.Dir(j.w), "ssh")
				j.plant(aside + "/k")
				j.mustHost(fmt.Sprintf("mv %s r%d/in/.ssh", aside, i))
			} else {
				j.plant(fmt.Sprintf("r%d/.env", i))
			}
		}
	}, "--env", fmt.Sprintf("ROUNDS=%d", rounds), "--env", "CALLS="+calls)
	text := lateText(res)
	t.Log(text)
	if strings.Contains(text, "open") || strings.Contains(text, j.secret) {
		t.Error("a secret is readable under another name")
	}
	if strings.Count(text, "late") > rounds/2 {
		t.Error("the thief came too late, which proves nothing")
	}
}
