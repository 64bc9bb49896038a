//go:build !linux && !darwin

package policyfile

import (
	"errors"
	"io/fs"
	"os"
	"runtime"

	"github.com/tether-sandbox/tether/fault"
)

// On other systems there is nothing yet that says who may have written a file,
// so that a file that is there is refused rather than left out.

func readUser(_, path string) ([]byte, error) { return nil, absent(path) }

func readWorkspace(_, path string) (*file, error) { return nil, absent(path) }

func absent(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return refuse("cannot read " + path)
}

func refuse(what string) error {
	return fault.New(fault.SandboxUnavailable, what+": policy files are not part of this build for "+runtime.GOOS).
		WithHint("use flags, or run tether on Linux or macOS")
}

func identify(string) (identity, error) { return identity{}, refuse("cannot trust a workspace") }

func readRecord(string) ([]byte, error) { return nil, refuse("cannot read the trust store") }
