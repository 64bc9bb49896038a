package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// wall measures what the second wall of provider native, the system call filter
// and Landlock, adds: the program as it is against one that is built without,
// which no flag and no variable can make of it. The tag alone makes a program
// that starts nothing; that is tried first.
func (b bench) wall() error {
	const here = "github.com/tether-sandbox/tether"
	build := func(name string, args ...string) (string, error) {
		to := filepath.Join(b.top, name)
		cmd := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", to}, args...), here+"/cmd/tether")...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w: %s", err, out)
		}
		return to, nil
	}
	with, err := build("with", "-ldflags", "-s -w")
	if err != nil {
		return err
	}
	dead, err := build("dead", "-ldflags", "-s -w", "-tags", "benchwall")
	if err != nil {
		return err
	}
	without, err := build("without", "-tags", "benchwall", "-ldflags", "-s -w -X "+here+"/internal/enforce/inner.measuring=only")
	if err != nil {
		return err
	}
	w, err := b.goProgram()
	if err != nil {
		return err
	}
	inside := func(tether string, argv ...string) []string {
		return append([]string{tether, "run", "--provider", "native", "--no-network", "--"}, argv...)
	}
	for _, c := range []struct{ program, want string }{{with, "2"}, {without, "0"}} {
		out, err := subject{argv: inside(c.program, "sed", "-n", "s/^Seccomp:\t//p", "/proc/self/status"), dir: w}.output()
		if err != nil || strings.TrimSpace(out) != c.want {
			return fmt.Errorf("%s: got filter %q (%v), want %s", filepath.Base(c.program), out, err, c.want)
		}
	}
	if out, err := (subject{argv: inside(dead, "true"), dir: w}).output(); err == nil {
		return fmt.Errorf("the tag alone made a program that starts commands: %s", out)
	}
	begin := time.Now()
	if _, err := seccomp.Compile(seccomp.Options{Arch: runtime.GOARCH, Inet: true, Unix: true, SetGID: true, Namespaced: true, Tell: true}); err != nil {
		return err
	}
	fmt.Printf("\nthe second wall: each run compiles it, with and without, in %.2f ms\n", time.Since(begin).Seconds()*1000)
	fmt.Printf("%-30s %10s %10s %10s %8s %20s\n", "", "with ms", "without", "adds ms", "adds %", "half of them, ms")
	for _, c := range []struct {
		name   string
		rounds int
		argv   []string
	}{
		{"true", 200, []string{"true"}},
		{"a Go build, cold", 7, []string{"go", "build", "-a", "-o", "a.out", "."}},
	} {
		if err := pairs(c.name, c.rounds, subject{argv: inside(with, c.argv...), dir: w}, subject{argv: inside(without, c.argv...), dir: w}); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// pairs runs a and b in turns, each of them as often first, and prints the medians
// of both and of their differences, with the middle half of these: what the machine
// does beside falls on both, and shows as how far that half reaches.
func pairs(name string, rounds int, a, b subject) error {
	var cost [2][2][]float64 // by what is counted and by whom
	var more [2][]float64
	for round := range rounds + 1 {
		var now [2][2]float64
		for turn := range 2 {
			who := (round + turn) % 2
			wall, processor, err := [...]subject{a, b}[who].cost()
			if err != nil {
				return err
			}
			now[0][who], now[1][who] = wall.Seconds()*1000, processor.Seconds()*1000
		}
		for what := range now {
			if round > 0 {
				cost[what][0], cost[what][1] = append(cost[what][0], now[what][0]), append(cost[what][1], now[what][1])
				more[what] = append(more[what], now[what][0]-now[what][1])
			}
		}
	}
	for what, kind := range [...]string{"time", "processor"} {
		without, adds := quantile(cost[what][1], 2), quantile(more[what], 2)
		fmt.Printf("  %-28s %10.2f %10.2f %10.2f %8.1f %20s\n", name+": "+kind, quantile(cost[what][0], 2), without, adds, 100*adds/without,
			fmt.Sprintf("%.2f to %.2f", quantile(more[what], 1), quantile(more[what], 3)))
	}
	return nil
}

// quantile is the value below which so many quarters of all lie.
func quantile(all []float64, quarters int) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[quarters*len(all)/4]
}

// cost is what a subject takes on the clock, and of processors with all that it
// waited for.
func (s subject) cost() (wall, processor time.Duration, err error) {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir = s.dir
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	wall = time.Since(begin)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, out)
	}
	return wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

func (s subject) output() (string, error) {
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}
