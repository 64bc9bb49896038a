package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/internal/factlog"
)

// log measures what it costs that a command is recorded: a run in a session
// beside one that is not, and how many records a second reach the disk, each
// one durable, beside the disk's own word on as many bytes.
func (b bench) log() error {
	w := filepath.Join(b.top, "log")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	run := func(more ...string) []string {
		return append(append([]string{b.tether, "run", "--no-network"}, more...), "--", "true")
	}
	subjects := []subject{
		{name: "tether run", argv: run(), dir: w},
		{name: "tether run --session, one that goes on", argv: run("--session", "bench"), dir: w},
		{name: "tether run --session, a new one", argv: run("--session", "new"), dir: w},
	}
	os.Setenv("XDG_STATE_HOME", filepath.Join(b.top, "state"))
	defer os.Unsetenv("XDG_STATE_HOME")
	m, err := inTurns(40, subjects)
	if err != nil {
		return err
	}
	table("recorded", subjects, m, 0)
	return b.appends(filepath.Join(b.top, "store"))
}

func (b bench) appends(dir string) error {
	const n = 500
	store, err := factlog.Open(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := store.Session("bench")
	if err != nil {
		return err
	}
	defer s.Close()
	raw, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return err
	}
	defer raw.Close()
	f := fact.Fact{Kind: fact.Intent, ID: "a.1", What: "go test ./...", By: fact.Person}
	line := make([]byte, 250) // about what a record takes
	var ours, disk time.Duration
	for range n {
		begin := time.Now()
		if err := s.Append(f); err != nil {
			return err
		}
		ours += time.Since(begin)
		begin = time.Now()
		if _, err := raw.Write(line); err != nil {
			return err
		}
		if err := raw.Sync(); err != nil {
			return err
		}
		disk += time.Since(begin)
	}
	fmt.Printf("\n%-42s %10s %10s\n", "records, each one durable", "a second", "ratio")
	fmt.Printf("  %-40s %10.0f %10.2f\n", "write and fsync of as many bytes", n/disk.Seconds(), 1.0)
	fmt.Printf("  %-40s %10.0f %10.2f\n", "Append", n/ours.Seconds(), disk.Seconds()/ours.Seconds())
	return nil
}
