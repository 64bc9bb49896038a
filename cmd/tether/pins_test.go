package main

import "testing"

// TestPinsOpenNothing: a git directory is kept in its place by a mount of its
// own. That mount must not be writable where what it lies in is not.
func TestPinsOpenNothing(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		const pwn = `touch "$D/.git/PWN" "$D/.git/objects/PWN" "$D/f" 2>&1; ls "$D/.git/PWN" "$D/.git/objects/PWN" "$D/f" 2>/dev/null; echo done`
		for _, c := range []struct {
			name, dir string
			flags     []string
		}{
			{"an added root that is only read", j.out + "/r", []string{"--allow-read", j.out + "/r"}},
			{"a repository deeper in one", j.out + "/r/deep/r", []string{"--allow-read", j.out + "/r"}},
			{"a locked folder", j.w + "/vendor", []string{"--lock", "vendor"}},
			{"a folder of the workspace that is only read", j.w + "/sub", []string{"--allow-read", j.w + "/sub"}},
			{"the whole workspace, read-only", j.w, []string{"-p", "read-only", "--commands", "any"}},
		} {
			j.mustHost(`mkdir -p ` + c.dir + ` && git init -q ` + c.dir)
			script := "D=" + c.dir + "; " + pwn
			if r := j.host(script); r.stdout != c.dir+"/.git/PWN\n"+c.dir+"/.git/objects/PWN\n"+c.dir+"/f\ndone\n" {
				t.Fatalf("%s: control: %s", c.name, r.all())
			}
			j.mustHost("cd " + c.dir + " && rm .git/PWN .git/objects/PWN f")
			j.own()
			r := j.run(script, c.flags...)
			if r.exit != 0 {
				t.Errorf("%s: exit %d: %s", c.name, r.exit, r.all())
			}
			for _, f := range []string{"/.git/PWN", "/.git/objects/PWN", "/f"} {
				j.absent(c.dir + f)
			}
		}
		// The other edge: in the workspace itself git works, and its directory stays put.
		r := j.run(`touch .git/objects/ok && rm .git/objects/ok && echo works; mv .git moved 2>/dev/null && echo moved`)
		if r.stdout != "works\n" {
			t.Errorf("the workspace's own repository: %s", r.all())
		}
	})
}
