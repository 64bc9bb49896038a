package tether_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/internal/need"
)

// TestCommandLine: what is shown of a command is what bash makes of it again,
// and nothing in it moves the cursor.
func TestCommandLine(t *testing.T) {
	bash := need.Program(t, "bash")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.SampledFrom([]rune("a '\"\\$`\n\t\x1b\u202e\u00a0é\U0001f600*?[!#~{}")), 0, 8, -1),
			rapid.Map(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 6), func(b []byte) string { return string(b) }))
		words := rapid.SliceOfN(word.Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), 1, 4).Draw(t, "words")
		line := tether.CommandLine(words)
		if strings.ContainsAny(line, "\n\t\x1b\u202e\u00a0") {
			t.Fatalf("%q is shown as %q", words, line)
		}
		cmd := exec.Command(bash, "-c", "printf '%s\\0' "+line)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		out, err := cmd.Output()
		if want := strings.Join(words, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Fatalf("%q: got %q, %v, want %q", line, out, err, want)
		}
	})
}
