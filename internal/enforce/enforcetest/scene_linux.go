package enforcetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What an attacker says of one attack.
type said struct {
	Name  string
	Begin bool // it is about to try
	Error string
}

// Result is how one attack ended: Error is empty when the door opened.
type Result struct{ Error string }

// Open says that the attack succeeded.
func (r Result) Open() bool { return r.Error == "" }

// Word is the first argument of this program as an attacker.
const Word = "enforcetest-attack"

// Main is what an attacker does, if args ask for one; it then never returns. A
// program that is used with [Arguments] calls it first in main.
func Main(args []string) {
	if len(args) < 4 || args[1] != Word {
		return
	}
	raw, err := os.ReadFile(args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	var s Scene
	if err := json.Unmarshal(raw, &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	signal.Ignore(unix.SIGXFSZ, unix.SIGPIPE, unix.SIGHUP, unix.SIGTTOU)
	switch mode := args[2]; mode {
	case "one":
		os.Exit(one(&s, args[4]))
	case "masked":
		s.Control = true
		all(&s, args[0], args[3], func(a Attack) bool { return a.Masked })
	case "control":
		s.Control = true
		all(&s, args[0], args[3], func(a Attack) bool { return !a.Masked })
	default:
		under := Setup(strings.TrimPrefix(mode, "inside-"))
		all(&s, args[0], args[3], func(a Attack) bool { return a.Under == under })
	}
	os.Exit(0)
}

// all tries the attacks that are wanted, one after the other, and says how each
// of them ended.
func all(s *Scene, self, scene string, wanted func(Attack) bool) {
	out := json.NewEncoder(os.Stdout)
	for _, a := range Attacks() {
		if a.Try == nil || !wanted(a) {
			continue
		}
		_ = out.Encode(said{Name: a.Name, Begin: true})
		var err error
		switch {
		case a.Root && s.Control && !s.Real:
			err = errors.New("open to root alone")
		case s.Control && a.Masked:
			if err = mask(s); err != nil {
				fmt.Fprintln(os.Stderr, "control:", err)
				os.Exit(3)
			}
			err = try(s, a)
		case a.Alone || a.Nested:
			err = apart(s, a, self, scene)
		default:
			err = try(s, a)
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		_ = out.Encode(said{Name: a.Name, Error: text})
	}
}

// try carries out an attack on a thread that dies with it.
func try(s *Scene, a Attack) (err error) {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("panic: %v", p)
			}
		}()
		done <- a.Try(s)
	}()
	return <-done
}

// apart carries out an attack in a process of its own.
func apart(s *Scene, a Attack, self, scene string) error {
	words := []string{Word, "one", scene, a.Name}
	cmd := exec.Command(self, words...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if a.Nested {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if s.Control {
		cmd.Env = append(os.Environ(), "ENFORCETEST_CONTROL=1")
	}
	var said bytes.Buffer
	cmd.Stdout = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

func one(s *Scene, name string) int {
	s.Control = os.Getenv("ENFORCETEST_CONTROL") != ""
	for _, a := range Attacks() {
		if a.Name != name {
			continue
		}
		if err := try(s, a); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	fmt.Println("no such attack")
	return 3
}

// mask puts over the hidden file and the locked ones what a sandbox puts there,
// and nothing that would keep them there.
func mask(s *Scene) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	bind := func(from, to string, flags uintptr) error {
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		return unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|flags, "")
	}
	// What a user namespace inherits locked cannot be left out.
	var st unix.Statfs_t
	if err := unix.Statfs(s.Workspace, &st); err != nil {
		return err
	}
	keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_RELATIME)
	for _, f := range []string{".env", ".git/config", "away"} { // what the last attack left
		for unix.Unmount(filepath.Join(s.Workspace, f), unix.MNT_DETACH) == nil {
		}
	}
	for unix.Unmount(s.ReadOnly, unix.MNT_DETACH) == nil {
	}
	stand := filepath.Join(s.Workspace, "stand-in")
	if err := os.WriteFile(stand, nil, 0o600); err != nil {
		return err
	}
	return errors.Join(
		bind(stand, filepath.Join(s.Workspace, ".env"), keep),
		bind(s.ReadOnly, s.ReadOnly, keep|unix.MS_RDONLY),
		bind(filepath.Join(s.Workspace, ".git/config"), filepath.Join(s.Workspace, ".git/config"), keep|unix.MS_RDONLY))
}

// Read takes what an attacker said apart. Attacks that began and did not end are
// an error.
func Read(out string) (map[string]Result, error) {
	results := map[string]Result{}
	begun := ""
	for line := range strings.Lines(out) {
		var w said
		if err := json.Unmarshal([]byte(line), &w); err != nil {
			return results, fmt.Errorf("the attacker said %q", line)
		}
		if w.Begin {
			begun = w.Name
			continue
		}
		results[w.Name], begun = Result{w.Error}, ""
	}
	if begun != "" {
		return results, fmt.Errorf("the attacker died in %q", begun)
	}
	return results, nil
}

// Arguments are the words that start program as an attacker under a setup.
func Arguments(program string, under Setup, scene string) []string {
	return []string{program, Word, "inside-" + string(under), scene}
}
