package policyfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tether-sandbox/tether/fault"
)

// identity says which workspace is meant: another folder that takes its path,
// or the same one elsewhere, is another workspace.
type identity struct {
	path     string
	dev, ino uint64
}

// text is the path as JSON can hold it. The name of the record holds the exact
// one.
func (id identity) text() string { return strings.ToValidUTF8(id.path, "\uFFFD") }

// record is the file of one workspace in the store: the one content that is
// trusted. Trusting another replaces it.
type record struct {
	Path   string `json:"path"`
	Dev    uint64 `json:"dev"`
	Ino    uint64 `json:"ino"`
	SHA256 string `json:"sha256"`
}

const maxRecord = 16 << 10

// errForeign: a record that somebody else could have written says nothing.
var errForeign = errors.New("it is not a plain file that only you can read and write")

func recordPath(stateDir string, id identity) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%d:%s", id.dev, id.ino, id.path))
	return filepath.Join(stateDir, "trust", hex.EncodeToString(sum[:16])+".json")
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Trust remembers in stateDir that the user trusts content, exactly this one,
// as the policy file of the workspace. It replaces what was trusted there
// before. The record is written whole or not at all, and only the user can
// read it.
func Trust(stateDir, workspace string, content []byte) error {
	id, err := identify(workspace)
	if err != nil {
		return fault.Wrap(fault.SandboxBadWorkspace, "cannot look at the workspace", err)
	}
	if stateDir == "" {
		return noStore(errors.New("there is no folder for it"))
	}
	text, err := json.Marshal(record{id.text(), id.dev, id.ino, digest(content)})
	if err != nil {
		return noStore(err)
	}
	path := recordPath(stateDir, id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return noStore(err)
	}
	if err := replace(path, append(text, '\n')); err != nil {
		return noStore(err)
	}
	return nil
}

func noStore(err error) error {
	return fault.Wrap(fault.StoreUnavailable, "cannot remember what is trusted", err).
		WithHint("make Tether's state folder writable, or set XDG_STATE_HOME")
}

// replace puts a file in the place of path in one step. os.CreateTemp makes it
// readable by nobody else.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Trusted tells whether exactly this content is trusted as the policy file of
// the workspace. With an error the answer is false: nothing is trusted on the
// word of a record that cannot be read.
func Trusted(stateDir, workspace string, content []byte) (bool, error) {
	id, err := identify(workspace)
	if err != nil {
		return false, fault.Wrap(fault.SandboxBadWorkspace, "cannot look at the workspace", err)
	}
	return trusted(stateDir, id, content)
}

func trusted(stateDir string, id identity, content []byte) (bool, error) {
	if stateDir == "" {
		return false, nil
	}
	path := recordPath(stateDir, id)
	text, err := readRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var r record
	if err == nil && len(text) > maxRecord {
		err = errors.New("it is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Path != id.text() || r.Dev != id.dev || r.Ino != id.ino || len(r.SHA256) != 2*sha256.Size) {
		err = errors.New("it is not about this workspace")
	}
	if err != nil {
		return false, fault.Wrap(fault.StoreCorrupt, "nothing is trusted here, because "+path+" cannot be used", err).
			WithHint("tether policy trust")
	}
	return r.SHA256 == digest(content), nil
}

// Untrust forgets what is trusted in the workspace. It succeeds if nothing was.
func Untrust(stateDir, workspace string) error {
	id, err := identify(workspace)
	if err != nil {
		return fault.Wrap(fault.SandboxBadWorkspace, "cannot look at the workspace", err)
	}
	if stateDir == "" {
		return nil
	}
	if err := os.Remove(recordPath(stateDir, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return noStore(err)
	}
	return nil
}
