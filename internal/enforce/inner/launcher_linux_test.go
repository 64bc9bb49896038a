package inner

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// TestOwn: what was made for the command becomes its own; a file of the host's,
// such as the /dev/null that an empty input comes from, stays whose it is.
func TestOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	reading, writing, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	defer writing.Close()
	null := filepath.Join(t.TempDir(), "null") // never the machine's own
	if err := unix.Mknod(null, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err == unix.EPERM {
		t.Skip("only root of the machine makes devices")
	} else if err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile(null, os.O_RDWR, 0)
	if errors.Is(err, unix.EACCES) {
		t.Skip("the folder is mounted without devices")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	regular, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer regular.Close()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	terminal := os.NewFile(slave, "terminal")
	defer terminal.Close()
	const id = 54321
	for _, tt := range []struct {
		what string
		file *os.File
		want uint32
	}{{"a pipe to read", reading, id}, {"a pipe to write", writing, id}, {"a terminal", terminal, id}, {"a device", device, 0}, {"a file", regular, 0}} {
		fd := int(tt.file.Fd())
		if err := own(fd, &enforce.WallsOrder{Change: true, UID: id, GID: id}); err != nil {
			t.Errorf("%s: %v", tt.what, err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Uid != tt.want || st.Gid != tt.want {
			t.Errorf("%s: it is %d:%d's, want %d's (%v)", tt.what, st.Uid, st.Gid, tt.want, err)
		}
	}
}
