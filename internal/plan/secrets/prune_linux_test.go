package secrets

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	put := func(name string, size int64, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	left := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	const day = 24 * time.Hour
	put(cacheName, 10, 400*day)
	put("folders-2-young", 10, day)
	put("folders-2-old", 10, 31*day)
	put("folders-1-anotherversion", 10, 31*day)
	put("folders-2-x.17.99", 10, 2*time.Hour)
	put("folders-2-y.17.99", 10, time.Minute)
	put("folders-2-big", keepBytes-15, 2*day)
	put("folders-2-beyond", 10, 3*day)
	outside := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "folders-2-link")); err != nil {
		t.Fatal(err)
	}
	Prune(dir, now)
	want := cacheName + " folders-2-link folders-2-y.17.99 folders-2-young pruned"
	if got := left(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// Once a day, and again when the clock was turned back.
	put("folders-2-old", 10, 31*day)
	Prune(dir, now.Add(time.Hour))
	if !strings.Contains(left(), "folders-2-old") {
		t.Error("looked through twice a day")
	}
	Prune(dir, now.Add(25*time.Hour))
	if strings.Contains(left(), "folders-2-old") {
		t.Error("the day after: not looked through")
	}
	for i := range keepFiles + 5 {
		put("folders-2-n"+strings.Repeat("x", i%9)+time.Duration(i).String(), 1, time.Duration(i)*time.Second)
	}
	Prune(dir, now.Add(-25*time.Hour))
	if n := strings.Count(left(), "folders-2-n"); n < keepFiles-5 || n > keepFiles {
		t.Errorf("got %d files, want about %d", n, keepFiles)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	// A folder that others can write is left alone.
	put("folders-2-old", 10, 31*day)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	Prune(dir, now.Add(80*day))
	if !strings.Contains(left(), "folders-2-old") {
		t.Error("a folder that others can write was pruned")
	}
}

// What every run pays.
func BenchmarkPruneNothingToDo(b *testing.B) {
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	Prune(dir, time.Now())
	for b.Loop() {
		Prune(dir, time.Now())
	}
}
