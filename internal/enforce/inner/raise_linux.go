//go:build !benchwall

package inner

import (
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// filtered is what the kernel must say of the calling thread's system call
// filter.
const filtered = "2"

// planWall looks for what the second wall leaves open, while that may be looked
// for; done closes what it opened.
func planWall(order *enforce.Order) (wall landlock.Ruleset, done func(), err error) {
	return secondWall(order)
}

// raiseWall puts the second wall round the calling thread: what narrows the kernel
// for a command that namespaces, mounts and dropped privileges confine already. The
// descriptor is the filter's listener, or negative.
func raiseWall(wall landlock.Ruleset, filter []seccomp.Insn) (int, error) {
	if !wall.Empty() {
		if err := landlock.Restrict(wall); err != nil {
			return -1, &stage{"landlock", err}
		}
	}
	listener, err := seccomp.Listen(filter)
	if err != nil {
		return -1, &stage{"seccomp", err}
	}
	return listener, nil
}
