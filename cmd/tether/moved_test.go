package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A locked name keeps what it says though the folder around it is moved away:
// what comes in its place is gone when the command has ended.
func TestLockedPlaceTakenOver(t *testing.T) {
	const evil = `mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json`
	for _, c := range []struct{ name, attack string }{
		{"the folder anew", "mv sub sub2; " + evil},
		{"a folder further up", "mv top top2; mkdir -p top/sub/.vscode; echo evil > top/sub/.vscode/tasks.json"},
		{"a link in place of the folder", "mv sub sub2; mkdir -p other/.vscode; echo evil > other/.vscode/tasks.json; ln -s other sub"},
		{"a link in place of the name", "mv sub sub2; mkdir -p sub other; echo evil > other/tasks.json; ln -s ../other sub/.vscode"},
		{"a folder moved there", "mkdir -p other/.vscode; echo evil > other/.vscode/tasks.json; mv sub sub2; mv other sub"},
		{"with the wrong content in a copy", "mv sub sub2; cp -r sub2 sub; echo evil > sub/.vscode/tasks.json"},
		{"with more than a copy", "mv sub sub2; cp -r sub2 sub; echo evil > sub/.vscode/tasks.json.bak; ln -sf tasks.json.bak sub/.vscode/tasks.json"},
		{"and closed", "mv sub sub2; " + evil + "; chmod 555 sub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.mustHost(`for d in sub top/sub; do mkdir -p $d/.vscode; echo '{}' > $d/.vscode/tasks.json; echo '{}' > $d/.mcp.json; done`)
				// Control: without Tether the editor finds what the attack says.
				j.mustHost(`cp -a . $OUT/door; cd $OUT/door; ` + c.attack + `; grep -q evil sub/.vscode/tasks.json top/sub/.vscode/tasks.json; chmod 755 sub`)
				rep := j.report(c.attack)
				if rep["exit"] != 0.0 {
					t.Errorf("moving folders is ordinary work: got %v", rep)
				}
				list := findings(rep)
				if !mentions(list, "quarantined", "/w/") {
					t.Errorf("got findings %q, want one that was quarantined", list)
				}
				if r := j.host(`cat sub/.vscode/tasks.json top/sub/.vscode/tasks.json 2>/dev/null | grep evil; test -L sub && echo link`); r.stdout != "" {
					t.Errorf("left in the locked place: %s", r.all())
				}
				// What was locked is where it was moved to, as it was.
				if r := j.host(`cat sub2/.vscode/tasks.json sub2/.mcp.json || cat top2/sub/.vscode/tasks.json top2/sub/.mcp.json`); r.stdout != "{}\n{}\n" {
					t.Errorf("the moved folder: %s", r.all())
				}
				if r := j.run("true"); r.exit != 0 || strings.Contains(r.stderr, "; it was ") {
					t.Errorf("the next run: got exit %d, %q, want nothing left to do", r.exit, r.stderr)
				}
			})
		})
	}
}

// Ordinary work with the folders around locked names is none of this.
func TestLockedFoldersMoveAsOrdinaryWork(t *testing.T) {
	for _, c := range []struct{ name, work, want string }{
		{"renamed", "mv packages/x packages/y", "packages/y/.vscode/tasks.json"},
		{"renamed and linked", "mv packages/x packages/y; ln -s y packages/x", "packages/x/.vscode/tasks.json"},
		{"away and back", "mv packages/x y; mv y packages/x", "packages/x/.vscode/tasks.json"},
		{"one in place of the other", "mv packages/x old; mv packages/z packages/x", "packages/x/.vscode/tasks.json"},
		{"moved and checked out anew", "mv packages/x old; cp -r old packages/x", "packages/x/.vscode/tasks.json"},
		{"with git", "git mv packages/x packages/y; git checkout -q HEAD -- packages/x", "packages/x/.vscode/tasks.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			providers(t, func(t *testing.T, j *jail) {
				j.repo()
				j.mustHost(`for d in x z; do mkdir -p packages/$d/.vscode packages/$d/src; echo '{}' > packages/$d/.vscode/tasks.json; echo x > packages/$d/src/x; done; git add .; git commit -qm x`)
				rep := j.report(c.work)
				if rep["exit"] != 0.0 || mentions(findings(rep), "quarantined", "/") {
					t.Errorf("got %v", rep)
				}
				j.unchanged(c.want, "{}\n")
			})
		})
	}
}

// A run that died leaves no more than one that ended.
func TestLockedPlaceTakenOverByOneThatDied(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("sub/.vscode/tasks.json", "{}\n")
		j.killed(`mv sub sub2; mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json`, "sub/.vscode/tasks.json")
		if list := findings(j.report("true")); !mentions(list, "quarantined", "/w/sub/.vscode") {
			t.Errorf("got %q", list)
		}
		j.absent("sub/.vscode")
	})
}

// Our own program and folders are in nobody's way to be replaced, whatever is
// writable around them and however far up.
func TestOwnThingsCannotBeReplaced(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		program, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		own := j.write("tools/deep/bin/tether", string(program))
		if err := os.Chmod(own, 0o755); err != nil {
			t.Fatal(err)
		}
		attack := `for at in tools/deep/bin tools/deep tools; do mv $at moved && mkdir -p tools/deep/bin && echo evil > tools/deep/bin/tether; done 2>/dev/null; rm -rf tools; cat tools/deep/bin/tether | head -c 5`
		j.mustHost(`cp -a . $OUT/door; cd $OUT/door; { ` + attack + `; } | grep -q evil || ! test -e tools/deep/bin/tether`)
		cmd := j.command("--", "sh", "-c", attack+"; echo x > tools/deep/bin/other && echo ordinary")
		cmd.Path = own
		if r := j.built(finishCommand(t, cmd)); !strings.Contains(r.stdout, "ordinary") {
			t.Errorf("what lies beside is ordinary: %s", r.all())
		}
		j.unchanged(own, string(program))

		// The state folder, or a link to it, in a root that is to be written.
		for _, dir := range []string{j.out, filepath.Join(j.out, "links")} {
			state := filepath.Join(dir, "state")
			j.mustHost("mkdir -p $OUT/links $OUT/real; ln -sfn ../real $OUT/links/state")
			for i, kv := range j.env {
				if name, _, _ := strings.Cut(kv, "="); name == "XDG_STATE_HOME" || name == "XDG_CONFIG_HOME" {
					j.env[i] = name + "=" + state
				}
			}
			r := finishCommand(t, j.command("--allow-write", dir, "--", "true"))
			if r.exit != exitOurs || !strings.Contains(r.stderr, "Tether's own files") {
				t.Errorf("--allow-write %s around the state: got exit %d, %q", dir, r.exit, r.stderr)
			}
		}
	})
}

// Nor is a folder that is only read in a workspace that is written.
func TestReadOnlyFoldersStayInPlace(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.write("third/party/lib/x", "theirs\n")
		const attack = `mv third/party p2; mv third t2; mkdir -p third/party/lib && echo evil > third/party/lib/x; cat third/party/lib/x`
		j.mustHost(`cp -a . $OUT/door; cd $OUT/door; { ` + attack + `; } | grep -q evil`)
		j.run(attack, "--allow-read", filepath.Join(j.w, "third/party/lib"))
		j.unchanged("third/party/lib/x", "theirs\n")
	})
}

// A link by which our program was called is put back to nothing when another
// one, or another program, came in its place.
func TestOwnProgramCalledThroughLink(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.mustHost("mkdir -p node_modules/.bin; ln -s " + binary + " node_modules/.bin/tether")
		link := filepath.Join(j.w, "node_modules/.bin/tether")
		for _, evil := range []string{"echo evil > $L", "echo evil > e; ln -s ../../e $L"} {
			attack := "L=" + link + "; rm $L; " + evil
			j.mustHost(attack + "; grep -q evil $L; rm $L; ln -s " + binary + " $L")
			cmd := j.command("--", "sh", "-c", attack)
			cmd.Path = link
			cmd.Args[0] = link
			if r := j.built(finishCommand(t, cmd)); !strings.Contains(r.stderr, "it took the place") {
				t.Errorf("got exit %d, %q", r.exit, r.stderr)
			}
			j.absent(link)
			j.mustHost("ln -s " + binary + " " + link)
			cmd = j.command("--", "true")
			cmd.Path, cmd.Args[0] = link, link
			if r := finishCommand(t, cmd); r.exit != 0 || strings.Contains(r.stderr, "it took the place") {
				t.Errorf("left alone: got exit %d, %q", r.exit, r.stderr)
			}
		}
	})
}

// A hidden file stays hidden though the folder around it is moved, and moved
// again; what comes in its place is no secret.
func TestHiddenFilesStayHiddenWhenFoldersMove(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.repo()
		j.mustHost(`mkdir -p a/b/.ssh c; echo $SECRET > a/b/.env; echo $SECRET > a/b/.ssh/id_rsa; echo $SECRET > c/.env; git add -f c/.env; git commit -qm x`)
		const work = `mv a a2; mv a2/b b2; cat b2/.env b2/.ssh/id_rsa; mkdir -p a/b; mv b2 a/b/; cat a/b/b2/.env; mv c c2; cat c2/.env; mkdir c; echo mine > c/.env; cat c/.env`
		j.mustHost(`cp -a . $OUT/door; cd $OUT/door; { ` + work + `; } | grep -c $SECRET | grep -qx 4`)
		r := j.run(work)
		j.noSecret(r)
		if !strings.Contains(r.stdout, "mine") {
			t.Errorf("a file of that name in a new folder is the command's own: %s", r.all())
		}
		if got := j.host(`cat a/b/b2/.env a/b/b2/.ssh/id_rsa c2/.env`); strings.Count(got.stdout, j.secret) != 3 {
			t.Errorf("the moved files: %s", got.all())
		}
	})
}

// Who asks by name for what stays hidden is told so.
func TestAllowReadOfHidden(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		j.plant(".env", ".ssh/config", "open/x")
		outside := j.write(filepath.Join(j.out, "prod.env"), "x")
		j.plant(filepath.Join(j.out, ".env"), filepath.Join(j.out, ".ssh/config"))
		for path, want := range map[string]string{".env": "SANDBOX_VIOLATION", ".ssh": "SANDBOX_VIOLATION", ".ssh/config": "SANDBOX_VIOLATION",
			filepath.Join(j.out, ".env"): "SANDBOX_VIOLATION", filepath.Join(j.out, ".ssh/config"): "SANDBOX_VIOLATION",
			filepath.Join(j.out, ".ssh"): "SANDBOX_VIOLATION", "open/x": "", "open": "", outside: "", j.out: ""} {
			r := finishCommand(t, j.command("--allow-read", path, "--", "true"))
			if got := r.exit == exitOurs && strings.Contains(r.stderr, want+": "); got != (want != "") {
				t.Errorf("--allow-read %s: got exit %d, %q", path, r.exit, r.stderr)
			}
		}
	})
}

// The variable that tells a command what confines it says what does.
func TestSandboxVariable(t *testing.T) {
	providers(t, func(t *testing.T, j *jail) {
		if r := j.run(`echo $TETHER_SANDBOX`); r.stdout != j.provider+"\n" {
			t.Errorf("got %q, want %s", r.stdout, j.provider)
		}
	})
}
