package guard

import (
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/policy"
)

func TestReadOnlyAllows(t *testing.T) {
	for _, s := range []string{
		`ls -la`, `cat x /etc/hosts`, `grep -rn x . | head`, `rg x`, `rg -n '/a' src`, `git status`, `git log --oneline -5`, `git diff HEAD~1`, `git show HEAD:x`, `git branch`, `git branch -a`, `git branch --list 'x*'`, `git rev-parse HEAD`, `git ls-files`, `git blame x`, `git describe --tags`, `git config --get user.name`, `git config --list`, `git config -l`, `git remote -v`, `git remote`, `git remote get-url origin`, `git tag`, `git tag -l 'v*'`, `git stash list`, `git -C sub log`, `git --no-pager log`, `git grep -n x`, `git reflog`, `git worktree list`, `git log -- "$x"`, `git diff --stat *.go`,
		`find . -name '*.go'`, `find . -type f -newer x`, `find /etc -maxdepth 1`, `sed -n '1,5p' x`, `sed 's/a/b/' x`, `sed 's/a/b/w /dev/stdout' x`, `awk '{print $1}' x`, `awk '{print > "/dev/stderr"}' x`, `gawk -F/ '{print $NF}' x`, `head x`, `tail -f x`, `wc -l x`, `sort -k2 x`, `sort -t/ x`, `uniq -c x`, `uniq`, `cut -d/ -f1 x`, `tr a b`, `stat x`, `file x`, `du -sh .`, `df .`, `pwd`, `echo $HOME`, `printf '%s' "$x"`, `env`, `env A=b ls`, `id`, `whoami`, `date`, `date +%s`, `uname -a`, `hostname`, `hostname -f`, `ps aux`, `top -bn1`, `free -m`, `uptime`, `nproc`, `tty`, `which sh`, `type ls`, `command -v ls`, `test -f x`, `[ -f x ]`, `[[ -f x ]]`, `true`, `false`, `basename /a/b`, `dirname x`, `realpath x`, `readlink -f x`, `diff a b`, `diff -u a b`, `cmp a b`, `comm a b`, `jq . x`, `xxd x`, `xxd -l 16 x`, `od -c x`, `hexdump -C x`, `md5sum x`, `sha256sum x`, `tree`, `less x`, `nl x`, `tac x`, `rev x`, `column -t x`, `paste a b`, `fold x`, `seq 3`, `sleep 0`, `cd sub && ls`, `cd / && ls`,
		`ls 2>/dev/null`, `ls >/dev/null 2>&1`, `ls &>/dev/null`, `ls >&2`, `ls 2>&-`, `cat < x`, `cat <<X
hi
X`, `cat <<< hi`, `exec 3<x`, `for f in *; do cat "$f"; done`, `while read -r l; do echo "$l"; done <x`, `if ls; then pwd; fi`, `case $x in a) ls;; esac`, `(ls; pwd)`, `{ ls; }`, `f() { ls; }; f`, `x=$(ls); echo "$x"`, "echo `ls`", `cat <(ls)`, `ls | xargs cat`, `ls | xargs -n1 echo`, `find . -name x -print0 | xargs -0 grep y`, `sh -c 'ls | wc -l'`, `bash -c "cat x"`, `nice ls`, `timeout 5 ls`, `time ls`, `nohup ls`, `stdbuf -oL ls`, `command ls`, `builtin echo x`, `exec ls`, `FOO=1 ls`, `LC_ALL=C sort x`, `export LC_ALL=C; sort x`, `/bin/ls`, `/usr/bin/env ls`, `ls && ls || ls; ls & wait`, `! ls`, `echo $((1+2))`, `i=0; echo $((i+1))`, `ls *`, `wc -l *.go`, `cat $x`, `grep "$x" y`, `watch -n 1 ls`, `trap 'ls' EXIT`, `trap - EXIT`, ``,
	} {
		if v := LookShell(s, readOnly()); v.Refused {
			t.Errorf("%q: refused (%s), want allowed", s, v.Reason)
		}
	}
}

func TestReadOnlyRefuses(t *testing.T) {
	for _, s := range []string{
		`touch x`, `rm x`, `mkdir x`, `cp a b`, `mv a b`, `ln -s a b`, `chmod +x x`, `tee x`, `make`, `npm test`, `go test`, `python3 x.py`, `python3 -c 1`, `node x.js`, `perl -ne 1 x`, `bash x.sh`, `./x`, `sub/x`, `../x`, `/opt/x/ls`, `./ls`, `ssh x`, `curl x`, `wget x`, `tar xf x`, `dd if=x`, `vim x`, `nano x`, `docker ps`, `sudo ls`, `kill 1`, `unknown`, `install a b`, `truncate -s0 x`, `patch`, `split x`, `tail -f x | tee y`,
		`ls > x`, `ls >> x`, `ls &> x`, `ls 2> x`, `ls >| x`, `ls <> x`, `> x`, `ls >& x`, `ls >&$x`, `ls > $x`, `ls > "$x"`, `ls > /dev/sda`, `echo > /dev/tcp/1/2`, `cat < /dev/tcp/1/2`, `exec 3>x`, `exec {fd}>x`, `{ ls; } > x`, `(ls) > x`, `for f in a; do ls; done > x`, `if ls; then ls; fi >x`, `f() { ls; } > x`, `cat <<X > x
X`, `ls > /dev/../x`, `ls > >(cat > x)`, `ls >{a,b}`,
		`ls; rm x`, `ls && rm x`, `ls || rm x`, `ls | rm x`, `ls & rm x`, "ls\nrm x", `(rm x)`, `{ rm x; }`, `$(rm x)`, `echo $(rm x)`, `echo "$(rm x)"`, "echo `rm x`", `cat <(rm x)`, `cat >(rm x)`, `f() { rm x; }`, `f() { rm x; }; f`, `function f { rm x; }`, `for f in $(rm x); do ls; done`, `for f in a; do rm x; done`, `while rm x; do ls; done`, `until rm x; do ls; done`, `if rm x; then ls; fi`, `if ls; then rm x; fi`, `if ls; then ls; elif rm x; then ls; fi`, `if ls; then ls; else rm x; fi`, `case x in x) rm x;; esac`, `case $(rm x) in x) ;; esac`, `select x in a; do rm x; done`, `coproc rm x`, `time rm x`, `! rm x`, `x=$(rm x)`, `x=$(rm x) ls`, `echo ${x:-$(rm x)}`, `echo $(( $(rm x) ))`, `echo ${a[$(rm x)]}`, `[[ -n $(rm x) ]]`, `((x=$(rm x)))`, `cat <<X
$(rm x)
X`, `cat <<< $(rm x)`, `ls > $(rm x)`, `export x=$(rm x)`, `a=($(rm x))`, `trap 'rm x' EXIT`, `trap "$x" EXIT`,
		`env rm x`, `env A=b rm x`, `env -i rm x`, `env -S 'rm x'`, `nice rm x`, `nice -n 5 rm x`, `timeout 5 rm x`, `timeout -k 1 5 rm x`, `nohup rm x`, `stdbuf -oL rm x`, `command rm x`, `builtin command rm x`, `exec rm x`, `\time rm x`, `xargs rm`, `ls | xargs rm`, `ls | xargs -0 -n 1 rm`, `xargs -I{} rm {}`, `xargs -I{} {} x`, `find . -exec rm {} \;`, `find . -exec ls {} \;`, `find . -execdir ls {} +`, `find . -ok rm {} \;`, `find . -okdir rm {} \;`, `find . -delete`, `find . -fprint x`, `find . -fprint0 x`, `find . -fprintf x y`, `find . -fls x`, `find . $x`, `find . "$x"`, `find . $(echo -delete)`, `x=-delete; find . $x`, `find . -{delete,ls}`, `find . -del""ete`, `find . -delet\e`, `find . $'-delete'`, `watch rm x`, `watch -x rm x`, `flock x rm y`, `busybox rm x`, `sh -c 'rm x'`, `bash -ec 'rm x'`, `sh -c "$x"`, `sh`, `sh -s`, `ls | sh`, `sh <<< 'rm x'`, `sh <<X
rm x
X`, `eval rm x`, `eval ls`, `. ./x`, `source x`, `$x`, `${x}`, `"$x" y`, `$(echo rm) x`, `r$x y`, `r? x`, `{rm,x}`, `x=rm; $x y`, `x=rm; "$x" y`, `alias ls=rm; ls`, `hash -p ./x ls`, `enable -f x y`, `shopt -s expand_aliases`, `complete -C x`, `mapfile -C rm x`, `history -s x`, `fc -s`, `bind -x x`, `!(ls)`, `echo ${x@P}`, `echo ${!x}`, `read x; echo $((x))`, `test -v 'a[$(rm x)]'`, `printf -v 'a[$(rm x)]' y`, `ls(){ rm x; }; ls`, `rm x; rm() { ls; }`, `if false; then rm() { ls; }; fi; rm x`, `(rm() { ls; }); rm x`, `rm() { ls; } & rm x`, `false && rm() { ls; }; rm x`, `false || { rm() { ls; }; }; make() { ls; } | ls; make`,
		`PAGER=./x git log`, `GIT_PAGER=./x git log`, `GIT_EXTERNAL_DIFF=./x git diff`, `LD_PRELOAD=./x ls`, `PATH=. ls`, `export PATH=.; ls`, `env PATH=. ls`, `env LD_PRELOAD=x ls`, `BASH_ENV=x ls`, `PS4='$(rm x)'; set -x`, `LESSOPEN='|x' less y`, `IFS=x`, `RIPGREP_CONFIG_PATH=x rg y`, `read PATH`,
		`sort -o x y`, `sort -ox y`, `sort -uo x y`, `sort --output=x y`, `sort --out x y`, `sort --compress-program=x y`, `sort $x y`, `sort "$x"`, `uniq a b`, `uniq $x`, `xxd -r x`, `xxd a b`, `tree -o x`, `date -s x`, `date --set=x`, `date --s=x`, `hostname x`, `hostname -F x`, `top`, `file -C`, `file -C -m x`, `less '+!rm x' y`, `less -o x y`, `less -Ox y`, `rg --pre x y`, `rg --pre=x y`, `rg --hostname-bin x`, `rg "$x"`, `diff -l a b`, `fd -x rm`, `fd --exec rm`, `fd x -X rm`, `man ls`,
		`sed -i s/a/b/ x`, `sed -i.bak s/a/b/ x`, `sed -ni s/a/b/ x`, `sed --in-place s/a/b/ x`, `sed --in s/a/b/ x`, `sed 'w x' y`, `sed 's/a/b/w x' y`, `sed 's/a/b/gw x' y`, `sed 's/a/b/e' y`, `sed e y`, `sed '1e rm x' y`, `sed -f x y`, `sed -n '/a/w x' y`, `sed -e p -e 'w x' y`, `sed "$x" y`, `sed $x y`, `awk 'BEGIN{system("rm x")}'`, `awk '{print > "x"}' y`, `awk '{print >> "x"}' y`, `awk '{print > $1}' y`, `awk '{print | "sh"}' y`, `awk -f x y`, `awk "$x" y`, `gawk -i inplace 1 x`, `awk '"rm x" | getline'`,
		`git commit -m x`, `git add x`, `git checkout x`, `git reset --hard`, `git clean -fd`, `git push`, `git pull`, `git fetch`, `git clone x`, `git stash`, `git stash drop`, `git branch x`, `git branch -D x`, `git branch -d x`, `git branch -m x`, `git branch --list -D x`, `git branch --edit-description`, `git tag x`, `git tag -d x`, `git tag -l -d x`, `git remote add x y`, `git remote set-url x y`, `git remote update`, `git config x.y z`, `git config --unset x`, `git config --edit`, `git config x.y --get`, `git -c core.pager=x log`, `git -c core.fsmonitor=x status`, `git --exec-path=x log`, `git --git-dir=x log`, `git --git-dir x log`, `git -p log`, `git log --output=x`, `git log --outp=x`, `git diff --output x`, `git diff --ext-diff`, `git grep -O x`, `git grep -Ox y`, `git grep --open-files-in-pager x`, `git $x`, `git "$x"`, `git log $x`, `git log "$x"`, `git worktree add x`, `git submodule update`, `git submodule foreach ls`, `git notes add`, `git bisect run x`, `git rebase x`, `git gc`, `git apply x`, `git init`, `git difftool`, `git help log`, `git archive -o x HEAD`, `git format-patch x`, `git reflog expire`, `git bundle create x y`, `git x`, `f() { ls; }; unset -f f; f`, `f() { ls; }; unset f; f`, `f() { ls; }; command f`, `f() { ls; }; env f`, `f() { ls; }; ls | xargs f`, `f() { ls; }; sh -c f`, `rm() { ls; } | ls; rm x`, `rm() { ls; } >y; rm x`, `XDG_CONFIG_HOME=x git log`, `set -k; git log PAGER=x`, `nm --plugin=x y`, `ls >&'x$(rm y)'`, `ls >&2'$(rm y)'`, `LESSKEYIN=x less y`,
	} {
		o := readOnly()
		o.Commands = policy.Any
		if v := LookShell(s, o); v.Refused {
			t.Errorf("%q with any command under a kernel: refused (%s)", s, v.Reason)
		}
		v := LookShell(s, readOnly())
		if !v.Refused {
			t.Errorf("%q: allowed, want refused", s)
		} else if !strings.HasPrefix(v.Reason, "read-only: ") || v.Hint == "" {
			t.Errorf("%q: reason %q, hint %q", s, v.Reason, v.Hint)
		}
	}
}

// Both at once: the guard as provider of a read-only policy.
func TestReadOnlyEnforced(t *testing.T) {
	o := enforce()
	o.Commands = policy.Inspection
	for s, ok := range map[string]bool{`ls`: true, `cat x`: true, `cat /etc/passwd`: false, `touch x`: false, `cat $x`: false, `echo $x`: true} {
		if v := LookShell(s, o); v.Refused == ok {
			t.Errorf("%q: refused %v (%s)", s, v.Refused, v.Reason)
		}
	}
}
