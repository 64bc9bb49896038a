package plan

import (
	"bytes"
	"errors"
	"slices"
	"strconv"

	"github.com/tether-sandbox/tether/internal/mountinfo"
)

// mount is one line of the kernel's mount table: the folder root of the file
// system dev, shown at the path at.
type mount struct {
	id, parent int
	dev        string
	root, at   string
}

var errMountinfo = errors.New("the mount table cannot be read")

// parseMounts reads the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
func parseMounts(raw []byte) ([]mount, error) {
	var mounts []mount
	for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
		if len(line) == 0 {
			continue
		}
		// ID PARENT MAJOR:MINOR ROOT AT OPTIONS...
		fields := bytes.SplitN(line, []byte{' '}, 6)
		if len(fields) < 6 {
			return nil, errMountinfo
		}
		id, err1 := strconv.Atoi(string(fields[0]))
		parent, err2 := strconv.Atoi(string(fields[1]))
		if err1 != nil || err2 != nil || bytes.IndexByte(fields[2], ':') < 1 {
			return nil, errMountinfo
		}
		m := mount{id: id, parent: parent, dev: string(fields[2]), root: mountinfo.Unescape(string(fields[3])), at: mountinfo.Unescape(string(fields[4]))}
		if m.root == "" || m.at == "" || m.at[0] != '/' {
			return nil, errMountinfo
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}

// place is a folder or file by file system and path in it, whatever the path
// by which it is reached.
type place struct{ dev, path string }

// locate returns the place of a canonical path.
func locate(mounts []mount, path string) (place, bool) {
	best := -1
	for i, m := range mounts {
		if !inside(path, m.at) {
			continue
		}
		// Of several mounts at one path the one on top was mounted on another;
		// where that is not clear, the later line.
		if best < 0 || len(m.at) > len(mounts[best].at) ||
			m.at == mounts[best].at && mounts[best].parent != m.id {
			best = i
		}
	}
	if best < 0 {
		return place{}, false
	}
	m := mounts[best]
	return place{m.dev, rebase(path, m.at, m.root)}, true
}

// shows says whether p can be seen through m, and at which path.
func (m mount) shows(p place) (string, bool) {
	if m.dev != p.dev || !inside(p.path, m.root) {
		return "", false
	}
	return rebase(p.path, m.root, m.at), true
}

// within says whether all that m shows lies in p.
func (m mount) within(p place) bool { return m.dev == p.dev && inside(m.root, p.path) }

// rebase moves a path from below one folder to below another.
func rebase(path, from, to string) string {
	if from != "/" {
		path = path[len(from):]
	}
	if to == "/" && path != "" {
		return path
	}
	if path == "/" {
		return to
	}
	return to + path
}

// aliases returns the paths, other than path itself, at which some of the
// mounts show what lies at path.
func aliases(mounts, some []mount, path string) []string {
	p, ok := locate(mounts, path)
	if !ok {
		return nil
	}
	var out []string
	for _, m := range some {
		if at, ok := m.shows(p); ok && at != path && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}
