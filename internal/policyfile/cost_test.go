package policyfile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/policyfile"
)

// TestLargestFiles: no file that may be read keeps a start waiting, whether it
// holds or is refused. The bound is generous, for busy machines.
func TestLargestFiles(t *testing.T) {
	fill := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"variables":  "[set-env]\n" + fill("V%d = \"x\"\n", 1000),
		"patterns":   "protect = [" + fill("\"**/*a*b*%d\",", 1000) + "]\nlock = [" + fill("\"x%d/**\",", 1000) + "]",
		"roots":      "allow-read = [" + fill("\"/r%d\",", 1000) + "]\nallow-config = [" + fill("\"c%d\",", 1000) + "]",
		"bad keys":   fill("x%d = 1\n", 20_000),
		"lines":      strings.Repeat("\n", 250_000) + "x = 1",
		"ports":      "publish = [" + fill("%d,", 40_000) + "]",
		"nested":     "home = " + strings.Repeat("[", 9_900) + strings.Repeat("]", 9_900),
		"long":       "home = \"" + strings.Repeat("x", 250_000) + "\"",
		"a conflict": "network = \"open\"\ndeny-host = [" + fill("\"h%d\",", 498) + "]",
	} {
		t.Run(name, func(t *testing.T) {
			if len(text) > 256<<10 {
				t.Fatalf("the file has %d bytes and is refused unread", len(text))
			}
			start := time.Now()
			l, err := policyfile.Parse("f", []byte(text))
			if err == nil {
				_, _ = policyfile.Apply(base(), l)
				l.Trusted = true
				_, _ = policyfile.Apply(base(), l)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("took %v", took)
			} else {
				t.Log(took)
			}
		})
	}
}

func BenchmarkNoFiles(b *testing.B) {
	c, err := policyfile.Flag("timeout", "90s")
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	for b.Loop() {
		layers, err := policyfile.Load(dir+"/state", dir+"/config", dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := policyfile.Apply(base(), append(layers, policyfile.Flags([]policyfile.Change{c}))...); err != nil {
			b.Fatal(err)
		}
	}
}
