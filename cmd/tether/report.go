package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

// reportFile is where --report goes: a name in a folder that was opened before
// the command ran.
type reportFile struct {
	dir  *os.Root
	name string
}

// openReport opens the folder of a report, before anything runs. A folder that
// the command can write is refused: by the time that the report is written, the
// name there could be a link to anywhere.
func (f *flags) openReport(pol policy.Policy) (*reportFile, error) {
	if f.report == "" {
		return nil, nil
	}
	bad := func(what string, err error) error {
		return fault.Wrap(fault.UsageInvalid, "cannot write the report "+f.report+what, err).
			WithHint("--report FILE, with FILE in a folder that is there, outside of the workspace and --allow-write, or --json")
	}
	if info, err := os.Stat(f.report); err == nil && info.IsDir() {
		return nil, bad(": it is a folder", nil)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(f.report))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return nil, bad("", reason(err))
	}
	roots := append([]string{pol.Workspace}, pol.Write...)
	for _, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil && pol.Profile != policy.ReadOnly &&
			(dir == real || strings.HasPrefix(dir, real+"/")) {
			return nil, bad(": it would lie where the command can write", nil)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, bad("", reason(err))
	}
	return &reportFile{root, filepath.Base(f.report)}, nil
}

// write writes the report and closes the folder.
func (r *reportFile) write(v any) error {
	defer r.dir.Close()
	out, err := r.dir.OpenFile(r.name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err == nil {
		if err = encode(out, v); err == nil {
			err = out.Close()
		}
	}
	if err != nil {
		return fault.Wrap(fault.OutputLost, "the command ran, and its report could not be written", reason(err))
	}
	return nil
}

// reason strips the operation and the path, which the message has.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
