package main

import (
	"strings"
	"testing"
)

// EC-001: a secret at the workspace root, many readers.
func TestEC001(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env")
		readers := []string{"cat .env", "dd if=.env", `python3 -c 'print(open(".env").read())'`, "perl -pe1 .env",
			"tar cf - .env | tar xOf -", "cp .env /tmp/c && cat /tmp/c"}
		for _, r := range readers {
			j.opens(r, j.secret)
			got := j.run(r)
			j.noSecret(got)
			if strings.HasPrefix(r, "cat") && !strings.Contains(got.stderr, "Permission denied") {
				t.Errorf("%s: got %q, want it to say that permission is denied", r, got.stderr)
			}
		}
		j.unchanged(".env", j.secret+"\n")
	})
}
