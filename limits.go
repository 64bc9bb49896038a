package tether

import (
	"cmp"
	"strconv"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// limitsMet says which limits a command was seen to meet, each with the flag
// that raises it.
func limitsMet(l policy.Limits, out world.Outcome) []Denial {
	var list []Denial
	add := func(bit enforce.Met, code fault.Code, what, rule, remedy string) {
		if out.Met&bit != 0 {
			list = append(list, Denial{What: what, Rule: rule, Code: code, Remedy: remedy})
		}
	}
	if out.Met&enforce.MetTreeCPU != 0 {
		out.Met &^= enforce.MetCPU // the same, told once
	}
	procs := cmp.Or(l.Processes, policy.BuiltinProcesses)
	add(enforce.MetMemory, fault.LimitMemory, "the command was killed", "it needed more memory than "+policy.SizeText(l.MemoryBytes),
		"--max-memory "+policy.SizeText(2*l.MemoryBytes))
	most, more := "there may be "+strconv.FormatInt(procs, 10)+" at a time", "--max-procs "+strconv.FormatInt(2*procs, 10)
	if c := out.Crowd; c != nil {
		most, more = "there may be "+strconv.FormatInt(c.Processes, 10)+" at a time, since "+c.Why, c.Way
	}
	add(enforce.MetProcesses, fault.LimitProcesses, "more processes or threads", most, more)
	seconds := (l.CPU + time.Second - 1).Truncate(time.Second)
	add(enforce.MetCPU, fault.LimitCPU, "a process was ended", "it had used "+seconds.String()+" of processor time",
		"--max-cpu "+(2*seconds).String())
	add(enforce.MetTreeCPU, fault.LimitCPU, "the command was killed", "its processes had used "+seconds.String()+" of processor time together",
		"--max-cpu "+(2*seconds).String())
	add(enforce.MetUncounted, fault.LimitCPU, "the command was killed",
		"the processor time of its processes could not be counted any more, and is limited to "+seconds.String(), "")
	add(enforce.MetFileSize, fault.LimitFileSize, "a process was ended", "it wrote more than "+policy.SizeText(l.FileBytes)+" to a file",
		"--max-file-size "+policy.SizeText(2*l.FileBytes))
	rule, raise := "the folder lies in memory, and is full", ""
	if l.ScratchBytes > 0 {
		rule, raise = "the folder may hold "+policy.SizeText(l.ScratchBytes), "--max-scratch "+policy.SizeText(2*l.ScratchBytes)
	}
	add(enforce.MetScratch, fault.LimitScratch, "more files in "+out.Full, rule, raise)
	if d := out.LowDisk; d != nil {
		list = append(list, lowDisk(d))
	}
	return list
}

// lowDisk tells of a disk of which too little is left. The remedy lets the next
// command take about half of what is.
func lowDisk(d *world.LowDisk) Denial {
	rule := "there are " + rounded(d.Free) + " left, and " + rounded(d.Keep) + " stay free"
	if d.Names {
		rule = "it can hold few files more"
	}
	return Denial{What: "more on the disk of " + d.Dir, Rule: rule, Code: fault.LimitDisk,
		Remedy: "--min-free-disk " + rounded(max(min(d.Free, d.Keep)/2, 1))}
}

// rounded spells a size in the largest unit of which there are at least ten.
func rounded(n int64) string {
	for _, unit := range [...]int64{1 << 30, 1 << 20, 1 << 10} {
		if n >= 10*unit || n == unit {
			return policy.SizeText(n - n%unit)
		}
	}
	return policy.SizeText(n)
}

// unnested says that the command wanted to build a sandbox, as bwrap and browsers
// do, and what would let it.
func unnested(p *plan.Plan, by enforce.Kind) Denial {
	d := Denial{What: "a user namespace, in which programs build sandboxes of their own", Code: fault.SandboxViolation,
		Rule: "a command makes none unless it is allowed to, which costs grades of write and secrets", Remedy: "--nested"}
	switch {
	case p.Identity.UID == 0:
		d.Rule, d.Remedy = "a command that is root inside cannot make any", "run it as an ordinary user, or in a workspace of one, with --nested"
	case by != enforce.Native:
		d.Remedy = "--provider native --nested"
	}
	return d
}
