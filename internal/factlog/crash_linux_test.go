package factlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// TestMain lets the test binary be the writer that is killed: with
// FACTLOG_ROLE set it is that instead of the tests.
func TestMain(m *testing.M) {
	dir := os.Getenv("FACTLOG_DIR")
	n, _ := strconv.Atoi(os.Getenv("FACTLOG_N"))
	switch os.Getenv("FACTLOG_ROLE") {
	case "":
		os.Exit(m.Run())
	case "die":
		os.Exit(role(dieAfter(dir, n)))
	case "forever":
		os.Exit(role(forever(dir)))
	case "many":
		os.Exit(role(many(dir, n)))
	}
	os.Exit(2)
}

func role(err error) int {
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	return 0
}

func child(role, dir string, n int) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "FACTLOG_ROLE="+role, "FACTLOG_DIR="+dir, "FACTLOG_N="+strconv.Itoa(n))
	return c
}

// script is a session as it happens, record by record. Its times are fixed, so
// that it always takes the same number of bytes.
func script() [][]fact.Fact {
	list := [][]fact.Fact{
		{{Kind: fact.Start, World: "local", Workspace: "/w"}, {Kind: fact.PresetSet, Preset: fact.PresetReadOnly, Origin: fact.Settings, By: fact.System}},
		{{Kind: fact.TurnStart, ID: "t"}},
		{{Kind: fact.Intent, ID: "1", Turn: "t", What: "make"}},
		{{Kind: fact.Outcome, ID: "1", Turn: "t", Exit: 2}},
		{{Kind: fact.GrantGiven, ID: "g", By: fact.Person, Grant: &fact.Grant{Mode: "workspace-write", Scope: fact.Once}},
			{Kind: fact.Mode, Mode: "workspace-write", Uses: []string{"g"}, Turn: "t", By: fact.Person}},
		{{Kind: fact.TurnEnd, ID: "t"}},
	}
	for i, facts := range list {
		for j := range facts {
			facts[j].Time = time.Date(2026, 11, 30, 12, 0, i, 0, time.UTC)
		}
	}
	return list
}

// states are those after 0, 1, ... records of the script.
func states() []string {
	var all []fact.Fact
	list := []string{sketch(fact.State{})}
	for _, facts := range script() {
		all = append(all, facts...)
		list = append(list, sketch(fact.Fold(all)))
	}
	return list
}

// sketch is a state without its times.
func sketch(s fact.State) string {
	p := s.Permissions(fact.Default{Preset: fact.PresetReadOnly, Origin: fact.Deployment})
	return fmt.Sprint(p, s.World, s.Started, len(s.Turns), len(s.Running), len(s.Grants), s.Facts, s.Skipped)
}

// survives checks what a crash left: a prefix of the script, no shorter than
// what was acknowledged, on which a new writer goes on.
func survives(t *testing.T, what, dir string, acked int) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer s.Close()
	s.sync = func(int) error { return nil } // nobody cuts the power here
	l, err := s.Session("a")
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer l.Close()
	state, err := l.State()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	n := slices.Index(states(), sketch(state))
	if n < acked {
		t.Fatalf("%s: got %s, the state after %d records, with %d acknowledged", what, sketch(state), n, acked)
	}
	for _, facts := range script()[n:] {
		if err := l.Append(facts...); err != nil {
			t.Fatalf("%s: going on: %v", what, err)
		}
	}
	rep, err := s.Verify("a")
	if err != nil || rep.Torn != 0 || rep.Records != uint64(len(script())) {
		t.Fatalf("%s: got %+v, %v afterwards, want the whole script", what, rep, err)
	}
}

type died struct{}

// dying makes the store of a process that is gone after so many bytes.
func dying(s *Store, room int, die func()) {
	s.write = func(fd int, b []byte) (int, error) {
		if len(b) > room {
			unix.Write(fd, b[:room])
			die()
		}
		room -= len(b)
		return unix.Write(fd, b)
	}
}

// play writes the script and tells how much of it was acknowledged.
func play(s *Store, acked func(int)) error {
	l, err := s.Session("a")
	if err != nil {
		return err
	}
	defer l.Close()
	for i, facts := range script() {
		if err := l.Append(facts...); err != nil {
			return err
		}
		acked(i + 1)
	}
	return nil
}

// TestCrashAtEveryByte abandons a writer in the middle of every write, at
// every byte. A panic stands for the kill, so that it takes no time.
func TestCrashAtEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	step := 1
	if testing.Short() {
		step = 11
	}
	for room := 0; ; room += step {
		os.Remove(filepath.Join(dir, "sessions/a.log"))
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s.sync = func(int) error { return nil } // the machine goes on
		dying(s, room, func() { panic(died{}) })
		acked, done := 0, false
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(died{}) {
					panic(r)
				}
			}()
			if err := play(s, func(n int) { acked = n }); err != nil {
				t.Fatal(err)
			}
			done = true
		}()
		if done {
			if room < 500 {
				t.Fatalf("the whole script took %d bytes: nothing was tried", room)
			}
			return
		}
		s.Close()
		survives(t, fmt.Sprint(room, " bytes"), dir, acked)
	}
}

func dieAfter(dir string, room int) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	dying(s, room, func() {
		unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	})
	return play(s, func(n int) { fmt.Println(n) })
}

// TestKillAtEveryWrite kills a real writer in the middle of each record.
func TestKillAtEveryWrite(t *testing.T) {
	size := 0
	whole := open(t, filepath.Join(t.TempDir(), "s"))
	var ends []int
	whole.write = func(fd int, b []byte) (int, error) {
		ends = append(ends, size, size+len(b)/2, size+len(b)-1)
		size += len(b)
		return unix.Write(fd, b)
	}
	if err := play(whole, func(int) {}); err != nil {
		t.Fatal(err)
	}
	for _, room := range ends {
		dir := filepath.Join(t.TempDir(), "s")
		out, err := child("die", dir, room).Output()
		if ee, ok := err.(*exec.ExitError); !ok || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%d bytes: got %v, %s, want a killed writer", room, err, out)
		}
		survives(t, fmt.Sprint("killed after ", room), dir, lastAcked(out))
	}
}

func lastAcked(out []byte) int {
	lines := strings.Fields(string(out))
	if len(lines) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(lines[len(lines)-1])
	return n
}

func forever(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		l, err := s.Session("a")
		if err != nil {
			return err
		}
		if err := l.Append(note(strconv.Itoa(os.Getpid())), note(strings.Repeat("x", i%5000))); err != nil {
			return err
		}
		l.Close()
	}
}

// TestKilledAnywhere kills writers at times of nobody's choosing, from the very
// making of the store, and goes on with the same store.
func TestKilledAnywhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	var records uint64
	for range 15 {
		var group []*exec.Cmd
		for range 2 {
			c := child("forever", dir, 0)
			c.Stdout = os.Stderr
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			group = append(group, c)
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		for _, c := range group {
			c.Process.Kill()
		}
		for _, c := range group {
			if err := c.Wait(); err == nil || err.Error() != "signal: killed" {
				t.Fatalf("got %v, want a killed writer", err)
			}
		}
		s := open(t, dir)
		if err := session(t, s, "a").Append(note("survivor")); err != nil {
			t.Fatal(err)
		}
		rep, err := s.Verify("a")
		if err != nil || rep.Records <= records || rep.Torn != 0 {
			t.Fatalf("got %+v, %v, want more than %d records", rep, err, records)
		}
		records = rep.Records
	}
	if records <= 15 {
		t.Errorf("got %d records: no writer that was killed had written any", records)
	}
}

// many is one of several processes on one session.
func many(dir string, n int) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for g := range errs {
		wg.Go(func() {
			l, err := s.Session("shared")
			if err != nil {
				errs[g] = err
				return
			}
			defer l.Close()
			for i := range 15 {
				if err := l.Append(note(fmt.Sprintf("%d.%d %d", n, g, i))); err != nil {
					errs[g] = err
					return
				}
				err := l.Update(func(st fact.State) ([]fact.Fact, error) {
					return st.Spawn(fmt.Sprint("child", i), 1, fact.Change{By: fact.Model}, fact.Default{Preset: fact.PresetReadOnly})
				})
				if err != nil && fault.CodeOf(err) != fault.PolicyInvalid {
					errs[g] = err
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestManyProcesses starts them on a store that does not exist yet: they race
// for the key, the folders, the header and every record.
func TestManyProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	const writers = 6
	out := make([]strings.Builder, writers)
	var group []*exec.Cmd
	for n := range writers {
		c := child("many", dir, n)
		c.Stdout = &out[n]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		group = append(group, c)
	}
	for n, c := range group {
		if err := c.Wait(); err != nil {
			t.Errorf("writer %d: %v: %s", n, err, out[n].String())
		}
	}
	s := open(t, dir)
	next, children, seq := map[string]int{}, map[string]int{}, uint64(0)
	for rec, err := range s.Read("shared") {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; rec.Seq != seq {
			t.Fatalf("got the record %d, want %d", rec.Seq, seq)
		}
		for _, f := range rec.Facts {
			if f.Kind == fact.ChildRun {
				children[f.ID]++
				continue
			}
			who, i, _ := strings.Cut(f.What, " ")
			if i != strconv.Itoa(next[who]) {
				t.Fatalf("%s: got %s, want %d", who, i, next[who])
			}
			next[who]++
		}
	}
	if len(next) != 2*writers || len(children) != 15 {
		t.Errorf("got %d writers and %d children, want %d and 15", len(next), len(children), 2*writers)
	}
	for who, n := range next {
		if n != 15 {
			t.Errorf("%s: got %d records, want 15", who, n)
		}
	}
	for id, n := range children {
		if n != 1 {
			t.Errorf("%s was begun %d times: two processes decided at once", id, n)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	l := session(b, open(b, filepath.Join(b.TempDir(), "s")), "a")
	f := fact.Fact{Kind: fact.Intent, ID: "1", What: strings.Repeat("x", 150)}
	for b.Loop() {
		if err := l.Append(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendWithoutSync(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "s"))
	s.sync = func(int) error { return nil }
	l := session(b, s, "a")
	f := fact.Fact{Kind: fact.Note, What: strings.Repeat("x", 150)}
	for b.Loop() {
		if err := l.Append(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBegin(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "s"))
	n := 0
	for b.Loop() {
		n++
		l, err := s.Session(fmt.Sprint("s", n))
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

func BenchmarkReplay1000(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "s"))
	s.sync = func(int) error { return nil }
	l := session(b, s, "a")
	for i := range 500 {
		id := strconv.Itoa(i)
		l.Append(fact.Fact{Kind: fact.Intent, ID: id, What: strings.Repeat("x", 150)})
		l.Append(fact.Fact{Kind: fact.Outcome, ID: id})
	}
	for b.Loop() {
		l, err := s.Session("a")
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
