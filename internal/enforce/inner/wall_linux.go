package inner

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/landlock"
)

// secondWall is what Landlock closes behind the namespaces: a command that finds
// a way past a mount, or is handed a descriptor from outside, still reads and
// executes only what lies in its world, and writes only where the steps let it.
// The descriptors in it are open until done.
func secondWall(order *enforce.Order) (rules landlock.Ruleset, done func(), err error) {
	// A command's own loopback has any port, and rules know no addresses.
	rules = landlock.Ruleset{AnyFile: !order.WallFiles, AnySocket: !order.WallSockets, AnyTCP: true, AnyUDP: true,
		AnyAbstract: !order.ScopeAbstract, AnySignal: !order.ScopeSignal}
	var open []int
	done = func() {
		for _, fd := range open {
			unix.Close(fd)
		}
	}
	if rules.AnyFile {
		return rules, done, nil
	}
	at := func(path string) (landlock.Path, bool, error) {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
		switch err {
		case nil:
			open = append(open, fd)
			return landlock.Path{FD: fd, Name: path}, true, nil
		case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
			return landlock.Path{}, false, nil // not there, or not for the command: one rule less
		}
		return landlock.Path{}, false, err
	}
	abi, err := landlock.ABI()
	if err != nil {
		return rules, done, err
	}
	root, ok, err := at("/")
	if err != nil || !ok {
		return rules, done, err
	}
	rules.Read, rules.Exec = []landlock.Path{root}, []landlock.Path{root}
	for _, o := range enforce.Openings(order.Steps) {
		p, ok, err := at(o.Path)
		if err != nil {
			return rules, done, err
		}
		if !ok {
			continue
		}
		rules.Write = append(rules.Write, p)
		// What the root allows, said once more where it is nearer: the kernel looks for
		// it from a file upwards.
		rules.Read, rules.Exec = append(rules.Read, p), append(rules.Exec, p)
		if o.Devices {
			rules.Device = append(rules.Device, p)
		}
	}
	// What the command is given may be opened again, as /dev/stdin: the null device
	// of the host, and under bwrap a terminal that is not among the sandbox's own.
	for fd := range 3 {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return rules, done, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFCHR {
			continue
		}
		given := landlock.Path{FD: fd, Name: "a device that the command is given"}
		rules.Read, rules.Write = append(rules.Read, given), append(rules.Write, given)
		if order.Terminal {
			rules.Device = append(rules.Device, given)
		}
	}
	// What an older kernel lacks of file rules is the mounts' alone to hold.
	if rules, _ = rules.Downgrade(abi); rules.AnyFile {
		return rules, done, errors.New("this kernel has no rules for files")
	}
	return rules, done, nil
}
