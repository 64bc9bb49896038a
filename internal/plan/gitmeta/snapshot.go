package gitmeta

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Snapshot is the state of every watched path before a command, by path. A
// path that is not in it was absent. It survives JSON, with paths in any bytes,
// so that the next start can settle what a crash left; it holds digests of
// configuration, never values.
type Snapshot struct {
	Workspace string
	Items     map[string]Item
	// Hooks and Includes are the folders and files in the tree that the
	// configuration named before the command. What a command names itself is
	// not looked at as hooks: the naming is taken out.
	Hooks    []HookDir
	Includes []string
	// Commons are the verified common directories outside the workspace.
	Commons []string
	// Closed are folders of git's, by device and inode, that could not be read.
	Closed []string

	// dirs says which folders the git directories were, by path. It is not kept:
	// only [Early] needs it.
	dirs map[string]string
}

// HookDir is a hooks folder that configuration names.
type HookDir struct {
	Path string
	// NamesOnly: the folder also holds the repository or its worktree, so only
	// files with the names of hooks are watched.
	NamesOnly bool
}

// Finding is one thing that a command left and that would run, or help to run,
// something on the host later.
type Finding struct {
	Path string `json:"path"`
	// Kind says in a word what it is: one of the constants below, or a
	// policy.Later.
	Kind string `json:"kind"`
	What string `json:"what"`
	// Action is what was done, one of the constants below.
	Action string `json:"action"`
	// QuarantinedTo is where the file, or the original of a rewritten one, is;
	// of a removed one what is known of it. Empty: nothing was kept.
	QuarantinedTo string `json:"quarantined_to,omitempty"`
}

// The kinds of a [Finding] that are no policy.Later.
const (
	KindConfig     = "git-config"     // configuration, attributes, remotes
	KindHook       = "git-hook"       // a hook of git's
	KindPointer    = "git-pointer"    // what leads git to a repository or its objects
	KindLink       = "git-link"       // a symbolic link where git reads and writes
	KindPending    = "git-pending"    // a rebase, merge and the like that is not finished
	KindRepository = "git-repository" // a repository that was not there
	KindProgram    = "git-program"    // an ordinary file that git's configuration runs
	KindSymlink    = "symlink"        // a symbolic link that leads out of the workspace
	KindSetID      = "set-id"         // a file that lends its owner's rights
	KindClosed     = "closed-folder"  // a folder that cannot be looked through
	KindReplaced   = "replaced"       // what took the place of something locked
)

func (r Role) kind() string {
	switch r {
	case RoleLink:
		return KindLink
	case RoleHook, RoleTreeHook:
		return KindHook
	case RoleCommonDir, RoleGitDir, RoleEntry, RoleAlternates:
		return KindPointer
	case RoleTodo, RolePending:
		return KindPending
	case RoleProgram:
		return KindProgram
	}
	return KindConfig
}

// The actions of a [Finding].
const (
	// Quarantined: the file was moved away.
	Quarantined = "quarantined"
	// Rewritten: a configuration lost its new executable keys and kept the rest.
	Rewritten = "rewritten"
	// Removed: what could not be kept, or was not worth it, is gone.
	Removed = "removed"
	// Disarmed: the file is where it was, without permissions or content.
	Disarmed = "disarmed"
	// Stripped: the file is where it was, without the bits that made it dangerous.
	Stripped = "stripped"
	// Reported: an ordinary file, left where it is.
	Reported = "reported"
)

// Role says why a path is watched, and with it what is done about a change.
type Role uint8

// The roles.
const (
	RoleLink       Role = iota // a link where git looks for a file or folder of its own
	RoleConfig                 // configuration
	RoleHook                   // a file in a repository's own hooks folder
	RoleTreeHook               // a file in a hooks folder that configuration names
	RoleCommonDir              // commondir
	RoleGitDir                 // gitdir, the back-pointer
	RoleAttributes             // info/attributes
	RoleRemote                 // a file in remotes or branches
	RoleEntry                  // a .git file or link
	RoleTodo                   // the steps of a rebase in progress
	RoleAlternates             // objects/info/alternates
	RoleProgram                // a file of the tree that a key or a hook runs
	RoleTree                   // .gitattributes and .gitmodules of a worktree
	RolePending                // a file that says that git is in the middle of something
)

// Item is the state of one watched path.
type Item struct {
	Role Role `json:"role"`
	// Type is 'f' for a regular file, 'l' for a link, 'd' for a directory and
	// 'o' for anything else.
	Type byte `json:"type"`
	Exec bool `json:"exec,omitempty"` // an execute bit is set
	// Sum is the digest of a file's content or a link's target. Of what is no
	// file, or too big to read, it is the identity with size and times.
	Sum string `json:"sum"`
	// Keys are digests of a configuration's executable entries.
	Keys []string `json:"keys,omitempty"`
	// Broken says why a configuration cannot be parsed or read.
	Broken string `json:"broken,omitempty"`
	// Bad says what is wrong with the content, for roles whose content can be
	// harmless. Empty: nothing.
	Bad string `json:"bad,omitempty"`
	// Key is the configuration key that runs a RoleProgram.
	Key string `json:"key,omitempty"`

	// id is the identity of what was looked at. It is not kept: only [Early]
	// needs it.
	id string
}

// action is one thing to do; finding says it in words.
type action struct {
	finding Finding
	keep    []string // digests of executable entries that were there before
	id      string   // of what was judged, empty where nothing was
}

// compare decides what to do about everything that is new or changed. It is
// the whole policy of Settle and touches nothing.
func compare(before Snapshot, now map[string]Item) []action {
	var todo []action
	for path, item := range now {
		old, known := before.Items[path]
		if known && unchanged(old, item) {
			continue
		}
		if what, act := judge(path, item, old, known); act != "" {
			kind := item.Role.kind()
			if item.Type == 'l' && item.Role == RoleConfig {
				kind = KindLink
			}
			todo = append(todo, action{Finding{Path: path, Kind: kind, What: what, Action: act}, old.Keys, item.id})
		}
	}
	slices.SortFunc(todo, func(a, b action) int { return cmp.Compare(a.finding.Path, b.finding.Path) })
	return todo
}

func unchanged(old, now Item) bool {
	return old.Type == now.Type && old.Sum == now.Sum && (old.Exec || !now.Exec) && old.Bad == now.Bad &&
		!fresh(now.Keys, old.Keys)
}

// fresh says whether now has an entry more often than old.
func fresh(now, old []string) bool {
	left := slices.Clone(old)
	for _, k := range now {
		i := slices.Index(left, k)
		if i < 0 {
			return true
		}
		left[i] = left[len(left)-1]
		left = left[:len(left)-1]
	}
	return false
}

// judge says what a new or changed item is and what to do about it; an empty
// action is nothing.
func judge(path string, now, old Item, known bool) (what, act string) {
	how := "new "
	if known {
		how = "changed "
	}
	if now.Type == 'd' {
		// git reads no directory as one of these files; for a broken
		// repository there is nothing to run.
		return "", ""
	}
	switch now.Role {
	case RoleLink:
		if now.Type != 'l' {
			return "", "" // git finds nothing in a file where it wants a folder
		}
		return how + "link where git looks for its own files", Quarantined
	case RoleConfig:
		switch {
		case now.Type == 'l':
			return how + "link in place of git's configuration", Quarantined
		case now.Type != 'f':
			return how + "special file in place of git's configuration", Quarantined
		case now.Broken != "":
			return "git configuration that cannot be read: " + now.Broken, Quarantined
		case fresh(now.Keys, old.Keys):
			return how + "git configuration that runs programs or reads other configuration", Rewritten
		}
	case RoleHook:
		return how + "git hook", Quarantined
	case RoleTreeHook:
		if hookName(filepath.Base(path)) {
			return how + "git hook in a configured hooks folder", Quarantined
		}
		return how + "file in a configured hooks folder", Reported
	case RoleCommonDir, RoleEntry:
		if now.Bad != "" {
			return how + "pointer to a git directory: " + now.Bad, Quarantined
		}
	case RoleAttributes:
		if now.Bad != "" || now.Type != 'f' {
			return how + "attributes: " + cmp.Or(now.Bad, "not a regular file"), Quarantined
		}
	case RoleRemote:
		return how + "remote in the old form", Quarantined
	case RoleTodo:
		return cmp.Or(now.Bad, pending), Reported
	case RoleGitDir, RoleAlternates, RoleTree:
		if now.Bad != "" {
			return now.Bad, Reported
		}
	case RolePending:
		return pending, Reported
	case RoleProgram:
		return "runs later on the host (" + now.Key + ")", Reported
	}
	return "", ""
}

const pending = "git is in the middle of something that the command began or went on with"

// drivers returns the first filter, diff or merge driver that attributes bind
// files to and that git does not bring itself; empty if there is none.
func drivers(raw []byte) string {
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		for w := range strings.FieldsSeq(line) {
			kind, name, ok := strings.Cut(w, "=")
			if !ok || name == "lfs" {
				continue
			}
			switch kind {
			case "filter":
				return w
			case "diff":
				if !slices.Contains(diffDrivers[:], name) {
					return w
				}
			case "merge":
				if name != "text" && name != "binary" && name != "union" {
					return w
				}
			}
		}
	}
	return ""
}

// diffDrivers are built into git.
var diffDrivers = [...]string{
	"ada", "bash", "bibtex", "cpp", "csharp", "css", "dts", "elixir", "fortran", "fountain", "golang", "html",
	"ini", "java", "kotlin", "markdown", "matlab", "objc", "pascal", "perl", "php", "python", "r", "ruby",
	"rust", "scheme", "tex", "default",
}

// execLine returns the first line of a rebase's steps that runs a command.
func execLine(raw []byte) string {
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && (f[0] == "exec" || f[0] == "x") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// modulesBad says what in a .gitmodules would run a program.
func modulesBad(raw []byte) string {
	entries, err := Parse(raw)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if e.Key == "update" && !isNoCommand(e) || e.Key == "url" && !isPlainURL(e) {
			return "a submodule names a command: " + e.Name
		}
	}
	return ""
}

// digest names content without keeping it.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func entryDigest(e Entry) string {
	if e.NoValue {
		return digest(e.Name)
	}
	return digest(e.Name, e.Value)
}

// worktreeInside says whether e is a core.worktree that stays in the
// workspace, as in the configuration of every submodule. gitDir is the folder
// of the configuration.
func worktreeInside(e Entry, gitDir, workspace string) bool {
	return e.Name == "core.worktree" && e.Value != "" && inside(workspace, gitDir) &&
		inside(workspace, realOr(expand(e.Value, "/", gitDir)))
}

// without returns a configuration without the executable entries that keep
// does not have, and whether any went.
func without(raw []byte, entries []Entry, keep []string, gitDir, workspace string) ([]byte, bool) {
	left := slices.Clone(keep)
	var edits []edit
	for _, e := range entries {
		if !Executable(e) || worktreeInside(e, gitDir, workspace) {
			continue
		}
		if i := slices.Index(left, entryDigest(e)); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		edits = append(edits, edit{span: span{e.Start, e.End}})
	}
	return apply(raw, edits), len(edits) > 0
}
