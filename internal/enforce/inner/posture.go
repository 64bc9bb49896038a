package inner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/mountinfo"
)

// mount is one mount as mountinfo tells it.
type mount struct {
	id, parent string
	// options are those of this mount alone, separated by commas.
	options string
}

func (m mount) has(option string) bool {
	for o := range strings.SplitSeq(m.options, ",") {
		if o == option {
			return true
		}
	}
	return false
}

var errMountinfo = errors.New("mountinfo is not readable")

// readMounts reads a mountinfo (proc_pid_mountinfo(5)): what is mounted at each
// path, and of several mounts on top of each other the uppermost.
func readMounts(info io.Reader) (map[string]mount, error) {
	there := map[string]mount{}
	r := bufio.NewReaderSize(info, 1<<16)
	for {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return there, nil
		}
		if err != nil {
			return nil, errMountinfo
		}
		// id parent major:minor root mountpoint options ...
		fields := strings.SplitN(string(line), " ", 7)
		if len(fields) < 7 {
			return nil, errMountinfo
		}
		at := mountinfo.Unescape(fields[4])
		m := mount{id: fields[0], parent: fields[1], options: fields[5]}
		if have, ok := there[at]; !ok || have.parent != m.id {
			there[at] = m
		}
	}
}

// compare says how mounts differ from those that were planned: each must be
// there, as closed as it must be, and where we built the world ourselves
// nothing else may be. absent are the planned ones that are not there and may
// be missing, as long as what they were to cover is, too.
func compare(there map[string]mount, steps []enforce.Step, build bool) (absent []string, err error) {
	readonly := make(map[string]bool, len(steps))
	for i := range steps {
		s := &steps[i]
		switch s.Do {
		case enforce.Dir, enforce.Symlink, enforce.Sysctl:
			continue
		case enforce.Bind, enforce.Self:
			readonly[s.Dst] = s.Flags&enforce.ReadOnly != 0
		case enforce.Tmpfs, enforce.Proc:
			readonly[s.Dst] = false
		case enforce.Seal:
			if _, ok := readonly[s.Dst]; ok {
				readonly[s.Dst] = true
			}
			continue
		default:
			readonly[s.Dst] = true
		}
		if _, ok := there[s.Dst]; ok {
			continue
		}
		if s.Flags&(enforce.Gone|enforce.Optional) == 0 {
			return nil, fmt.Errorf("the mount at %s is missing", s.Dst)
		}
		absent = append(absent, s.Dst)
	}
	readonly["/"] = true
	for at, m := range there {
		ro, planned := readonly[at]
		switch {
		case planned && ro && !m.has("ro"):
			return nil, fmt.Errorf("the mount at %s is writable", at)
		case planned && !(m.has("nosuid") && m.has("nodev")):
			return nil, fmt.Errorf("the mount at %s leaves set-uid programs or devices alive", at)
		case !planned && build && !within(at, steps):
			return nil, fmt.Errorf("an unplanned mount at %s", at)
		}
	}
	return absent, nil
}

// within says whether at lies in something that brings mounts of its own: a
// recursive bind, or /dev.
func within(at string, steps []enforce.Step) bool {
	for i := range steps {
		s := &steps[i]
		if (s.Do == enforce.Bind || s.Do == enforce.Devices || s.Do == enforce.Self) && strings.HasPrefix(at, s.Dst+"/") {
			return true
		}
	}
	return false
}
