package guard

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
)

const ws = "/proj/ws"

func enforce() Options {
	return Options{Mode: Enforce, Commands: policy.Any, Workspace: ws, Roots: []string{"/tmp"}, Dir: ws}
}

func advise() Options { o := enforce(); o.Mode = Advise; return o }

func readOnly() Options { o := advise(); o.Commands = policy.Inspection; return o }

// refused: the guard as a provider refuses each, and the same line as a note
// only under a kernel: the door opens without it.
func refused(t *testing.T, lines ...string) {
	t.Helper()
	for _, s := range lines {
		v := LookShell(s, advise())
		if v.Refused || v.Err() != nil {
			t.Errorf("%q under a kernel: refused (%s), want a note", s, v.Reason)
		}
		if len(v.Notes) == 0 {
			t.Errorf("%q under a kernel: no note", s)
		}
		v = LookShell(s, enforce())
		if !v.Refused {
			t.Errorf("%q: allowed, want refused", s)
			continue
		}
		if got, want := fault.CodeOf(v.Err()), fault.CommandDenied; got != want {
			t.Errorf("%q: code %s, want %s", s, got, want)
		}
		if v.Reason == "" || strings.ContainsRune(v.Reason, '\n') {
			t.Errorf("%q: reason %q, want one line", s, v.Reason)
		}
	}
}

func allowed(t *testing.T, lines ...string) {
	t.Helper()
	for _, s := range lines {
		if v := LookShell(s, enforce()); v.Refused {
			t.Errorf("%q: refused (%s), want allowed", s, v.Reason)
		}
	}
}

func TestEC151(t *testing.T) {
	refused(t, `cat /e"t"c/shadow`, `cat /et\c/shadow`, `cat '/etc'/shadow`, `cat $'\x2fetc\x2fshadow'`, `cat "/etc"/"shadow"`)
}

func TestEC152(t *testing.T) {
	refused(t, `cat /e??/shadow`, `cat /[e]tc/shad*`, `{cat,/etc/shadow}`, `cat /{etc,x}/shadow`, `cat /etc/{shadow,group}`)
}

func TestEC153(t *testing.T) {
	refused(t, `X=/etc; cat $X/shadow`, `X=/etc`, `cat $X/shadow`, `cat ${HOME}/.ssh/id_rsa`, `cat ~/.netrc ~root/x`,
		`cat ~/.netrc`, `cat ~root/x`, `cat ${X:=/etc}/passwd`, `cat $(printf /etc)/shadow`, `cat $OLDPWD/x`)
}

func TestEC154(t *testing.T) {
	refused(t, `cd / && cat etc/shadow`, `cd ..`, `pushd /etc`, `env -C / cat etc/shadow`, `git -C / status`, `make -C /`,
		`tar -C / -cf - etc`, `(cd $OLDPWD; ls)`)
}

func TestEC155(t *testing.T) {
	refused(t, `grep --file=/etc/shadow x`, `cc -I/etc x.c`, `dd if=/etc/shadow`, `curl -d@/etc/shadow x`, `cat</etc/shadow`,
		`echo x>/etc/p`, `echo x >|/etc/p`, `echo x &>/etc/p`, `2>/etc/p`, `cat <(cat /etc/shadow)`, `curl file:///etc/passwd`,
		`PAGER=/tmp/x git log`)
}

func TestEC157(t *testing.T) {
	refused(t, `find . -exec cat /etc/shadow \;`, `find . -fprintf /etc/p x`, `xargs cat <<< /etc/shadow`, `rg --pre cat`,
		`rg --hostname-bin ./x`, `sort --compress-program=./x`, `tar --checkpoint-action=exec=./x`,
		`git -c core.pager=./x log`, `git grep -O./x y`, `man -P ./x ls`, `eval "$(echo Y2F0Cg== | base64 -d)"`, `bash -c`,
		`sh <<< x`, `env bash`, `busybox sh`, `nice bash`)
}

func TestEC158(t *testing.T) {
	refused(t, `true && rm -rf /`, `true;rm -rf /`, `true|rm`, `true & rm -rf /`, "true \n rm -rf /",
		strings.Repeat("true;", 60)+"rm -rf /", `if true; then rm -rf /; fi`, `f(){ rm -rf /; }; f`, `f(){ rm -rf /; }`,
		`: $(rm -rf /)`, `echo "$(rm -rf /)"`, strings.Repeat("true && ", 20000)+"rm -rf /",
		strings.Repeat("true | ", 20000)+"rm -rf /", strings.Repeat("true\n", 20000)+"rm -rf /")
}

func TestEC161(t *testing.T) {
	refused(t, "bash <<'X'\ncat /etc/shadow\nX", "python3 - <<X\nopen(\"/etc/shadow\")\nX", "python3 <<'X'\nopen('/etc/shadow')\nX")
	allowed(t, "cat > doc.md <<X\ncat /etc/shadow\nX", "cat > doc.md <<X\nopen(\"/etc/shadow\")\nX", "cat > doc.md <<'X'\n$(cat /etc/shadow)\nX")
	refused(t, "cat > doc.md <<X\n$(cat /etc/shadow)\nX")
}

// EC-163 belongs to the providers; the guard's part is that what it is asked
// for by nobody is the strictest look, and never a silent pass.
func TestEC163(t *testing.T) {
	for _, s := range []string{"true", "ls", "cat x", "rm -rf /"} {
		if v := LookShell(s, Options{}); !v.Refused {
			t.Errorf("%q with zero options: allowed", s)
		}
		if v := LookArgv(strings.Fields(s), Options{}); !v.Refused {
			t.Errorf("%q as words with zero options: allowed", s)
		}
	}
	if v := LookArgv(nil, advise()); !v.Refused {
		t.Error("no command: allowed")
	}
}

func TestEC217(t *testing.T) {
	refused(t, `sudo -n true; echo $?`, `sudo -n true`)
}

func TestEC219(t *testing.T) {
	allowed(t, `awk '/err/{print $2}' log`, `awk '/a/,/b/' f`, `perl -ne '/x/ and print' f`, `gawk -F/ '{print $NF}' f`,
		`awk '/Módulo/ {n++}' plan.md`, `sed -n '/^## M/p' plan.md`)
	refused(t, `awk '/err/{print $2}' /etc/passwd`, `perl -ne '/x/ and print' /etc/passwd`, `gawk -F/ '{print $NF}' /etc/passwd`,
		`awk -f /etc/passwd`, `sed -n p /etc/hosts`)
}

func TestEC220(t *testing.T) {
	allowed(t, `sed -n '/start/,/end/p' f`, `sed -i 's#/old/path#/new/path#g' f`,
		`sed '/source: "tool",/{/origin:/!s/a/b/;}' f`, `sed 's|/usr|/opt|' f`, `sed -e '/^$/d' -e '/^\/\//d' f`)
	refused(t, `sed 's|/usr|/opt|' /etc/passwd`, `sed -e '/^$/d' -e '/^\/\//d' ../f`, `sed -i 's#/old/path#/new/path#g' ~/f`)
}

func TestEC221(t *testing.T) {
	allowed(t, `grep -rn '/api/v1/users' src`, `rg '/etc/passwd' docs`, `grep -E '^/(a|b)/' f`, `jq '.paths["/pets"]' o.json`,
		`find . -path '*/node_modules/*' -prune`, `git log -- ':/src'`, `tr / _ <f`, `cut -d/ -f2 f`, `basename /a/b`)
	refused(t, `grep -rn '/api/v1/users' /etc`, `rg x /etc/passwd`, `jq . /etc/x.json`, `find / -path '*/node_modules/*'`,
		`git log -- ../x`, `tr / _ </etc/passwd`, `cut -d/ -f2 /etc/passwd`)
}

func TestEC223(t *testing.T) {
	allowed(t, `make 2>/dev/null`, `/usr/bin/env python3 x.py`, "cat > run.sh <<'X'\n#!/bin/sh\necho hi\nX", "#!/bin/sh\necho hi",
		`cc -o a a.c >/dev/stdout`, `date +%d/%m/%Y`, `echo $((a/b))`, `curl https://example.com/etc/passwd`,
		`echo 'docker run -v /data:/data x'`, `echo docker run -v /data:/data x`, `grep 'docker run -v /data:/data x' README.md`,
		`git commit -m 'docker run -v /data:/data x'`, `cat `+ws+`/sub/x`, `cat "$PWD"/sub/x`, `cat /tmp/x`, `echo x > /tmp/x`)
	refused(t, `docker run -v /data:/data x`, `cat /proj/ws2/x`, `cat /proj/wsx`, `cat /proj`, `cat /tmpx`, `/usr/bin/env python3 /etc/x.py`,
		`cat /usr/bin/env`, `/usr/bin/../../etc/x`)
}
