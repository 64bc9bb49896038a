//go:build linux || darwin

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/plan"
)

// A session's /tmp lies in the state folder, which only the caller can enter:
// what commands leave there, also a set-uid file or a socket, no other user of
// the host can reach, and nothing on the host looks for programs in it. Inside,
// it is mounted without set-uid and without devices.
const (
	privateFolder = "private"
	tmpFolder     = "tmp"
)

// rootsPrivate is where root's private folders lie: its state folder is closed to
// the owners of workspaces.
const rootsPrivate = "/run/tether-runs"

// TmpFolder is the host's side of the /tmp that world.Options name.
func TmpFolder(state, name string) string {
	return filepath.Join(state, privateFolder, name, tmpFolder)
}

func showTmp(p *plan.Plan, host plan.Host, name string, provider enforce.Kind) error {
	cannot := func(err error) error {
		return fault.Wrap(fault.SandboxUnavailable, "cannot make the session's /tmp", err).
			WithHint("make " + filepath.Dir(host.StateDir) + " writable, or set XDG_STATE_HOME")
	}
	dir := TmpFolder(host.StateDir, name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return cannot(err)
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		// Nobody else reaches it; programs inside expect the mode of a /tmp.
		err = os.Chmod(dir, 0o777|fs.ModeSticky)
		if err == nil && p.Identity.Root && !p.Identity.Idmapped {
			err = os.Lchown(dir, int(p.Identity.HostUID), int(p.Identity.HostGID))
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return cannot(err)
	}
	if err := p.ShowTmp(dir); err != nil {
		return cannot(err)
	}
	if err := roomInTmp(p); err != nil {
		return err
	}
	if p.Identity.Root && (provider == enforce.Bwrap || provider == enforce.Landlock && !p.Identity.Idmapped) {
		p.Notes = append(p.Notes, plan.Note{What: string(provider) + ", run by root, does not reach the session's /tmp: the command has one of its own",
			Hint: "--provider native, or run tether as an ordinary user"})
	}
	return nil
}

// heldPrefix begins the names of those that belong to a process, and are locked
// by it as long as it lives; a session cannot be called so.
//
// One gets that name when it is locked; before, it has another.
const (
	heldPrefix = "Held-"
	newPrefix  = "New-"
	lockName   = "lock"
)

// HoldTmp makes the folder of a /tmp that lasts until release, and takes away
// those of processes that died. It returns the name for world.Options.
func HoldTmp(state string) (name string, release func() error, err error) {
	cannot := func(err error) error {
		return fault.Wrap(fault.SandboxUnavailable, "cannot make a /tmp", err).WithHint("make " + filepath.Dir(state) + " writable, or set XDG_STATE_HOME")
	}
	top := filepath.Join(state, privateFolder)
	if err := os.MkdirAll(top, 0o700); err != nil {
		return "", nil, cannot(err)
	}
	for _, old := range Tmps(state) {
		if strings.HasPrefix(old, heldPrefix) || strings.HasPrefix(old, newPrefix) {
			_, _ = RemoveTmp(state, old) // it is tried again the next time
		}
	}
	made, err := os.MkdirTemp(top, newPrefix)
	if err != nil {
		return "", nil, cannot(err)
	}
	lock, err := os.OpenFile(filepath.Join(made, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	dir := filepath.Join(top, heldPrefix+strings.TrimPrefix(filepath.Base(made), newPrefix))
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		return "", nil, cannot(err)
	}
	return filepath.Base(dir), func() error { return errors.Join(removeTree(dir), lock.Close()) }, nil
}

// heldTmp tells whether a process that lives holds the folder. One that is being
// made may not be locked yet.
func heldTmp(dir string) bool {
	if info, err := os.Lstat(dir); err == nil && strings.HasPrefix(filepath.Base(dir), newPrefix) && time.Since(info.ModTime()) < time.Minute {
		return true
	}
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// Tmps lists the sessions that have a /tmp in the state folder.
func Tmps(state string) []string {
	entries, _ := os.ReadDir(filepath.Join(state, privateFolder)) // none, where there is no folder
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// RemoveTmp removes a session's /tmp, if it has one that no process holds, and
// returns the folder that it removed.
func RemoveTmp(state, name string) (string, error) {
	dir := filepath.Join(state, privateFolder, name)
	if _, err := os.Lstat(dir); err != nil || filepath.Base(dir) != name || (strings.HasPrefix(name, heldPrefix) || strings.HasPrefix(name, newPrefix)) && heldTmp(dir) {
		return "", nil
	}
	if err := removeTree(dir); err != nil {
		return "", fault.Wrap(fault.Internal, "cannot remove "+dir, err)
	}
	return dir, nil
}
