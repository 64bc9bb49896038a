package local

import (
	"os"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// ownJail is the provider of this system that is tried first.
const ownJail = enforce.Native

// Jails are the providers of this system, in the order of trying them.
func Jails() []enforce.Kind { return []enforce.Kind{enforce.Native, enforce.Bwrap, enforce.Landlock} }

// runFolder is none: what is private to a run exists inside alone.
func runFolder() (string, error) { return "", nil }

// accounts is the account database, as passwd(5) has it.
func accounts() (string, error) {
	raw, err := os.ReadFile(plan.Accounts)
	return string(raw), err
}
