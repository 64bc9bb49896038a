// Package filegate is the only door to the files of a workspace for tools that
// run inside Tether's own process: view, write, replace, list and search under
// the same plan that commands run under.
//
// A path is walked name by name from a folder that was opened when the gate
// was, and every name, link target and mount is judged on the way, by the
// handle that was opened and never by a path that is looked up again. What is
// read or replaced afterwards is compared with what was judged. So a symbolic
// link, "..", a rename, a swap during the call, a magic link, a FIFO or a
// device leads nowhere, and nothing that is opened can block.
//
// The gate shows the workspace, the roots that the policy adds and, as /tmp, the
// folder in [Options]; the system's folders and toolchains are for commands.
// Under full-access it ends at the workspace (and /tmp) all the same, and only
// Tether's own files and names that mean .git elsewhere stay protected. In
// /tmp, which is private to the run, no name is protected, as for commands.
//
// Where a command may do more than the gate, on purpose:
//
//   - A new file with a hidden name (.env, id_rsa, a *.pem with anything but
//     public content) is refused: nobody could view or change it afterwards.
//   - A new file or folder with a locked name (.vscode, .mcp.json, ...) is
//     refused like a present one; for commands only .tether is.
//   - Everything below .git, or in a folder that git takes for a repository, is
//     refused for writing: git's own commands write there.
//   - Names that some file system takes for .git (.GIT, ".git.", git~1, with
//     invisible characters) are refused for reading and writing.
//   - Another name (hard link) of a locked file is locked.
//   - A branch or log of git with a name like x.key is hidden, and so is a *.pem
//     or *.key that the command could write and not read.
//
// In all else it opens, for reading and for writing, what a command can open;
// as root, too, where it works with the rights of the workspace's owner and
// without a capability (one call after the other). What the plan hides or locks
// stays so until a new plan is made.
//
// Not promised: hard links to a hidden file that were made after the plan (make
// a new plan for every turn); a consistent view of a file that somebody writes
// at the same moment; that a written file outlives a power failure (nothing is
// synced); what FUSE and network file systems do while they are asked.
package filegate

import (
	"sync"
	"time"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// Options say what a gate needs besides the plan.
type Options struct {
	// Tmp is the folder of the host that commands see as /tmp. Empty: the gate
	// has no /tmp.
	Tmp string
	// Own are paths of Tether's own, besides the plan's state folder and this
	// program, that stay closed: its configuration.
	Own []string
}

// Gate opens files for in-process tools. It is safe for concurrent use.
type Gate struct {
	plan   *plan.Plan
	layout layout
	rules  *rules
	as     *actor    // runs as the command would; nil: the caller already does
	born   time.Time // when it was opened

	mu     sync.RWMutex
	roots  []root
	closed bool
}

// root is a folder, or one file, that was opened when the gate was.
type root struct {
	path     string // as commands see it
	fd       int    // O_PATH; of a file, its folder's
	name     string // of a file, its name in that folder
	writable bool
	tmp      bool
	inner    bool    // it lies in another root
	base     verdict // what the folders above it say
	id       fileID
}

// Bounds. None is the policy's: they keep one call small.
const (
	// MaxFile is the largest file that is edited; of a larger one only the
	// beginning is viewed.
	MaxFile = 16 << 20
	// MaxText is what a view returns at most.
	MaxText = 256 << 10
	// MaxEntries is how many entries a list returns at most.
	MaxEntries = 2000
	// MaxMatches is how many matches a search returns at most.
	MaxMatches = 1000
)

// limit is the size of the largest file that may be written.
func (g *Gate) limit() int64 {
	if l := g.plan.Policy.Limits.FileBytes; l > 0 {
		return min(l, 2*MaxFile)
	}
	return 2 * MaxFile
}

func (g *Gate) full() bool { return g.plan.Policy.Profile == policy.FullAccess }

// enter begins a call and runs it as the command would run.
func (g *Gate) enter(call func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return fault.New(fault.Internal, "the file gate is closed")
	}
	if g.as == nil {
		return call()
	}
	return g.as.do(call)
}
