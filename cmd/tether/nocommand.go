package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
)

// notFound tells of a command that is no program. Most often it was meant for a
// shell. Hints are what to type after the flags, so that none gets lost.
func notFound(workspace string, args []string) error {
	name := args[0]
	if name == "" {
		return fault.New(fault.CommandNotFound, "the name of the program is empty").WithHint("tether run -- CMD [ARG...]")
	}
	err := fault.New(fault.CommandNotFound, "there is no program "+name+" inside the sandbox")
	line := tether.CommandLine(args)
	switch info := ofWorkspace(workspace, name); {
	case len(args) == 1 && strings.ContainsAny(name, " ;|&<>$"):
		return err.WithHint("-- sh -c " + line)
	case forShell(name):
		return err.WithHint("-- sh -c " + tether.CommandLine([]string{line}))
	case info == nil || !info.Mode().IsRegular():
		return err
	case strings.Contains(name, "/"):
		return fault.New(fault.CommandNotFound, "what "+name+" is started with is not there inside the sandbox: the interpreter in its first line, or its loader")
	}
	return err.WithHint("-- ./" + line)
}

// notExecutable tells of a file that is there and cannot be started.
func notExecutable(workspace, name string) error {
	err := fault.New(fault.CommandNotExecutable, name+" cannot be executed")
	switch info := ofWorkspace(workspace, name); {
	case info == nil:
		return err
	case info.IsDir():
		return fault.New(fault.CommandNotExecutable, name+" is a folder and cannot be executed")
	case info.Mode()&0o111 == 0:
		return err.WithHint("chmod +x " + tether.CommandLine([]string{name}))
	}
	return err
}

// forShell tells of a word that only a shell knows, such as cd or X=1.
func forShell(name string) bool {
	if before, _, ok := strings.Cut(name, "="); ok {
		return before != "" && !strings.Contains(before, "/")
	}
	switch name {
	case "cd", "export", "source", ".", "alias", "set", "unset", "ulimit", "umask", "exec", "eval", "if", "for", "while", "{", "(":
		return true
	}
	return false
}

// ofWorkspace looks at a file of the workspace by the name that a command has
// for it, which starts where we are if that is in the workspace. It is nil for
// what lies elsewhere or cannot be looked at: hints alone depend on it.
func ofWorkspace(workspace, name string) fs.FileInfo {
	here, err := os.Getwd()
	if err != nil {
		return nil
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(here, name)
	}
	if !strings.HasPrefix(here+"/", workspace+"/") || !strings.HasPrefix(name+"/", workspace+"/") {
		return nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil
	}
	return info
}
