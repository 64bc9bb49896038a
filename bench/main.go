// Command bench measures Tether against bwrap and plain exec in one run, in
// turns, and prints medians and ratios. Times are never asserted: read the
// ratios, on a quiet machine.
//
//	go run ./bench PATH-TO-TETHER [start|masks|walk|work|wall|gate|log|mcp]
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == clientWord {
		if err := gateClient(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: bench PATH-TO-TETHER [start|masks|walk|work|wall|gate|log|mcp]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(tether string, parts []string) error {
	tether, err := filepath.Abs(tether)
	if err != nil {
		return err
	}
	top, err := os.MkdirTemp("", "tether-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	b := bench{tether: tether, top: top}
	all := []struct {
		name string
		do   func() error
	}{{"start", b.start}, {"masks", b.masks}, {"walk", b.walk}, {"work", b.work}, {"wall", b.wall}, {"gate", b.gate}, {"log", b.log}, {"mcp", b.mcp}}
	for _, p := range all {
		if len(parts) > 0 && !slices.Contains(parts, p.name) {
			continue
		}
		if err := p.do(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

type bench struct{ tether, top string }

// subject is one thing that is timed.
type subject struct {
	name string
	argv []string
	dir  string
	data [][]byte // what its descriptors from 3 on hold
	// do, when set, is timed instead of a program, after a pause.
	do    func() error
	pause time.Duration
}

// run runs a subject and says how long it took.
func (s subject) run() (time.Duration, error) {
	if s.do != nil {
		time.Sleep(s.pause)
		begin := time.Now()
		err := s.do()
		return time.Since(begin), err
	}
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir = s.dir
	files, err := s.files()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	cmd.ExtraFiles = files
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return took, err
}

// files opens a subject's data; it is unlinked already.
func (s subject) files() ([]*os.File, error) {
	var files []*os.File
	for _, content := range s.data {
		f, err := os.CreateTemp("", "tether-bench-")
		if err == nil {
			os.Remove(f.Name())
			files = append(files, f)
			_, err = f.WriteAt(content, 0)
		}
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// inTurns times the subjects in turns, n rounds after one to warm up, and
// returns the median of each in milliseconds.
func inTurns(n int, subjects []subject) ([]float64, error) {
	times := make([][]float64, len(subjects))
	for round := range n + 1 {
		for i, s := range subjects {
			took, err := s.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				times[i] = append(times[i], float64(took.Microseconds())/1000)
			}
		}
	}
	medians := make([]float64, len(subjects))
	for i, t := range times {
		slices.Sort(t)
		medians[i] = t[len(t)/2]
	}
	return medians, nil
}

func table(title string, subjects []subject, medians []float64, base int) {
	fmt.Printf("\n%-42s %10s %10s\n", title, "median ms", "ratio")
	for i, s := range subjects {
		fmt.Printf("  %-40s %10.2f %10.2f\n", s.name, medians[i], medians[i]/medians[base])
	}
}

// bwrapArgs is bwrap with the namespaces and mounts that a default run has.
func bwrapArgs(w string, network bool) []string {
	a := []string{"bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent",
		"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--ro-bind", "/var", "/var", "--ro-bind", "/sys", "/sys"}
	if !network {
		a = append(a, "--unshare-net")
	}
	for _, l := range []string{"bin", "sbin", "lib", "lib64"} {
		if to, err := os.Readlink("/" + l); err == nil {
			a = append(a, "--symlink", to, "/"+l)
		}
	}
	if _, err := os.Stat("/opt"); err == nil {
		a = append(a, "--ro-bind", "/opt", "/opt")
	}
	return append(a, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--bind", w, w, "--chdir", w)
}

func (b bench) start() error {
	w := filepath.Join(b.top, "w")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	empty := filepath.Join(b.top, "empty")
	src := filepath.Join(b.top, "empty.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", empty, src)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	same, err := sameByBwrap(w)
	if err != nil {
		return err
	}
	of := func(name string, argv ...string) subject { return subject{name: name, argv: argv, dir: w} }
	run := func(name string, flags ...string) subject {
		return of(name, append(append([]string{b.tether, "run", "--no-network"}, flags...), "--", "true")...)
	}
	subjects := []subject{same,
		of("bwrap true, a dozen mounts, no filter", append(bwrapArgs(w, false), "true")...),
		of("true", "true"),
		of("an empty Go program", empty),
		of("tether version", b.tether, "version"),
		run("tether run, native", "--provider", "native"),
		run("tether run, native, read-only", "--provider", "native", "-p", "read-only"),
	}
	if os.Geteuid() != 0 {
		subjects = append(subjects, run("tether run, bwrap", "--provider", "bwrap"))
	}
	m, err := inTurns(40, subjects)
	if err != nil {
		return err
	}
	table("start of true, cold", subjects, m, 0)
	return nil
}

func (b bench) masks() error {
	fmt.Printf("\n%-10s %14s %14s %14s %10s\n", "masks", "native ms", "bwrap ms", "per mask us", "ratio")
	var zero float64
	for _, n := range []int{0, 100, 1000, 2900, 10000} {
		w := filepath.Join(b.top, "masks"+strconv.Itoa(n))
		if err := os.MkdirAll(filepath.Join(w, "d"), 0o755); err != nil {
			return err
		}
		args := bwrapArgs(w, false)
		for i := range n {
			path := filepath.Join(w, "d", ".env."+strconv.Itoa(i))
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				return err
			}
			args = append(args, "--ro-bind", "/dev/null", path)
		}
		native := []subject{{name: "native", argv: []string{b.tether, "run", "--provider", "native", "--no-network", "--", "true"}, dir: w}}
		m, err := inTurns(9, native)
		if err != nil {
			return err
		}
		if n == 0 {
			zero = m[0]
		}
		per := 0.0
		if n > 0 {
			per = (m[0] - zero) * 1000 / float64(n)
		}
		if n > 2900 {
			fmt.Printf("%-10d %14.1f %14s %14.1f %10s\n", n, m[0], "refuses", per, "")
			continue
		}
		list := filepath.Join(b.top, "args")
		if err := os.WriteFile(list, []byte(strings.Join(args[1:], "\x00")+"\x00"), 0o600); err != nil {
			return err
		}
		rounds := 5
		if n > 1000 {
			rounds = 1
		}
		begin := time.Now()
		for range rounds {
			if out, err := exec.Command("sh", "-c", "exec bwrap --args 3 true 3<"+list).CombinedOutput(); err != nil {
				return fmt.Errorf("bwrap: %w: %s", err, out)
			}
		}
		other := float64(time.Since(begin).Microseconds()) / 1000 / float64(rounds)
		fmt.Printf("%-10d %14.1f %14.1f %14.1f %10.2f\n", n, m[0], other, per, other/m[0])
	}
	return nil
}

// tree makes the big workspace, once: 100,000 files in 10,000 folders.
func (b bench) tree() (string, error) {
	w := filepath.Join(b.top, "tree")
	if _, err := os.Stat(w); err == nil {
		return w, nil
	}
	for d := range 10000 {
		dir := filepath.Join(w, "d"+strconv.Itoa(d/100), "e"+strconv.Itoa(d%100))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
		for f := range 10 {
			if err := os.WriteFile(filepath.Join(dir, "file"+strconv.Itoa(f)+".go"), nil, 0o644); err != nil {
				return "", err
			}
		}
	}
	return w, nil
}

// walk compares a whole run in a big workspace with find over the same.
func (b bench) walk() error {
	w, err := b.tree()
	if err != nil {
		return err
	}
	small := filepath.Join(b.top, "w")
	if err := os.MkdirAll(small, 0o755); err != nil {
		return err
	}
	// Folders younger than two seconds are not remembered.
	time.Sleep(3 * time.Second)
	tether := func(name, dir string) subject {
		return subject{name: name, argv: []string{b.tether, "run", "--provider", "native", "--no-network", "--", "true"}, dir: dir}
	}
	subjects := []subject{
		{name: "find over 100,000 files in 10,000 folders", argv: []string{"sh", "-c", "find . >/dev/null"}, dir: w},
		tether("tether run -- true there", w),
		tether("tether run -- true in an empty workspace", small),
	}
	m, err := inTurns(9, subjects)
	if err != nil {
		return err
	}
	table("finding the secrets, again", subjects, m, 0)
	fmt.Printf("  the search and the look afterwards cost %.1f ms, %.2f of find\n", m[1]-m[2], (m[1]-m[2])/m[0])
	return nil
}

// work compares real work inside with the same outside.
func (b bench) work() error {
	w := filepath.Join(b.top, "work")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	var src strings.Builder
	src.WriteString("#include <stdio.h>\n")
	for i := range 3000 {
		fmt.Fprintf(&src, "int f%d(int x) { for (int i = 0; i < x; i++) x ^= i * %d; return x; }\n", i, i+3)
	}
	src.WriteString("int main(void) { return 0; }\n")
	if err := os.WriteFile(filepath.Join(w, "a.c"), []byte(src.String()), 0o644); err != nil {
		return err
	}
	build := []string{"gcc", "-O1", "-o", "a.out", "a.c"}
	subjects := []subject{
		{name: "a C build outside", argv: build, dir: w},
		{name: "the same inside", argv: append([]string{b.tether, "run", "--no-network", "--"}, build...), dir: w},
	}
	m, err := inTurns(5, subjects)
	if err != nil {
		return err
	}
	table("work inside: C", subjects, m, 0)

	if w, err = b.goProgram(); err != nil {
		return err
	}
	// With all that it imports, whatever a cache holds: inside it is another one.
	build = []string{"go", "build", "-a", "-o", "a.out", "."}
	subjects = []subject{
		{name: "a Go build outside", argv: build, dir: w},
		{name: "the same inside", argv: append([]string{b.tether, "run", "--no-network", "--"}, build...), dir: w},
	}
	if m, err = inTurns(5, subjects); err != nil {
		return err
	}
	table("work inside: Go", subjects, m, 0)
	return nil
}

// goProgram is a workspace with a program that imports something.
func (b bench) goProgram() (string, error) {
	w := filepath.Join(b.top, "gowork")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return "", err
	}
	for name, text := range map[string]string{"go.mod": "module example.com/work\n\ngo 1.21\n",
		"main.go": "package main\n\nimport (\n\t\"encoding/json\"\n\t\"fmt\"\n)\n\nfunc main() { b, _ := json.Marshal(1); fmt.Println(b) }\n"} {
		if err := os.WriteFile(filepath.Join(w, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return w, nil
}
