package plan

import (
	"path/filepath"
	"slices"
)

// Programs returns the real path of the program executable, and the places
// beside it of Tether's programs, which start each other by them, whether they
// are there or not.
func Programs(executable string) []string {
	real, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return nil
	}
	list := []string{real}
	for _, name := range []string{"tether", "tether-mcp"} {
		if path := filepath.Join(filepath.Dir(real), name); !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
