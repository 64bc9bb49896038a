package gate

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw is a raw socket that waits without keeping a thread.
type raw struct {
	f    *os.File
	conn syscall.RawConn
}

func newRaw(fd int, filter []unix.SockFilter) (*raw, error) {
	if filter != nil {
		if err := attach(fd, filter); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("socket filter: %w", err)
		}
	}
	f := os.NewFile(uintptr(fd), "raw")
	conn, err := f.SyscallConn()
	return &raw{f, conn}, err
}

func (r *raw) Close() error { return r.f.Close() }

// read returns one packet, its sender and, of IPv6, where it was going.
func (r *raw) read(b []byte) (n int, src, dst netip.Addr, err error) {
	oob := make([]byte, 64)
	err = r.conn.Read(func(fd uintptr) bool {
		var got int
		var from unix.Sockaddr
		var rerr error
		n, got, _, from, rerr = unix.Recvmsg(int(fd), b, oob, 0)
		switch {
		case errors.Is(rerr, unix.EAGAIN):
			return false
		case rerr != nil: // nothing that stays, and no reason to spin
			n = 0
			time.Sleep(time.Millisecond)
			return true
		}
		if s, ok := from.(*unix.SockaddrInet6); ok {
			src = netip.AddrFrom16(s.Addr)
			if messages, err := unix.ParseSocketControlMessage(oob[:got]); err == nil {
				for _, m := range messages {
					if m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= 16 {
						dst = netip.AddrFrom16([16]byte(m.Data))
					}
				}
			}
		}
		return true
	})
	return n, src, dst, err
}

func (r *raw) send(b []byte, to netip.Addr) {
	var addr unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if to.Is4() {
		addr = &unix.SockaddrInet4{Addr: to.As4()}
	}
	// One that is lost is sent again by the client's kernel.
	_ = r.conn.Control(func(fd uintptr) { _ = unix.Sendto(int(fd), b, unix.MSG_DONTWAIT, addr) })
}

func attach(fd int, filter []unix.SockFilter) error {
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		uintptr(unsafe.Pointer(&p)), unsafe.Sizeof(p), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Classic BPF.
const (
	ldB, ldH, ldBX, ldHX = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS,
		unix.BPF_LD | unix.BPF_B | unix.BPF_IND, unix.BPF_LD | unix.BPF_H | unix.BPF_IND
	ldW     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	ldxIP   = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH // X = the length of an IPv4 header
	and     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	ifEqual = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	ret     = unix.BPF_RET | unix.BPF_K
	// markOff is SKF_AD_OFF + SKF_AD_MARK.
	markOff = 0xfffff000 + 20
	all     = 0xffffffff
)

// holds is the filter of a listener: no first packet but ours. It sees the
// packet from its TCP header on.
func holds(mark uint32) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: ldW, K: markOff}, {Code: ifEqual, K: mark, Jt: 4},
		{Code: ldB, K: 13}, {Code: and, K: flagSYN | flagACK}, {Code: ifEqual, K: flagSYN, Jf: 1},
		{Code: ret, K: 0}, {Code: ret, K: all},
	}
}

// sees is the filter of a raw socket: first packets that are not ours, from the
// IP header on (IPv4), or from the TCP header on.
func sees(mark uint32, v4 bool) []unix.SockFilter {
	load := []unix.SockFilter{{Code: ldB, K: 13}}
	if v4 {
		load = []unix.SockFilter{{Code: ldxIP, K: 0}, {Code: ldBX, K: 13}}
	}
	f := append([]unix.SockFilter{{Code: ldW, K: markOff}, {Code: ifEqual, K: mark, Jt: uint8(len(load) + 2)}}, load...)
	return append(f, unix.SockFilter{Code: and, K: flagSYN | flagACK}, unix.SockFilter{Code: ifEqual, K: flagSYN, Jt: 1},
		unix.SockFilter{Code: ret, K: 0}, unix.SockFilter{Code: ret, K: 0xffff})
}
