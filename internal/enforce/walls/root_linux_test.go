package walls

import (
	"io/fs"
	"syscall"
	"testing"
	"time"
)

// info is a file by its mode and owners.
type info struct {
	mode     fs.FileMode
	uid, gid uint32
}

func (i info) Name() string       { return "" }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return &syscall.Stat_t{Uid: i.uid, Gid: i.gid} }

// TestPublic: a command that is root without root's rights still owns what is
// root's, and is in the groups root and 43 here.
func TestPublic(t *testing.T) {
	for _, tt := range []struct {
		info info
		want bool
	}{
		{info{0o644, 0, 0}, true}, {info{0o640, 0, 0}, false}, {info{0o600, 0, 42}, false}, {info{0, 0, 0}, false},
		{info{0o644, 7, 0}, true}, {info{0o640, 7, 0}, false}, {info{0o640, 7, 42}, true}, {info{0o600, 7, 42}, true}, {info{0o640, 7, 43}, false}, {info{0o644, 7, 43}, true},
		{info{fs.ModeDir | 0o755, 0, 0}, true}, {info{fs.ModeDir | 0o751, 0, 0}, false}, {info{fs.ModeDir | 0o754, 0, 0}, false},
		{info{fs.ModeDir | 0o750, 7, 0}, false}, {info{fs.ModeDir | 0o750, 7, 42}, true},
	} {
		if got := public(tt.info, 43); got != tt.want {
			t.Errorf("%v of %d:%d: %v, want %v", tt.info.mode, tt.info.uid, tt.info.gid, got, tt.want)
		}
	}
}
