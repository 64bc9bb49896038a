package tether_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether"
)

// TestFindingsFromTheWatch is a law: what a session finds after a command by the
// watch that it keeps is what a session finds that keeps none.
func TestFindingsFromTheWatch(t *testing.T) {
	kept, keptDir := open(t, func(o *tether.Options) { o.KeepReady = true })
	other, otherDir := open(t, plain)
	for _, dir := range []string{keptDir, otherDir} {
		for name, text := range map[string]string{"Makefile": "all:\n", "deep/er/package.json": "{}\n", "deep/a/x": "", "old/.vscode/tasks.json": "{}\n",
			"r/.git/HEAD": "ref: refs/heads/main\n", "r/.git/config": "[core]\n\tbare = false\n", "r/.git/objects/x": "", "r/.git/refs/x": ""} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	stands := false
	for end := time.Now().Add(20 * time.Second); !stands && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		stands = strings.HasSuffix(secretsReason(run(t, kept, "true")), "when it is seen")
	}
	if !stands {
		t.Fatal("no watch stands")
	}
	time.Sleep(50 * time.Millisecond) // what was planted is older than what follows
	found := 0
	for _, shell := range []string{
		"true",
		"echo x >> Makefile",
		"ln deep/er/package.json y; echo z >> y",  // no event where its other name lies
		"exec 3<> deep/er/package.json; echo >&3", // nor any new name
		"mkdir -p n/o/.vscode; echo {} > n/o/.vscode/tasks.json; mv n/o p",
		"mv old new", // keeps the times of all that it holds
		"mv new deep/a; mv deep wide; mv wide deep",
		"mkdir -p deep/a/b/c/d; echo > deep/a/b/c/d/.envrc; ln -s /etc/passwd deep/a/b/c/l",
		"rm -r deep/a/b; mkdir -p deep/a/b; echo > deep/a/b/.bashrc",
		"mkdir q; mkdir q/objects q/refs; ln -s /x q/refs/l; echo ref: refs/heads/main > q/HEAD",
		"mkdir -p s/.git/hooks s/.git/objects s/.git/refs; echo ref: refs/heads/m > s/.git/HEAD; echo '#!/bin/sh' > s/.git/hooks/pre-commit; chmod +x s/.git/hooks/pre-commit",
		"ln -s /etc/passwd r/.git/refs/out",
		"mkdir -p shut/in; echo > shut/in/Makefile; chmod 0 shut/in shut",
		"mkdir .tether; echo > .tether/policy",
		"chmod 700 deep; chmod 755 deep",
		"touch deep/er/package.json",
		"true",
	} {
		var got [2][]tether.Finding
		for i, s := range []*tether.Session{kept, other} {
			got[i] = run(t, s, shell).Findings
			for j := range got[i] {
				f := &got[i][j]
				f.Quarantined = ""
				f.Path = strings.TrimPrefix(f.Path, []string{keptDir, otherDir}[i])
				f.What = strings.ReplaceAll(f.What, []string{keptDir, otherDir}[i], "")
			}
		}
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("%s:\nby the watch %+v\nby a walk    %+v", shell, got[0], got[1])
		}
		found += len(got[1])
	}
	if found < 12 {
		t.Errorf("control: %d findings", found)
	}
}
