package policy

import (
	"path"
	"slices"
	"strings"
)

// roots is a union of subtrees in its one form: clean, sorted, none inside
// another. Two trees are known: "/" and, inside it at a place that only the
// caller knows, "~". So ~/x lies in / and in ~, and is never known to lie in
// /home.
type roots []string

// cleanRoot returns the one spelling of an absolute or ~/-rooted path. It
// refuses ".." because, behind a link, taking it away names another folder.
func cleanRoot(s string) (string, bool) {
	if s != "~" && !strings.HasPrefix(s, "~/") && !strings.HasPrefix(s, "/") {
		return "", false
	}
	if climbs(s) || strings.IndexByte(s, 0) >= 0 {
		return "", false
	}
	return path.Clean(s), true
}

// cleanConfig is cleanRoot for [Protect.AllowConfig], where a path may also be
// relative. A relative path keeps a leading "./" if it would otherwise look
// like a home.
func cleanConfig(s string) (string, bool) {
	if c, ok := cleanRoot(s); ok {
		return c, true
	}
	if s == "" || s[0] == '/' || climbs(s) || strings.IndexByte(s, 0) >= 0 {
		return "", false
	}
	c := path.Clean(s)
	if c == "~" || strings.HasPrefix(c, "~/") {
		c = "./" + c
	}
	return c, true
}

func climbs(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}

// under tells whether clean path a is b or lies below it, by components.
func under(a, b string) bool {
	if b == "/" {
		return a[0] == '/' || a == "~" || strings.HasPrefix(a, "~/")
	}
	return strings.HasPrefix(a, b) && (len(a) == len(b) || a[len(b)] == '/')
}

// union builds roots from clean paths.
func union(lists ...[]string) roots {
	all := slices.Concat(lists...)
	slices.Sort(all)
	all = slices.Compact(all)
	var rs roots
	for _, a := range all {
		// A path sorts behind every path that it lies in, so what covers it
		// is there already; "~" sorts behind "/", too.
		if !rs.cover(a) {
			rs = append(rs, a)
		}
	}
	return rs
}

func (rs roots) cover(a string) bool {
	return slices.ContainsFunc(rs, func(r string) bool { return under(a, r) })
}

func (rs roots) coverAll(as roots) bool {
	return !slices.ContainsFunc(as, func(a string) bool { return !rs.cover(a) })
}

// intersect returns what lies in both. Of two subtrees one lies in the other
// or they have nothing in common.
func (rs roots) intersect(qs roots) roots {
	var both []string
	for _, r := range rs {
		for _, q := range qs {
			switch {
			case under(r, q):
				both = append(both, r)
			case under(q, r):
				both = append(both, q)
			}
		}
	}
	return union(both)
}

// SystemRoots returns the folders that Reads.System shows, as far as policies
// are compared: a root inside them adds nothing to the system's. Which of them
// exist is for the plan to see.
//
// A plan may show more of the system, but must show these, so that what is
// called covered is. Of /var they are the parts without logs, spools, mail and
// temporary files. What a plan hides inside them (private state of services)
// it must compare itself. /dev, /proc, /sys and /tmp are made anew inside and
// are no part of the machine's.
func SystemRoots() []string {
	return []string{"/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libo32", "/libx32",
		"/nix", "/opt", "/sbin", "/usr",
		"/var/cache", "/var/db", "/var/lib", "/var/local", "/var/opt", "/var/www"}
}

func inSystem(rs roots) roots { return rs.intersect(SystemRoots()) }
