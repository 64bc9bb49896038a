package plan

import (
	"bytes"
	"os"
	"path/filepath"
)

// hostSockets returns the socket files of the host that lie in a view of the
// system: a read-only mount does not stop connect(2). The kernel lists bound
// sockets by the name they were bound to (proc_net_unix in proc(5)); one that
// was bound by a relative name, or is bound later, is not found here.
func (r *resolver) hostSockets() []string {
	raw, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		r.note("the host's sockets could not be listed: "+reason(err).Error(), "")
		return nil
	}
	var found []string
	seen := map[string]bool{}
	for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
		// Num RefCount Protocol Flags Type St Inode Path
		at := bytes.IndexByte(line, '/')
		if at < 0 || bytes.IndexByte(line, '@') >= 0 && bytes.IndexByte(line, '@') < at {
			continue
		}
		path, err := filepath.EvalSymlinks(string(line[at:]))
		if err != nil || seen[path] {
			continue
		}
		seen[path] = true
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSocket == 0 {
			continue
		}
		for _, v := range r.p.Views {
			if inside(path, v.Path) {
				found = append(found, path)
				break
			}
		}
	}
	return found
}
