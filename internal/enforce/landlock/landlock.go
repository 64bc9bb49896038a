// Package landlock describes and loads Landlock rulesets: walls that a process
// puts round itself and its children, for good.
//
// A [Ruleset] says what stays open; its zero value opens nothing. What the
// running kernel cannot enforce is never dropped in silence: [Ruleset.Downgrade]
// takes it out and returns it as a list of [Missing], and [Restrict] refuses a
// ruleset that asks for more than there is.
//
// What the walls do not do:
//
//   - They only open, from the top: inside a folder that is opened nothing can
//     be closed again. Hiding a file below a root is the mounts' work.
//   - They follow the object, not the name. A file in an opened folder stays
//     open through every bind mount of it, and what is bound into an opened
//     folder is open there.
//   - They hold at open: a descriptor that is open already keeps its powers.
//   - stat, chdir, chmod, chown, utime, extended attributes, locks and watches
//     are not looked at by any ABI.
//   - Unix sockets with a path are looked at from ABI 9 on, and UDP from ABI 10 on.
//   - TCP rules know ports, not addresses, and no MPTCP. They are asked at bind(2)
//     and connect(2): a first packet by MSG_FASTOPEN and a port that listen(2)
//     takes pass by them.
//   - Descriptors that arrive over a socket keep their powers, and so does a
//     connection that exists.
//
// Two things come along unasked. Whatever the ruleset, the process can trace
// and inspect only what stands behind the same walls. And file rules, any of
// them, forbid mount, umount and pivot_root; without [Ruleset.AnyFile] they
// must be loaded after the last mount.
//
// Sources: the kernel's Documentation/userspace-api/landlock.rst; the numbers
// are those of golang.org/x/sys/unix.
package landlock

import (
	"fmt"
	"strings"
)

// Path is a file or folder that the caller has opened, best with O_PATH.
// Restrict borrows the descriptor.
type Path struct {
	FD int
	// Name is for messages alone.
	Name string
}

// Ruleset says what stays open. The zero value lets nothing be opened,
// executed, bound or connected, and nobody outside be reached.
type Ruleset struct {
	// Read lists files that can be read, and folders that can be listed and
	// whose content can be read.
	Read []Path
	// Exec lists files that can be executed, and folders whose content can.
	// Reading those files is included, since the kernel executes only what it
	// may read; listing folders is not. A program that is to run needs its
	// interpreter here, and its libraries here or in Read.
	Exec []Path
	// Write lists files that can be written and truncated, and folders in which
	// in addition anything but device files can be made, removed, and renamed
	// or linked from folder to folder. Reading is not included.
	Write []Path
	// Device lists device files, or folders of such, that answer ioctl. Files
	// that are not devices answer it anyway.
	Device []Path
	// List lists folders that can be listed, with all folders in them.
	List []Path
	// Bind and Connect list TCP ports. Port 0 in Bind is one that the kernel
	// chooses.
	Bind, Connect []uint16

	// AnyFile leaves files alone, and Unix sockets with a path; the lists of paths
	// are not read then.
	AnyFile bool
	// AnySocket leaves Unix sockets with a path outside reachable, as far as their
	// files' permissions go. Those made behind the same walls always are.
	AnySocket bool
	// AnyTCP leaves TCP alone; the lists of ports are not read then.
	AnyTCP bool
	// AnyUDP leaves UDP alone. Without it no port is bound and nothing is sent.
	AnyUDP bool
	// AnyAbstract leaves abstract Unix sockets outside reachable.
	AnyAbstract bool
	// AnySignal leaves processes outside open to signals.
	AnySignal bool

	// lacks are file rights that the kernel does not know. Only Downgrade
	// sets it.
	lacks uint64
}

// Rights on files, as the kernel numbers them.
const (
	fsExecute uint64 = 1 << iota
	fsWriteFile
	fsReadFile
	fsReadDir
	fsRemoveDir
	fsRemoveFile
	fsMakeChar
	fsMakeDir
	fsMakeReg
	fsMakeSock
	fsMakeFifo
	fsMakeBlock
	fsMakeSym
	fsRefer
	fsTruncate
	fsIoctlDev
	fsResolveUnix

	fsAll = fsResolveUnix<<1 - 1
	// fsOfFile are the rights that a rule on something else than a folder may
	// have.
	fsOfFile = fsExecute | fsWriteFile | fsReadFile | fsTruncate | fsIoctlDev

	grantRead   = fsReadFile | fsReadDir
	grantExec   = fsExecute | fsReadFile
	grantDevice = fsIoctlDev
	grantList   = fsReadDir
	// grantWrite leaves out device files: nothing ever opens making them.
	grantWrite = fsWriteFile | fsTruncate | fsRefer | fsRemoveDir | fsRemoveFile |
		fsMakeDir | fsMakeReg | fsMakeSock | fsMakeFifo | fsMakeSym

	netBind    uint64 = 1
	netConnect uint64 = 2
	netBindUDP uint64 = 4
	netSendUDP uint64 = 8

	scopeAbstract uint64 = 1
	scopeSignal   uint64 = 2
)

// walls is what the kernel is told to refuse unless a rule opens it.
type walls struct{ fs, net, scoped uint64 }

func (r *Ruleset) walls() walls {
	var w walls
	if !r.AnyFile {
		w.fs = fsAll &^ r.lacks
		if r.AnySocket {
			w.fs &^= fsResolveUnix
		}
	}
	if !r.AnyTCP {
		w.net = netBind | netConnect
	}
	if !r.AnyUDP {
		w.net |= netBindUDP | netSendUDP
	}
	if !r.AnyAbstract {
		w.scoped |= scopeAbstract
	}
	if !r.AnySignal {
		w.scoped |= scopeSignal
	}
	return w
}

// Empty reports whether r restricts nothing at all.
func (r Ruleset) Empty() bool { return r.walls() == walls{} }

// opening is one rule about a path.
type opening struct {
	path   Path
	access uint64
}

// openings returns the rules about paths, one for each descriptor.
func (r *Ruleset) openings() []opening {
	if r.AnyFile {
		return nil
	}
	var out []opening
	at := map[int]int{}
	for _, l := range [...]struct {
		paths  []Path
		access uint64
	}{{r.Read, grantRead}, {r.Exec, grantExec}, {r.Write, grantWrite}, {r.Device, grantDevice}, {r.List, grantList}} {
		for _, p := range l.paths {
			i, seen := at[p.FD]
			if !seen {
				i = len(out)
				at[p.FD] = i
				out = append(out, opening{path: p})
			}
			out[i].access |= l.access &^ r.lacks
		}
	}
	return out
}

// port is one rule about TCP.
type port struct {
	number uint16
	access uint64
}

func (r *Ruleset) ports() []port {
	if r.AnyTCP {
		return nil
	}
	var out []port
	for _, n := range r.Bind {
		out = append(out, port{n, netBind})
	}
	for _, n := range r.Connect {
		out = append(out, port{n, netConnect})
	}
	return out
}

// String prints one line for each wall, as explain shows it.
func (r Ruleset) String() string {
	var b strings.Builder
	if r.AnyFile {
		b.WriteString("files: any\n")
	} else {
		b.WriteString("files: none but\n")
		for _, l := range [...]struct {
			word  string
			paths []Path
		}{{"read", r.Read}, {"exec", r.Exec}, {"write", r.Write}, {"device", r.Device}, {"list", r.List}} {
			for _, p := range l.paths {
				fmt.Fprintf(&b, "  %-6s %s\n", l.word, p.Name)
			}
		}
	}
	if r.AnyTCP {
		b.WriteString("tcp: any\n")
	} else {
		fmt.Fprintf(&b, "tcp: bind %v, connect %v\n", r.Bind, r.Connect)
	}
	b.WriteString("udp: " + word(r.AnyUDP) + "\n")
	b.WriteString("sockets with a path outside: " + word(r.AnySocket || r.AnyFile) + "\n")
	b.WriteString("abstract sockets outside: " + word(r.AnyAbstract) + "\n")
	b.WriteString("signals to outside: " + word(r.AnySignal) + "\n")
	return b.String()
}

func word(open bool) string {
	if open {
		return "open"
	}
	return "refused"
}
