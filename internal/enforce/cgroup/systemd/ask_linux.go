package systemd

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Manager is a systemd that can be asked.
type Manager struct {
	socket string
	owner  uint32
}

// patience is how long an answer may take.
const patience = 3 * time.Second

// Find returns the manager of a user: by the user's bus in $XDG_RUNTIME_DIR, or
// /run/user/UID; for root the machine's, by the system's bus. It connects to
// nothing. The socket, and the folder it lies in, must be the user's own.
func Find(uid int, runtime string) (Manager, error) {
	if uid == 0 {
		return find("/run/dbus/system_bus_socket", 0)
	}
	if !filepath.IsAbs(runtime) {
		runtime = "/run/user/" + strconv.Itoa(uid)
	}
	return find(filepath.Join(runtime, "bus"), uint32(uid))
}

// find takes a socket of owner's or root's, in a folder that nobody else can
// change.
func find(socket string, owner uint32) (Manager, error) {
	for _, c := range [...]struct {
		path string
		kind uint32
	}{{filepath.Dir(socket), unix.S_IFDIR}, {socket, unix.S_IFSOCK}} {
		var st unix.Stat_t
		if err := unix.Lstat(c.path, &st); err != nil {
			return Manager{}, &os.PathError{Op: "look at", Path: c.path, Err: err}
		}
		switch {
		case st.Mode&unix.S_IFMT != c.kind:
			return Manager{}, fmt.Errorf("%s is something else than it must be", c.path)
		case st.Uid != owner && st.Uid != 0:
			return Manager{}, fmt.Errorf("%s is another user's", c.path)
		case c.kind == unix.S_IFDIR && st.Mode&0o022 != 0:
			return Manager{}, fmt.Errorf("%s can be changed by others", c.path)
		}
	}
	return Manager{socket, owner}, nil
}

// Start asks for a scope. When it returns nil the manager has taken the task on;
// the processes move a moment later, or, if it fails after all, never.
func (m Manager) Start(s Scope) error {
	conn, err := net.DialTimeout("unix", m.socket, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if err := m.checkPeer(conn); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	if err := authenticate(conn, in); err != nil {
		return err
	}
	const first, second = 1, 2
	if _, err := conn.Write(append(hello(first), s.start(second)...)); err != nil {
		return err
	}
	const most = 100 // messages of others, such as the word that we have a name
	for range most {
		a, err := read(in)
		switch {
		case err != nil:
			return err
		case a.kind == methodError && (a.to == first || a.to == second):
			return fmt.Errorf("systemd: %s (%s)", printable(a.text), printable(a.name))
		case a.kind == methodReturn && a.to == second:
			return nil
		}
	}
	return errors.New("systemd does not answer")
}

// checkPeer refuses a bus on which somebody else began to listen: what the socket
// belonged to when it was looked at is not yet who is behind it. A bus that
// systemd starts was listened on by systemd.
func (m Manager) checkPeer(conn net.Conn) error {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return errors.New("not a socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var perr error
	if err := raw.Control(func(fd uintptr) { peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if perr != nil {
		return perr
	}
	if peer.Uid != m.owner && peer.Uid != 0 {
		return fmt.Errorf("%s is served by another user", m.socket)
	}
	return nil
}

// authenticate says who we are, which the kernel has told already.
func authenticate(w io.Writer, in *bufio.Reader) error {
	uid := hex.EncodeToString([]byte(strconv.Itoa(os.Geteuid())))
	if _, err := io.WriteString(w, "\x00AUTH EXTERNAL "+uid+"\r\n"); err != nil {
		return err
	}
	line, err := in.ReadSlice('\n') // no longer than its buffer
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(line), "OK ") {
		return errors.New("the bus does not take us: " + printable(strings.TrimSpace(string(line))))
	}
	_, err = io.WriteString(w, "BEGIN\r\n")
	return err
}

func read(in *bufio.Reader) (answer, error) {
	head, err := in.Peek(headLen)
	if err != nil {
		return answer{}, err
	}
	n, err := size(head)
	if err != nil {
		return answer{}, err
	}
	m := make([]byte, n)
	if _, err := io.ReadFull(in, m); err != nil {
		return answer{}, err
	}
	return parse(m)
}

// printable makes foreign text safe and short enough for one line of an error.
func printable(s string) string {
	const most = 200
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return -1
	}, s[:min(len(s), most)])
}
