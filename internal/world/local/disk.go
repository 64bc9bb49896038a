package local

import (
	"math"
	"time"

	"github.com/tether-sandbox/tether/policy"
)

// room is what a file system has left for ordinary users, and has altogether.
type room struct {
	free, size uint64 // bytes
	// names and mostNames are inodes; zero mostNames means that they are not
	// counted.
	names, mostNames uint64
}

// floor is what must be left of it.
type floor struct{ bytes, names uint64 }

// floorOf is what a file system that looked so when a command started keeps free,
// where asked bytes, or the built-in ones for zero, are asked for: of the inodes
// the same share. What has less from the beginning keeps half of that.
func floorOf(asked int64, begin room) floor {
	want := uint64(asked)
	if asked <= 0 {
		want = min(policy.BuiltinFreeDisk, begin.size/20)
	}
	keep := func(want, free uint64) uint64 {
		if free < want {
			return free / 2
		}
		return want
	}
	f := floor{bytes: keep(want, begin.free)}
	if begin.mostNames > 0 && begin.size > 0 {
		share := min(float64(want)/float64(begin.size), 1)
		f.names = keep(uint64(share*float64(begin.mostNames)), begin.names)
	}
	return f
}

// below says whether less is left than must be.
func (r room) below(f floor) bool {
	return r.free < f.bytes || r.mostNames > 0 && r.names < f.names
}

// pause is how long what is left above a floor lasts, at a speed that few disks
// have: the time until the next look.
func (r room) pause(f floor) time.Duration {
	const bytes, names = 4 << 30, 1 << 20 // a second
	seconds := float64(r.free-min(f.bytes, r.free)) / bytes
	if r.mostNames > 0 {
		seconds = math.Min(seconds, float64(r.names-min(f.names, r.names))/names)
	}
	const shortest, longest = 50 * time.Millisecond, time.Second
	return min(max(time.Duration(min(seconds, 1)*float64(time.Second)), shortest), longest)
}
