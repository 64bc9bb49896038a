// Package enforce makes the kernel hold a plan. A plan compiles, in ordinary
// code and without touching the machine, into a flat list of steps; a provider
// carries the list out. Nothing is decided while it does: a step names what it
// takes, where it goes, and the one error that it tolerates.
package enforce

import (
	"bytes"
	"fmt"
)

// Verb is what a step does.
type Verb uint8

// The verbs. Paths are absolute; Dst lies in the world being built.
const (
	// Bind shows the host's Src at Dst.
	Bind Verb = iota + 1
	// Tmpfs puts an empty folder in memory at Dst, with Mode and Size.
	Tmpfs
	// Dir makes a folder of the scaffolding.
	Dir
	// Symlink makes Dst a link that says Src.
	Symlink
	// File puts a read-only file with Content at Dst. Over an existing file
	// it covers it.
	File
	// Self binds Dst, as it is inside, onto itself with Flags: that pins it
	// against renaming and can take writing away.
	Self
	// MaskFile hides the file at Dst: opening it fails with EACCES.
	MaskFile
	// MaskStub hides the file at Dst behind one of the same Size and MTime
	// that cannot be opened.
	MaskStub
	// MaskDir hides the folder at Dst behind an empty one that cannot be
	// opened.
	MaskDir
	// Cover hides the folder at Dst behind an empty, readable one.
	Cover
	// Proc mounts a fresh /proc at Dst.
	Proc
	// Devices builds a minimal /dev at Dst.
	Devices
	// Sysctl writes Content to Dst, a file below /proc/sys of the new world,
	// once all mounts are done.
	Sysctl
	// Seal makes the mount at Dst read-only, after its scaffolding is done.
	Seal
	// Allow opens Dst, where it lies on the host, to a command that has no world
	// of its own: to be read, and by its flags to be written and started.
	Allow
)

var verbNames = [...]string{Bind: "bind", Tmpfs: "tmpfs", Dir: "dir", Symlink: "symlink", File: "file",
	Self: "self", MaskFile: "mask-file", MaskStub: "mask-stub", MaskDir: "mask-dir", Cover: "cover",
	Proc: "proc", Devices: "devices", Sysctl: "sysctl", Seal: "seal", Allow: "allow"}

func (v Verb) String() string {
	if int(v) < len(verbNames) && verbNames[v] != "" {
		return verbNames[v]
	}
	return fmt.Sprintf("verb(%d)", uint8(v))
}

// Flags modify a step.
type Flags uint16

// The flags.
const (
	// ReadOnly takes writing away from the mount.
	ReadOnly Flags = 1 << iota
	// NoExec takes starting programs away.
	NoExec
	// AllowDevices leaves device files usable; without it they are dead.
	AllowDevices
	// Make creates Dst and its parents in the scaffolding. Without it Dst must
	// exist: nothing is ever created in a folder of the host.
	Make
	// IsFile says that Src is not a folder.
	IsFile
	// Gone, in a step that says what its place must be, only tolerates that
	// the place is out of the command's reach. Otherwise it tolerates that Dst (or Src) no longer exists.
	Gone
	// Flat leaves out mounts below Src.
	Flat
	// Optional says that the command can do without: where the ids that the
	// sandbox is built under cannot reach Src, a bind that is only read is left
	// out, and one that is written becomes an empty folder in memory.
	Optional
	// Listing, in an Allow, lets folders be listed and nothing be read.
	Listing
)

var flagNames = []string{"ro", "noexec", "dev", "make", "file", "gone", "flat", "optional", "list"}

func (f Flags) String() string {
	s := ""
	for i, n := range flagNames {
		if f&(1<<i) != 0 {
			if s != "" {
				s += ","
			}
			s += n
		}
	}
	return s
}

// Step is one step of building the world of a command.
type Step struct {
	Do    Verb
	Flags Flags
	Dst   string
	Src   string
	// Dev and Ino, when Ino is not zero, are what Src (for a Bind) or Dst (for
	// the others) must still be, or the step fails.
	Dev, Ino uint64
	// Tree, when not zero, is the one-based index of a detached mount that the
	// supervisor passes in place of opening Src.
	Tree uint32
	Mode uint32
	Size int64
	// MTime is in nanoseconds since 1970.
	MTime   int64
	Content []byte
}

// Equal says whether two steps are the same in everything.
func (s *Step) Equal(t *Step) bool {
	return s.Do == t.Do && s.Flags == t.Flags && s.Dst == t.Dst && s.Src == t.Src && s.Dev == t.Dev && s.Ino == t.Ino &&
		s.Tree == t.Tree && s.Mode == t.Mode && s.Size == t.Size && s.MTime == t.MTime && bytes.Equal(s.Content, t.Content)
}

// String prints the step on one line, as explain shows it. Content is not
// printed.
func (s Step) String() string {
	out := fmt.Sprintf("%-9s %s", s.Do, s.Dst)
	if s.Src != "" && s.Src != s.Dst {
		out += " <- " + s.Src
	}
	if f := s.Flags &^ (Make | IsFile); f != 0 {
		out += " [" + f.String() + "]"
	}
	return out
}
