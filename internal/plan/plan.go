// Package plan pins a policy to one machine: canonical roots, the folders of
// the system that are shown, protected files that really exist, environment.
// It is resolved once, where the files are, and read by all that follows.
// Providers translate a plan; they decide nothing.
package plan

import (
	"errors"
	"path/filepath"

	"github.com/tether-sandbox/tether/internal/plan/gitmeta"
	"github.com/tether-sandbox/tether/internal/plan/secrets"
	"github.com/tether-sandbox/tether/policy"
)

// ErrChanged says that the workspace changed between the search and the start
// in a way that matters: something that must be hidden, locked or shown is no
// longer where it was. A plan made anew may do.
var ErrChanged = errors.New("the workspace changed while the sandbox was built")

// Private is where Tether's own files for the command lie, inside.
const Private = "/run/tether"

// Plan is a policy pinned to this machine. It is read-only once resolved.
type Plan struct {
	Policy policy.Policy
	// Workspace is the canonical workspace; Dir the canonical folder that the
	// command starts in, inside one of the roots.
	Workspace Root
	Dir       string
	// Views are the folders and files that are shown, parents before children.
	Views []View
	// Covers are folders inside a view that are hidden behind an empty one.
	Covers []string
	// Links are symbolic links of the scaffolding, such as /bin -> usr/bin.
	Links []Link
	// Dirs are folders, and with no final slash empty files, that are made in
	// a private place.
	Dirs []string
	// Files are small read-only files that only exist inside.
	Files []File
	// Scratch are private folders in memory that the command may write.
	Scratch []Scratch
	// ShmBytes is the most that /dev/shm holds; zero is the kernel's limit, half
	// of the memory.
	ShmBytes int64
	// Locks are paths that stay readable and cannot be changed.
	Locks []Lock
	// Own are Tether's own files and folders, of which the command may change
	// none. Locks and masks hold those that it could.
	Own []string
	// Held are places that belong to what lies there now. No lock keeps a folder
	// around one from being moved, so they are looked at again afterwards.
	Held []Held
	// Masks hide files, wherever a view shows them.
	Masks []secrets.Mask
	// Sockets are socket files of the host inside a view; they are hidden.
	Sockets []string
	// Env is the whole environment of the command.
	Env []string
	// Scrubbed are the caller's variables that are not simply handed on: that
	// do not pass, pass in part, or pass because the policy names them.
	Scrubbed []string
	// Repos is what is known of git in reach.
	Repos []gitmeta.Repo
	// GitSearch is what a search for them starts from, without a workspace.
	GitSearch gitmeta.Search
	// GitConfig is where the filtered copy of the user's global git file lies
	// inside; Cache, User and Home are the private folders. Empty: none.
	GitConfig, Cache, User, Home string
	// Tmp is the command's folder for temporary files.
	Tmp string
	// InPlace says that nothing is shown at another path than its own: the world
	// makes Scratch, Dirs and Files in the host's file system, for this run.
	InPlace bool
	// GoModules and MavenRepository are the caller's own module caches, where
	// they are shown read-only.
	GoModules, MavenRepository string
	// CacheDir is the host's side of Cache; StateDir is Tether's own folder.
	CacheDir, StateDir string
	// Path are folders of toolchains that belong on PATH.
	Path []string
	// Found is what the search for secrets saw.
	Found secrets.Result
	// Identity says under which ids the command runs.
	Identity Identity
	// Notes are things worth telling, each one line.
	Notes []Note
	// Widened names what reached the policy from the environment.
	Widened []string

	host Host // what it was resolved for
}

// VerdictDir is where searches for secrets remember what they found.
func (p *Plan) VerdictDir() string { return filepath.Join(p.StateDir, "verdicts") }

// Root is a canonical folder with its identity.
type Root struct {
	Path     string
	Dev, Ino uint64
	// UID and GID own it on the host.
	UID, GID uint32
}

// Origin says why something is shown.
type Origin int

// The origins of a view.
const (
	System Origin = iota
	Workspace
	Added
	Toolchain
	Cache
	Git
	// Tmp is a session's /tmp.
	Tmp
)

// View is a folder or file of the host that the command sees at the same path,
// or at At when that is set.
type View struct {
	Root
	At       string
	Origin   Origin
	Writable bool
	File     bool
	// NoExec forbids to start programs from it.
	NoExec bool
}

// Target is the path inside.
func (v View) Target() string {
	if v.At != "" {
		return v.At
	}
	return v.Path
}

// Link is a symbolic link of the scaffolding.
type Link struct{ Path, To string }

// File is a small file that only exists inside, always read-only.
type File struct {
	Path    string
	Content []byte
}

// Scratch is a private folder in memory.
type Scratch struct {
	Path string
	Mode uint32
	// Bytes is the most that it holds; zero is the built-in limit.
	Bytes    int64
	Writable bool
}

// Lock keeps a path from being changed. Content, when not nil, is shown in
// place of a file's own bytes.
type Lock struct {
	Path string
	// Dev and Ino are what lies there.
	Dev, Ino uint64
	Content  []byte
	// MTime, in nanoseconds, is the time that a file with Content shows.
	MTime int64
	// Writable pins the path against renaming without making it read-only.
	Writable bool
	Why      string
}

// Held is a place and what lies there: Dev and Ino, and of a link what it says.
// Where nothing lies, all are zero.
type Held struct {
	Path     string
	Dev, Ino uint64
	Link     string
}

// Identity says under which ids the command runs.
type Identity struct {
	// UID and GID are what the command sees; HostUID and HostGID what the host
	// sees. They differ only for Idmapped.
	UID, GID         uint32
	HostUID, HostGID uint32
	// Root means that the caller is real root. The command then runs as the
	// workspace's owner; where that is root itself, as an otherwise unused id
	// of the host (Idmapped), so that root-only files stay unreadable.
	Root, Idmapped bool
}

// Note is one thing worth telling, with the one thing to do about it.
type Note struct {
	What, Hint string
}

// Host is what a plan needs to know of the caller and the machine, besides the
// file system itself.
type Host struct {
	// UID and GID are the caller's; SudoUser names who became root by sudo.
	UID, GID uint32
	SudoUser string
	// Home is the caller's home by the account database, User the name.
	Home, User string
	// Homes are all homes that stay closed.
	Homes []string
	// StateDir is Tether's own folder for this user; it holds caches,
	// verdicts and quarantine. ConfigDir holds the user's policy.
	StateDir, ConfigDir string
	// Executable is this program's own file, Called the absolute path that it
	// was called by, which may lead there through links.
	Executable, Called string
	// Environ is the caller's environment.
	Environ []string
	// Known is what earlier searches for the same policy found, true by now; nil
	// for nothing.
	Known *secrets.Known
	// Run is where nothing can be shown at another path than its own (see
	// [Layout.InPlace]) a folder for Tether's own files for the command:
	// canonical, in nobody's reach, and not made yet.
	Run string
	// Layout says where the system has what; nil is this system's own.
	Layout *Layout
}
