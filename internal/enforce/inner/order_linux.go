package inner

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// readOrder waits for the order and takes over the command's descriptors.
func readOrder() (*enforce.Order, []int, error) {
	fds, err := receive()
	if err != nil {
		return nil, nil, err
	}
	if len(fds) != 1 && len(fds) != 4 {
		return nil, nil, errors.New("an order comes alone or with three descriptors")
	}
	f := os.NewFile(uintptr(fds[0]), "order")
	raw, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		return nil, nil, err
	}
	f.Close()
	if err := takeOver(fds[1:]); err != nil {
		return nil, nil, err
	}
	order, err := enforce.DecodeOrder(raw)
	if err != nil {
		return nil, nil, err
	}
	if len(order.Argv) == 0 || order.Terminal != (len(fds) == 1) {
		return nil, nil, errors.New("no command, or no descriptors for it")
	}
	n := 0
	for i := range order.Steps {
		n = max(n, int(order.Steps[i].Tree))
	}
	// The detached mounts come after the order, since they are mapped by this
	// process's own user namespace.
	var trees []int
	for len(trees) < n {
		more, err := receive()
		if err != nil {
			return nil, nil, err
		}
		trees = append(trees, more...)
	}
	return order, trees, nil
}

// takeOver makes descriptors 0 and up of those.
func takeOver(fds []int) error {
	for i, fd := range fds {
		if err := unix.Dup3(fd, i, 0); err != nil {
			return err
		}
		unix.Close(fd)
	}
	return nil
}

// openTerminal opens a terminal where the command can find it by name, as
// ttyname(3) does, and leaves all else about it to the supervisor.
func openTerminal() error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(master)
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	err = unix.Sendmsg(FDControl, Message{Kind: Terminal}.Encode(), unix.UnixRights(master), nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return err
	}
	fds, err := receive()
	if err != nil {
		return err
	}
	if len(fds) != 3 {
		return errors.New("no descriptors for the command")
	}
	return takeOver(fds)
}

// receive takes the descriptors of one packet from the supervisor. If that is
// gone before it has said anything, so are we.
func receive() ([]int, error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4*TreesPerPacket))
	for {
		n, got, _, _, err := unix.Recvmsg(FDControl, b[:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			os.Exit(125)
		}
		messages, err := unix.ParseSocketControlMessage(oob[:got])
		if err != nil || len(messages) != 1 {
			return nil, errors.New("a packet without descriptors")
		}
		return unix.ParseUnixRights(&messages[0])
	}
}
