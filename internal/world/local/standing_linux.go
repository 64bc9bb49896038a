package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/policy"
)

// standing is a watch that stands from one run of a session to the next, so that
// nothing slips between the search and the start of a command. Between runs
// nobody reads it: the kernel keeps what happens, or says that it lost some.
type standing struct {
	key   string
	tree  *watch.Tree
	roots []string
	full  error
	lost  bool // something is not watched that should be

	// search and look are what the searches before a command and the looks after
	// one know of the roots; mounts is what was mounted around them then.
	search, look *secrets.Known
	mounts       string
}

// watchKey names what a watch stands for.
func watchKey(pol policy.Policy) string { return pol.Workspace + "\x00" + policyKey(pol) }

// watches says whether a run under a policy is watched.
func watches(pol policy.Policy, kind enforce.Kind) bool {
	return (kind == enforce.Native || kind == enforce.Bwrap || kind == enforce.Auto || kind == "") && pol.Profile != policy.FullAccess
}

// takeWatch returns the watch that stands for a policy, if there is one that is
// not in use.
func (k *Keeper) takeWatch(pol policy.Policy) *standing {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.watch
	if s == nil || s.key != watchKey(pol) {
		return nil
	}
	k.watch = nil
	return s
}

// putWatch gives a watch back.
func (k *Keeper) putWatch(s *standing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.watch != nil || s.lost {
		s.tree.Close()
		return
	}
	k.watch = s
}

// armWatch begins a watch for the runs that follow, if none stands, and does not
// wait for it. Where the system does not allow it, runs do without.
func (k *Keeper) armWatch(pol policy.Policy, kind enforce.Kind) {
	if k == nil || !watches(pol, kind) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.arming || k.watch != nil && k.watch.key == watchKey(pol) {
		return
	}
	if k.watch != nil {
		k.watch.tree.Close()
		k.watch = nil
	}
	k.arming = true
	go func() {
		s := &standing{key: watchKey(pol), roots: searchRoots(pol)}
		tree, err := watch.New()
		if err == nil {
			s.tree, s.search, s.look = tree, secrets.NewKnown(tree.Watch), secrets.NewKnown(tree.Watch)
			err = s.armAll()
		}
		if err == nil {
			s.learn(pol)
		}
		k.mu.Lock()
		k.arming = false
		k.mu.Unlock()
		if tree == nil {
			return
		}
		if err != nil {
			tree.Close()
			return
		}
		k.putWatch(s)
	}()
}

func (s *standing) armAll() error {
	for _, path := range s.roots {
		if err := s.arm(path); err != nil {
			return err
		}
	}
	return nil
}

func (s *standing) arm(path string) error {
	err := s.tree.Add(path, nil)
	if watch.Partly(err) {
		s.full, err = err, nil
	}
	return err
}

// cover watches what a plan shows and is not watched yet.
func (s *standing) cover(roots []string) error {
	for _, path := range roots {
		if slices.Contains(s.roots, path) {
			continue
		}
		if err := s.arm(path); err != nil {
			return err
		}
		s.roots = append(s.roots, path)
	}
	return nil
}

// follow watches what an event says is not watched yet.
func (s *standing) follow(e watch.Event) error {
	switch {
	case e.Lost:
		return s.armAll()
	case e.Folder && e.New:
		return s.arm(e.Path())
	}
	return nil
}

// catchUp reads what happened up to now, and watches the folders that appeared.
// seen is told of each event.
func (s *standing) catchUp(seen func(watch.Event)) error {
	for {
		events, err := s.tree.Next(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := s.follow(e); err != nil {
				return err
			}
			seen(e)
		}
	}
}

// before is asked right before a command starts whether a plan still holds: what
// happened since it was begun to be made may have brought something to hide.
func (s *standing) before(ctx context.Context, p *plan.Plan) (err error) {
	defer func() {
		// What was read and not followed is not watched: the next run does without.
		s.lost = s.lost || err != nil && !errors.Is(err, plan.ErrChanged)
	}()
	rules, err := secrets.RulesOf(p.Policy.Protect)
	if err != nil {
		return err
	}
	var w wants
	w.init(p, rules, time.Now())
	if err := s.cover(w.roots); err != nil {
		return err
	}
	hot := false
	err = s.catchUp(func(e watch.Event) {
		masks, more := w.judge(ctx, e)
		hot = hot || more || len(masks) > 0
	})
	if err == nil && hot {
		err = plan.ErrChanged
	}
	return err
}
