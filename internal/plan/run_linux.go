package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// layout is this system's own.
func layout() *Layout { return Linux() }

// runViews are the few things under /run that programs need: the file that
// resolv.conf leads to, and NixOS's current system.
func runViews() ([]View, []Link) {
	var views []View
	var links []Link
	if root, info, err := openRoot("/etc/resolv.conf"); err == nil && info.Mode().IsRegular() &&
		!inside(root.Path, "/etc") {
		views = append(views, View{Root: root, Origin: System, File: true, NoExec: true})
		links = append(links, linksBetween("/etc/resolv.conf", root.Path)...)
	}
	if to, err := os.Readlink("/run/current-system"); err == nil && strings.HasPrefix(to, "/nix/") {
		links = append(links, Link{Path: "/run/current-system", To: to})
	}
	return views, links
}

// linksBetween returns the links outside of /etc that lie on the way from path
// to its target, so that the way exists inside as well.
func linksBetween(path, target string) []Link {
	var links []Link
	for range 8 {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = filepath.Clean(to)
		if next, err := os.Readlink(path); err == nil && path != target && !inside(path, "/etc") {
			links = append(links, Link{Path: path, To: next})
		}
	}
	return links
}

// memoryBytes is how much memory the machine has.
func memoryBytes() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fault.Wrap(fault.SandboxUnavailable, "cannot tell how much memory there is", err)
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}

// ownsIDs says whether root may take any id. Root of a user namespace, as in a
// rootless container, is an ordinary user of the host and has no unused one.
func ownsIDs() bool {
	for _, path := range [...]string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		b, err := os.ReadFile(path)
		if err != nil {
			return true // what needs an id then fails, and says so
		}
		owned := false
		for line := range strings.Lines(string(b)) {
			var first, outside, n uint64
			if _, err := fmt.Sscan(line, &first, &outside, &n); err == nil && first <= unusedID && unusedID-first < n {
				owned = true
			}
		}
		if !owned {
			return false
		}
	}
	return true
}
