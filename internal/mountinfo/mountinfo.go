// Package mountinfo knows how the kernel writes paths in its mount tables
// (proc_pid_mountinfo(5)).
package mountinfo

import "strings"

// Unescape undoes the octal escapes by which a table keeps spaces, tabs, newlines
// and backslashes out of its paths. Anything that is not one stays as it is.
func Unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] <= '3' && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func octal(c byte) bool { return '0' <= c && c <= '7' }

// Around returns the lines of the mounts at path, above it and below it, as they
// stand in the text of a mountinfo file. Path is canonical. Whoever compares them
// learns whether another file system lies somewhere there by now. Lines that
// cannot be read are among them.
func Around(table, path string) string {
	var out strings.Builder
	for line := range strings.Lines(table) {
		f := strings.SplitN(line, " ", 6)
		if len(f) < 6 || within(path, Unescape(f[4])) || within(Unescape(f[4]), path) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// within says whether path is dir or lies below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// Nameless says whether the mount on top at path shows a file or folder that has
// lost its name since, as the source of a bind mount does that was replaced. The
// kernel mounts nothing on such a place. Table is the text of a mountinfo file;
// path is canonical.
func Nameless(table, path string) bool {
	const gone = "//deleted" // no other path has two slashes
	type line struct{ id, parent, root string }
	var top line
	for text := range strings.Lines(table) {
		// ID PARENT MAJOR:MINOR ROOT AT OPTIONS...
		f := strings.SplitN(text, " ", 6)
		if len(f) < 6 || Unescape(f[4]) != path {
			continue
		}
		// What was mounted on another one is on top of it; else the later line.
		if top.id == "" || top.parent != f[0] {
			top = line{f[0], f[1], f[3]}
		}
	}
	return strings.HasSuffix(top.root, gone)
}
