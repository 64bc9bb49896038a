// Package watch tells what changes in trees of folders while somebody looks: an
// inotify watch on every folder, on new ones as soon as they are seen.
//
// It promises that a change of an entry in a folder that is watched is told, or
// [Event].Lost is. It does not promise that a folder that just appeared is
// watched before something is put into it: whoever is told of a folder looks
// into it.
package watch

import (
	"encoding/binary"
	"errors"
)

// Event is one change.
type Event struct {
	// Dir is the folder that it happened in, by the path under which it was last
	// met, and Name the entry.
	Dir, Name string
	// Folder says that the entry is a folder, New that it appeared: was made or
	// moved there.
	Folder, New bool
	// From is the path that an entry was moved from, if that is known: it lay in a
	// folder that was watched.
	From string
	// Links says that something about the entry itself changed, such as how many
	// names it has.
	Links bool
	// Lost says that events were lost: anything may have happened.
	Lost bool
}

// Path is the entry's.
func (e Event) Path() string { return e.Dir + "/" + e.Name }

// ErrFull says that the system allows no more watches, or no more users of them.
var ErrFull = errors.New("the system allows no more watches")

// ErrDeep says that folders lie too deep in each other to be watched.
var ErrDeep = errors.New("folders lie too deep in each other to be watched")

// Partly says that an error of Add leaves what could be watched so, and the rest
// out. Nobody who makes folders can bring about another one by that.
func Partly(err error) bool { return errors.Is(err, ErrFull) || errors.Is(err, ErrDeep) }

// The bits of inotify(7) that are of use here.
const (
	attrib     = 0x4
	closeWrite = 0x8
	movedFrom  = 0x40
	movedTo    = 0x80
	created    = 0x100
	deleted    = 0x200
	selfMoved  = 0x800
	unmounted  = 0x2000
	overflow   = 0x4000
	ignored    = 0x8000
	onlyDir    = 0x1000000
	noFollow   = 0x2000000
	exclUnlink = 0x4000000
	folder     = 0x40000000
)

// raw is an event as the kernel tells it.
type raw struct {
	wd           int32
	mask, cookie uint32
	name         string
}

// eventHead is the length of an inotify_event before its name.
const eventHead = 16

// decode reads a buffer of events; what cannot be one is as good as lost.
func decode(b []byte) (out []raw, lost bool) {
	for len(b) > 0 {
		if len(b) < eventHead {
			return out, true
		}
		size := binary.NativeEndian.Uint32(b[12:])
		if uint64(size) > uint64(len(b)-eventHead) {
			return out, true
		}
		name := b[eventHead : eventHead+int(size)]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		out = append(out, raw{int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:]), string(name)})
		b = b[eventHead+int(size):]
	}
	return out, false
}
