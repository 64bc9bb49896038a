package secrets

import (
	"fmt"

	"github.com/tether-sandbox/tether/policy"
)

// RulesOf returns the built-in rules of policy with the patterns that p adds.
// A pattern of p.Hidden hides directories too, with all that they hold; one of
// p.Locked locks both. p.AllowConfig is left to the caller: it lifts a lock,
// and what is locked is only listed here.
func RulesOf(p policy.Protect) (Rules, error) {
	hidden, err := policy.CompilePatterns(p.Hidden)
	if err != nil {
		return Rules{}, err
	}
	locked, err := policy.CompilePatterns(p.Locked)
	if err != nil {
		return Rules{}, err
	}
	r := Rules{Name: builtin, Key: fmt.Sprintf("builtin %q %q", p.Hidden, p.Locked)}
	if len(p.Hidden) > 0 || len(p.Locked) > 0 {
		r.Name = func(name []byte, t Type) Mark {
			m := builtin(name, t)
			if hidden.MatchName(name) {
				m |= HiddenAny
			}
			if locked.MatchName(name) {
				m |= Locked
			}
			return m
		}
	}
	if hidden.HasPaths() || locked.HasPaths() {
		r.Path = func(rel []byte, _ Type) (m Mark) {
			if hidden.MatchPath(rel) {
				m |= HiddenAny
			}
			if locked.MatchPath(rel) {
				m |= Locked
			}
			return m
		}
	}
	return r, nil
}

// builtin marks a name by policy's built-in rules. An unknown class is hidden.
func builtin(name []byte, _ Type) (m Mark) {
	switch policy.HiddenName(name) {
	case policy.NotHidden:
	case policy.HiddenByContent:
		m = HiddenByContent
	case policy.HiddenFile:
		m = Hidden
	default:
		m = HiddenAny
	}
	if policy.LockedName(name) {
		m |= Locked
	}
	return m
}
