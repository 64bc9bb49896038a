package factlog

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fact"
)

const attendHelper = "TETHER_TEST_ATTEND"

// TestAttend: a part of a session is alive exactly as long as its process, or
// until it closes.
func TestAttend(t *testing.T) {
	if dir := os.Getenv(attendHelper); dir != "" {
		store, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := store.Session("s")
		if err != nil {
			t.Fatal(err)
		}
		part, err := s.Attend()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(fact.Fact{Kind: fact.Note, ID: part}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // until it is killed
		return
	}
	dir := t.TempDir() + "/state"
	store, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	attended := func(want bool) {
		t.Helper()
		if got, err := store.Attended("s"); err != nil || got != want {
			t.Errorf("attended: got %v, %v, want %v", got, err, want)
		}
	}
	attended(false)
	s, err := store.Session("s")
	if err != nil {
		t.Fatal(err)
	}
	attended(false) // to look is not to take part
	one, err := s.Attend()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attend(); err == nil {
		t.Error("one part took part twice")
	}
	again, err := store.Session("s")
	if err != nil {
		t.Fatal(err)
	}
	two, err := again.Attend()
	if err != nil || one == two {
		t.Fatalf("got %q, %q, %v", one, two, err)
	}
	for _, asks := range []*Session{s, again} {
		for _, part := range []string{one, two} {
			if !asks.Alive(part) {
				t.Errorf("%s is not alive", part)
			}
		}
		for _, part := range []string{"", "zzz", "-1", "not base 36!", "99999999999999999999"} {
			if asks.Alive(part) {
				t.Errorf("%q is alive", part)
			}
		}
	}
	attended(true)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Alive(two) || !s.Alive(one) {
		t.Error("a part that was closed is alive, or took the other along")
	}
	// Another process, killed.
	cmd := exec.Command(os.Args[0], "-test.run=^TestAttend$")
	cmd.Env = append(os.Environ(), attendHelper+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	part := ""
	for n := 0; part == "" && n < 1000; n++ {
		time.Sleep(10 * time.Millisecond)
		for r, err := range store.Read("s") {
			if err == nil && len(r.Facts) > 0 {
				part = r.Facts[0].ID
			}
		}
	}
	if part == "" || !s.Alive(part) {
		t.Errorf("%q is not alive", part)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if s.Alive(part) {
		t.Error("the dead is alive")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	attended(false)
	if err := store.Remove("s"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir + "/sessions"); err != nil || len(left) > 0 {
		t.Errorf("after Remove: got %v, %v", left, err)
	}
}

// TestNewID: made-up names are valid and differ.
func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID(time.Unix(1e9, 0))
		if !ValidID(id) || seen[id] {
			t.Fatalf("got %q", id)
		}
		seen[id] = true
	}
}
