#!/bin/bash
# Runs the same probes in an example project twice: as any agent's command would
# run, and through tether. All of it happens in a temporary folder of its own.
set -eu
tether=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
# The example lies under a "home" of its own, so that yours is not touched.
top=$(mktemp -d "${TMPDIR:-/tmp}/tether-demo.XXXXXX")
nap=300.$$
naps() { pgrep -f "^sleep $nap\$" || true; }
cleanup() {
	exec 7>&- # the listener ends with its input
	for pid in $(naps); do kill "$pid" 2>/dev/null || true; done
	rm -rf "$top"
}
trap cleanup EXIT

export DEMO_HOME="$top/home" DEMO_API_TOKEN=sk-demo-0123456789 DEMO_PID=$$ DEMO_NAP=$nap
project="$DEMO_HOME/project"
mkdir -p "$DEMO_HOME/.ssh" "$project"
cd "$project"
printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\nZGVtbw==\n-----END OPENSSH PRIVATE KEY-----\n' >"$DEMO_HOME/.ssh/id_ed25519"
cp "$DEMO_HOME/.ssh/id_ed25519" deploy.pem
echo 'DATABASE_PASSWORD=hunter2' >.env
printf 'hello: hello.in\n\tcp $< $@ && chmod +x $@\ncheck: hello\n\t./hello | grep -qx hello\n' >Makefile
printf '#!/bin/sh\necho hello\n' >hello.in
printf '.env\ndeploy.pem\nhello\nprobe.sh\n' >.gitignore
cp "$here/probe.sh" .
git init -q
git config user.name Demo
git config user.email demo@example.test
git add -A
git commit -qm hello

(cd "$here/.." && go build -o "$top/listen" ./demo/listen)
mkfifo "$top/input" "$top/port"
"$top/listen" <"$top/input" >"$top/port" &
exec 7>"$top/input"
read -r DEMO_PORT <"$top/port"
export DEMO_PORT

# Plain: in a copy, since this one is not protected.
cp -r "$project" "$top/plain"
plain=$(cd "$top/plain" && bash probe.sh)
plain="$plain"$'\n'"left=$([ -n "$(naps)" ] && echo yes || echo no)"
for pid in $(naps); do kill "$pid"; done
rm -f "$DEMO_HOME/outside.txt"

# The same through tether, without a network, on a terminal or not.
command='tether run --no-network -- bash probe.sh'
inside=$("$tether" run --no-network --env DEMO_HOME --env DEMO_PID --env DEMO_PORT --env DEMO_NAP -- bash probe.sh)
inside="$inside"$'\n'"left=$([ -n "$(naps)" ] && echo yes || echo no)"

bad=0
row() { # name, text, the right answer inside
	local a b mark='ok'
	a=$(sed -n "s/^$1=//p" <<<"$plain")
	b=$(sed -n "s/^$1=//p" <<<"$inside")
	[ "$b" = "$3" ] || { mark='WRONG' bad=1; }
	printf '  %-42s %-7s %-7s %s\n' "$2" "$a" "$b" "$mark"
}
printf '\n  %-42s %-7s %-7s\n' 'A command in this project can ...' plain tether
row build 'build and run the program' yes
row test 'run its tests' yes
row commit 'commit to git' yes
row env 'read .env' no
row key 'read the private key deploy.pem' no
row home 'read ~/.ssh/id_ed25519' no
row token "see the caller's API token" no
row hook 'plant a git hook that you would run' no
row gitconf 'make your git run a program' no
row write 'write outside the project' no
row host 'see a process of yours' no
row net "reach your machine's own services" no
row left 'leave a process running' no
printf '\n  what was typed: %s\n\n' "$command"
exit "$bad"
