package policyfile

import "github.com/tether-sandbox/tether/policy"

// Check returns every error that a file has by itself, at most 20: those of
// [Parse], or the contradiction with the built-in policy that it is put on.
// Whether it would narrow or widen is not judged.
func Check(name string, content []byte) []error {
	changes, errs := parse(name, content)
	if len(errs) > 0 {
		return errs
	}
	if _, err := Apply(policy.Default("/.no-workspace"), Layer{Name: name, Changes: changes, Trusted: true}); err != nil {
		return []error{err}
	}
	return nil
}
