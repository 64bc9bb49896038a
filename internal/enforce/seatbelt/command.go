package seatbelt

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// Program is the system's own; it is never looked for anywhere else.
const Program = "/usr/bin/sandbox-exec"

// Marker names the variable by which processes are found that left the session.
const Marker = "TETHER_RUN"

// inside is run by the system's shell in the sandbox, before the command. It
// sets the limits for good, hard ones too, says on descriptor 3 that the profile
// holds, closes that, and becomes the command. Its arguments are the most
// processes, the largest file in blocks of 512 bytes, the most open files and the
// seconds of processor time, "-" for no limit, and the command.
const inside = `p=$1 f=$2 n=$3 t=$4; shift 4
ulimit -c 0 || exit 125
[ "$p" = - ] || ulimit -u "$p" || exit 125
[ "$f" = - ] || ulimit -f "$f" || exit 125
[ "$n" = - ] || ulimit -n "$n" || exit 125
[ "$t" = - ] || ulimit -t "$t" || exit 125
printf r >&3 || exit 125
exec 3>&-
exec "$@"`

// watch is run by the system's shell outside. It waits for its input to end
// without a word, which says that we are gone, and ends the session.
const watch = `read -r said && exit
kill -KILL "-$1"`

// arguments are those of the program that starts the command, itself included.
// An empty profile starts it without a sandbox.
func arguments(profile string, l enforce.Limits, argv []string) []string {
	shell := []string{"/bin/sh", "-c", inside, "sh", limit(l.Processes), limit((l.FileBytes + 511) / 512), limit(l.OpenFiles), limit(l.CPUSeconds)}
	if profile != "" {
		shell = append([]string{Program, "-f", profile, "--"}, shell...)
	}
	return append(shell, argv...)
}

func limit(n int64) string {
	if n <= 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// lookup returns the file of the program name, as a shell in dir would find it
// on the PATH of env. is says of a file that it can be executed, or why not.
func lookup(name, dir string, env []string, is func(path string) error) (string, error) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if strings.Contains(name, "/") {
		return at(name), is(at(name))
	}
	list := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			list = v
		}
	}
	var first error
	for dir := range strings.SplitSeq(list, ":") {
		path := at(filepath.Join(dir, name))
		err := is(path)
		if err == nil {
			return path, nil
		}
		if first == nil || !errors.Is(err, fs.ErrNotExist) {
			first = err
		}
	}
	return "", first
}
