//go:build benchwall

package inner

import (
	"errors"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
)

// measuring is set by the linker for bench alone. What is built by the tag and
// nothing else starts no command.
var measuring string

const filtered = "0"

func planWall(*enforce.Order) (landlock.Ruleset, func(), error) {
	return landlock.Ruleset{}, func() {}, nil
}

// raiseWall raises none: bench takes the difference.
func raiseWall(landlock.Ruleset, []seccomp.Insn) (int, error) {
	if measuring != "only" {
		return -1, &stage{"seccomp", errors.New("this program was built to be measured, without its second wall")}
	}
	return -1, nil
}
