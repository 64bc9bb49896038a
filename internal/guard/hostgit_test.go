package guard

import (
	"slices"
	"testing"
)

func TestGitConfigWrites(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want []string
	}{
		{[]string{"git", "config", "user.name", "x"}, []string{"git config user.name x"}},
		{[]string{"git", "config", "user.name"}, nil},
		{[]string{"git", "config", "--get", "a.b", "c"}, nil},
		{[]string{"git", "config", "--global", "a.b", "c"}, nil},
		{[]string{"git", "-C", "sub", "remote", "add", "o", "u"}, []string{"git -C sub remote add o u"}},
		{[]string{"git", "remote", "-v"}, nil},
		{[]string{"git", "status"}, nil},
		{[]string{"git"}, nil},
		{[]string{"git", "-C"}, nil},
		{[]string{"sh", "-c", `git add . && git push -u origin main; echo "git config a.b c"`}, []string{"git push -u origin main"}},
		{[]string{"bash", "-lc", `if true; then git config user.name 'A B'; fi`}, []string{"git config user.name 'A B'"}},
		{[]string{"sh", "-c", `git config a.b "$(id)"`}, nil},
		{[]string{"sh", "-c", `git config (`}, nil},
		{nil, nil},
	} {
		if got := GitConfigWrites(c.argv); !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
}
