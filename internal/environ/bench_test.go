package environ

import (
	"fmt"
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

func BenchmarkBuild(b *testing.B) {
	in := sample()
	for i := range 80 {
		in.Host = append(in.Host, fmt.Sprintf("SOME_NAME_%d=some value of a middling length", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Build(in); err != nil {
			b.Fatal(err)
		}
	}
}

// sample is an input like those of a real run.
func sample() Input {
	return Input{
		Host: []string{
			"PATH=/home/u/.local/bin:/usr/local/bin:/usr/bin:/bin", "HOME=/home/u", "LANG=C.UTF-8",
			"LC_ALL=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/zsh", "PWD=/somewhere", "USER=u",
		},
		Profile:   policy.WorkspaceWrite,
		Workspace: "/home/u/src/app",
		Home:      "/home/u/src/app",
		User:      "u",
		Private: Private{
			Cache: "/p/cache", Config: "/p/config", Data: "/p/data", State: "/p/state", Runtime: "/p/run",
		},
		GitConfig: "/p/config/git/config",
		Sandbox:   "native",
	}
}
