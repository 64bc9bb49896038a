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
