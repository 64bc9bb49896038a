//go:build linux

package tether_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// project makes a folder to work in, with a secret.
func project() (dir string, done func()) {
	dir, err := os.MkdirTemp("", "project-")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("TOKEN=very-secret\n"), 0o600); err != nil {
		log.Fatal(err)
	}
	return dir, func() { os.RemoveAll(dir) }
}

// A program that embeds Tether calls Inner first of all in main; here, TestMain
// does. Then it opens a session and runs commands in it.
func Example() {
	dir, done := project()
	defer done()
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline

	s, err := tether.Open(context.Background(), tether.Options{Policy: pol})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.Run(context.Background(), tether.Command{Args: []string{"sh", "-c", "echo made > note; cat .env"}})
	if err != nil {
		log.Fatal(err) // nothing of the command ran
	}
	fmt.Println("exit", res.Exit)
	fmt.Println("overall", res.Report.Overall)
	fmt.Println("the secret was seen:", strings.Contains(res.Stdout+res.Stderr, "very-secret"))
	note, _ := os.ReadFile(filepath.Join(dir, "note"))
	fmt.Print(string(note))
	// Output:
	// exit 1
	// overall Complete
	// the secret was seen: false
	// made
}

// An error is a *fault.Error with a stable code; a program branches on that.
func ExampleOpen() {
	_, err := tether.Open(context.Background(), tether.Options{Policy: policy.Policy{Workspace: "/home/u/project"}})
	fmt.Println(fault.CodeOf(err))
	fmt.Println(fault.HintOf(err))
	// Output:
	// POLICY_INVALID
	// set profile to read-only, workspace-write or full-access
}

// A command that fails is a result.
func ExampleSession_Run() {
	dir, done := project()
	defer done()
	s, err := tether.Open(context.Background(), tether.Options{Policy: policy.Default(dir)})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, c := range []tether.Command{
		{Args: []string{"sh", "-c", "exit 3"}},
		{Shell: "kill -TERM $$"},
		{Args: []string{"no-such-program"}},
	} {
		res, err := s.Run(context.Background(), c)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(res.Outcome, res.Exit)
	}
	// Output:
	// exited 3
	// signaled 143
	// not-found 127
}

// Explain says what would hold for a command and runs nothing.
func ExampleSession_Explain() {
	dir, done := project()
	defer done()
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline
	s, err := tether.Open(context.Background(), tether.Options{Policy: pol})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	e, err := s.Explain(context.Background(), tether.Command{Args: []string{"make", "test"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Profile, "network", e.Network)
	for _, h := range e.Hidden {
		if strings.Contains(h, ".env") {
			fmt.Println("hidden:", filepath.Base(strings.Fields(h)[0]))
		}
	}
	for _, g := range e.Report.Grades[:2] {
		fmt.Println(g.Guarantee, g.Grade)
	}
	// Output:
	// workspace-write network none
	// hidden: .env
	// read Complete
	// write Complete
}

// approve is an approver: here, somebody who allows everything once.
type approve struct{}

func (approve) Approve(_ context.Context, q tether.Question) (tether.Answer, error) {
	fmt.Println("asked to run", tether.CommandLine(q.Grant.Command), "because", q.Why)
	return tether.Answer{Scope: fact.Once, By: fact.Person}, nil
}

// A recorded session tells afterwards what was allowed and done. What needs an
// approval is put to the approver.
func ExampleOptions_session() {
	dir, done := project()
	defer done()
	pol := policy.Default(dir)
	pol.Profile, pol.Network.Mode = policy.ReadOnly, policy.Offline

	id := tether.NewSessionID()
	s, err := tether.Open(context.Background(), tether.Options{Policy: pol, Session: id, Approver: approve{}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := s.Run(context.Background(), tether.Command{Args: []string{"touch", "note"}, Why: "to keep a note"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the kernel still stops the write:", res.Exit != 0)
	s.Close()

	store, err := tether.OpenSessions(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	for r, err := range store.Facts(id) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Fact.Kind)
	}
	// Output:
	// asked to run touch note because to keep a note
	// the kernel still stops the write: true
	// session/start
	// permission/preset
	// ask
	// grant
	// command/intent
	// command/outcome
}

// A child has what of its policy lies within what its parent has at the moment.
func ExampleSession_Child() {
	dir, done := project()
	defer done()
	pol := policy.Default(dir)
	pol.Network.Mode = policy.Offline
	s, err := tether.Open(context.Background(), tether.Options{Policy: pol})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	want := policy.Default(dir) // with the host's network
	want.Profile = policy.ReadOnly
	child, err := s.Child(context.Background(), want)
	if err != nil {
		log.Fatal(err)
	}
	defer child.Close()
	fmt.Println(child.Policy().Profile, child.Policy().Network.Mode)
	// Output: read-only none
}
