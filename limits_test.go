package tether

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// TestLimitsMet: each limit is told once, with the flag that raises it.
func TestLimitsMet(t *testing.T) {
	l := policy.Limits{CPU: 1500e6, MemoryBytes: 1 << 30}
	for _, c := range []struct {
		out          world.Outcome
		code         fault.Code
		rule, remedy string
	}{
		{world.Outcome{Met: enforce.MetCPU}, fault.LimitCPU, "2s", "--max-cpu 4s"},
		{world.Outcome{Met: enforce.MetCPU | enforce.MetTreeCPU}, fault.LimitCPU, "together", "--max-cpu 4s"},
		{world.Outcome{Met: enforce.MetUncounted}, fault.LimitCPU, "counted any more, and is limited to 2s", ""},
		{world.Outcome{Met: enforce.MetMemory}, fault.LimitMemory, "1G", "--max-memory 2G"},
		{world.Outcome{LowDisk: &world.LowDisk{Dir: "/d", Free: 900 << 20, Keep: 1 << 30}}, fault.LimitDisk, "900M left, and 1G", "--min-free-disk 450M"},
		{world.Outcome{LowDisk: &world.LowDisk{Dir: "/d", Free: 5 << 30, Keep: 1 << 30, Names: true}}, fault.LimitDisk, "few files", "--min-free-disk 512M"},
		{world.Outcome{LowDisk: &world.LowDisk{Dir: "/d"}}, fault.LimitDisk, "0 left", "--min-free-disk 1"},
	} {
		got := limitsMet(l, c.out)
		if len(got) != 1 || got[0].Code != c.code || !strings.Contains(got[0].Rule, c.rule) || got[0].Remedy != c.remedy {
			t.Errorf("%+v: got %+v", c.out, got)
			continue
		}
		if word, value, _ := strings.Cut(got[0].Remedy, " "); word == "--min-free-disk" {
			if _, err := policy.ParseSize(value); err != nil {
				t.Errorf("%q cannot be typed: %v", got[0].Remedy, err)
			}
		}
	}
	if got := limitsMet(l, world.Outcome{}); len(got) > 0 {
		t.Errorf("nothing was met: got %+v", got)
	}
}

func TestRounded(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1023: "1023", 1024: "1K", 5000: "5000", 20000: "19K", 1 << 20: "1M", 3 << 19: "1536K",
		1 << 30: "1G", 900<<20 + 7: "900M", 11<<30 + 5: "11G"} {
		if got := rounded(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
