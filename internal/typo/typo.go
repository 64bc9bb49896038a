// Package typo finds the word that somebody meant to type.
package typo

import "strings"

// Nearest returns the word that s was most likely meant to be, or "". Case,
// hyphens, underscores and spaces do not count. The beginning of a word, of three
// bytes at least, stands for it; otherwise about one byte in four may be wrong.
func Nearest(s string, words []string) string {
	const longest = 40 // longer is no slip of the finger
	if len(s) > longest {
		return ""
	}
	s = bare(s)
	best, least := "", 1+len(s)/4
	for _, w := range words {
		t := bare(w)
		if s == t || len(s) >= 3 && strings.HasPrefix(t, s) {
			return w
		}
		if d := distance(s, t); d <= least {
			best, least = w, d-1
		}
	}
	return best
}

// bare drops what people vary.
func bare(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of bytes to insert, drop or change to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
