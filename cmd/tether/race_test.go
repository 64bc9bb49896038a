package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// flip renames folders to and fro as fast as it can, until it is ended.
const flip = `
import os, sys, time
a, b = sys.argv[1:3]
end = time.time() + float(sys.argv[3])
n = 0
while time.time() < end:
    try: os.rename(a, b)
    except OSError: pass
    time.sleep(0.0003)
    try: os.rename(b, a)
    except OSError: pass
    time.sleep(0.0003)
    n += 1
open("flips", "w").write(str(n))
`

// A run that moves the folder of a secret all the time keeps it neither from
// the search of the next run nor from its mask.
func TestSecretInMovingFolder(t *testing.T) {
	python := need.Program(t, "python3")
	_ = python
	providers(t, func(t *testing.T, j *jail) {
		j.plant("cfg/.env")
		j.write("flip.py", flip)
		j.opens("cat cfg/.env", j.secret)
		j.own()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		mover := j.command("--", "python3", "flip.py", "cfg", "cfg2", "6")
		if err := mover.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- mover.Wait() }()
		read := "for i in 1 2 3 4 5 6 7 8; do cat cfg/.env cfg2/.env; done"
		runs := 0
		for done := false; !done && ctx.Err() == nil; {
			select {
			case <-ended:
				done = true
			default:
				r := finishCommand(t, j.command("--", "sh", "-c", read))
				j.noSecret(r)
				if r.exit == 125 && !strings.Contains(r.stderr, "ISOLATION_UNAVAILABLE") {
					t.Errorf("got %s", r.all())
				}
				runs++
			}
		}
		if n, err := os.ReadFile(filepath.Join(j.w, "flips")); err != nil || string(n) == "0" || runs < 3 {
			t.Fatalf("control: the folder moved %q times during %d runs (%v)", n, runs, err)
		}
	})
}

// A secret whose path is too long to be looked up as a whole is hidden with the
// folder around it, and chooses no other provider.
func TestSecretTooDeep(t *testing.T) {
	need.Program(t, "python3")
	walk := `
import os, sys
for i in range(25):
    if sys.argv[1] == "make": os.mkdir("d" * 200)
    os.chdir("d" * 200)
if sys.argv[1] == "make": open(".env", "w").write(sys.argv[2])
else: print(open(".env").read())
`
	providers(t, func(t *testing.T, j *jail) {
		j.write("deep.py", walk)
		j.mustHost("python3 deep.py make $SECRET")
		t.Cleanup(func() {
			j.host(`python3 -c '
import os
for i in range(25): os.chdir("d" * 200)
os.unlink(".env")
for i in range(25): os.chdir(".."); os.rmdir("d" * 200)
'`)
		})
		j.opens("python3 deep.py read", j.secret)
		j.noSecret(j.run("python3 deep.py read"))
		if j.provider == "native" {
			j.provider = "auto"
			out := j.report("true")
			if got := out["report"].(map[string]any)["provider"]; got != "native" {
				t.Errorf("got provider %v, want native: what lies in a workspace chooses none", got)
			}
		}
	})
}

// A report is never written where the command could have put a link.
func TestReportInWorkspace(t *testing.T) {
	j := newJail(t, "native")
	target := j.write(filepath.Join(j.out, "target"), "mine")
	r := j.run("ln -sf "+target+" report.json", "--report", filepath.Join(j.w, "report.json"))
	if r.exit != 125 || !strings.Contains(r.stderr, "USAGE_INVALID") {
		t.Errorf("got exit %d: %s; want a refusal", r.exit, r.stderr)
	}
	j.unchanged(target, "mine")
	j.absent("report.json")
	r = j.run("true", "--report", filepath.Join(j.out, "report.json"))
	if raw, err := os.ReadFile(filepath.Join(j.out, "report.json")); r.exit != 0 || err != nil || !strings.Contains(string(raw), `"grades"`) {
		t.Errorf("got exit %d, %q, %v", r.exit, raw, err)
	}
}
