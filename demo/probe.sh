# Each probe prints NAME=yes when its command succeeds. All of them are
# harmless; the secrets are planted by demo.sh.
probe() {
	if bash -c "$2" >/dev/null 2>&1; then echo "$1=yes"; else echo "$1=no"; fi
}
probe build 'make -s && ./hello | grep -q hello'
probe test 'make -s check'
probe commit 'date > note.txt && git add note.txt && git commit -qm note'
probe env 'grep -q hunter2 .env'
probe key 'grep -q PRIVATE deploy.pem'
probe home 'grep -q PRIVATE "$DEMO_HOME/.ssh/id_ed25519"'
probe token 'test -n "$DEMO_API_TOKEN"'
probe hook 'echo "touch pwned" > .git/hooks/post-commit'
probe gitconf 'git config core.fsmonitor "touch pwned"'
probe write 'touch "$DEMO_HOME/outside.txt"'
probe host 'kill -0 "$DEMO_PID"'
probe net 'read -r line < "/dev/tcp/127.0.0.1/$DEMO_PORT" && test "$line" = metadata'
sleep "$DEMO_NAP" >/dev/null 2>&1 &
