package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestPolicyScripts are sessions on the command line about policy files. Each
// has a home, a workspace and Tether's folders of its own.
func TestPolicyScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/policy-*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no script: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("XDG_CONFIG_HOME", e.WorkDir+"/config")
			// Files of a script are made with the modes of the umask.
			for _, dir := range []string{"config/tether", "w/.tether"} {
				dir = filepath.Join(e.WorkDir, dir)
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
				if err := os.Chmod(dir, 0o755); err != nil {
					return err
				}
				if err := os.Chmod(filepath.Join(dir, "policy.toml"), 0o644); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
			return nil
		},
	})
}
