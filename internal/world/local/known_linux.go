package local

import (
	"context"
	"os"
	"strings"

	"github.com/tether-sandbox/tether/internal/mountinfo"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/internal/watch"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/policy"
)

// known is what the search of a plan may take as known, until done is called; nil
// where no watch stands for it. A plan for no run, such as for an edit, borrows the
// watch that stands for the next one.
func (at World) known(pol policy.Policy, early world.Warm) (k *secrets.Known, done func()) {
	done = func() {}
	var s *standing
	if w, ok := early.(*warm); ok {
		s = w.watch
	} else if s = at.Keep.takeWatch(pol); s != nil {
		done = func() { at.Keep.putWatch(s) }
	}
	if s == nil || !s.current() {
		return nil, done
	}
	return s.search, done
}

// learn fills what is known while nobody waits for it. What it does not come to
// know, the next search finds.
func (s *standing) learn(pol policy.Policy) {
	rules, err := secrets.RulesOf(pol.Protect)
	if err != nil || !s.current() {
		return
	}
	ctx := context.Background()
	for _, root := range s.roots {
		_, _ = s.search.Walk(ctx, root, rules)
		if pol.Profile == policy.WorkspaceWrite {
			_, _ = s.look.Walk(ctx, root, laterRules())
		}
	}
}

// current makes what is known true: it reads the watch up to now, and forgets all
// of it where events were lost or something was mounted. It says whether anything
// may be taken as known.
func (s *standing) current() bool {
	if s.lost {
		return false
	}
	mounts, read := s.around()
	if err := s.catchUp(func(watch.Event) {}); err != nil {
		s.lost = true // what was read and not followed is not watched
		return false
	}
	touched, all := s.tree.Touched()
	if all || !read || mounts != s.mounts {
		s.doubt()
		s.mounts = mounts
		return read
	}
	s.search.Touch(touched)
	s.look.Touch(touched)
	return true
}

// around is what is mounted in the roots and above them: a mount is no change in
// the folder that it covers.
func (s *standing) around() (lines string, ok bool) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", false
	}
	var out strings.Builder
	for _, root := range s.roots {
		out.WriteString(mountinfo.Around(string(table), root))
	}
	return out.String(), true
}

// doubt forgets what is known.
func (s *standing) doubt() {
	if s != nil {
		s.search.Forget()
		s.look.Forget()
	}
}

// walk is secrets.Walk for the look after a command, with what is known. It is
// called when nobody else reads the watch.
func (s *standing) walk(ctx context.Context, root string, rules secrets.Rules) (secrets.Found, error) {
	if !s.current() {
		return secrets.Walk(ctx, root, rules)
	}
	return s.look.Walk(ctx, root, rules)
}
