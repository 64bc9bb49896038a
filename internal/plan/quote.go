package plan

import "strconv"

// quote returns a path as it can be printed: as it is when every byte is
// harmless, quoted otherwise.
func quote(path string) string {
	for _, r := range path {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || !strconv.IsPrint(r) {
			return strconv.Quote(path)
		}
	}
	if path == "" {
		return `""`
	}
	return path
}
