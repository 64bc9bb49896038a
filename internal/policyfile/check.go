package policyfile

import "github.com/tether-sandbox/tether/policy"

// Check returns what a file comes to on top of the built-in policy, or every
// error that it has by itself, at most 20: those of [Parse], or the
// contradiction with the built-in policy. Whether it would narrow or widen is
// not judged.
func Check(name string, content []byte) (Effective, []error) {
	changes, errs := parse(name, content)
	if len(errs) > 0 {
		return Effective{}, errs
	}
	e, err := Apply(policy.Default("/.no-workspace"), Layer{Name: name, Changes: changes, Trusted: true})
	if err != nil {
		return Effective{}, []error{err}
	}
	return e, nil
}
