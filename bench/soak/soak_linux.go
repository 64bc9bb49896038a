package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The server's addresses are public ones, so that the gate's rules are the usual.
const (
	here, there = "93.184.216.1/24", "93.184.216.34/24"
	server      = "93.184.216.34"
	firstPort   = 9000
	ports       = 16 // so that no port of the client's is used twice within a minute
	clients     = 256
	patience    = 2 * time.Minute // for one connection
)

// soak takes the number of connections, the share of packets that is lost in
// percent, the delay one way, and the command line that runs a program inside.
func soak(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: soak CONNECTIONS LOSS-PERCENT DELAY COMMAND...")
	}
	loss, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return err
	}
	delay, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	// The thread leaves for another namespace, and never comes back.
	ready := make(chan error, 1)
	var l *link
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	near, err := device("soak0", here)
	if err != nil {
		return err
	}
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			ready <- err
			return
		}
		far, err := device("soak1", there)
		if err == nil {
			l = &link{loss: loss / 100, delay: delay}
			go l.carry(near, far)
			go l.carry(far, near)
			for i := range ports {
				var s net.Listener
				if s, err = net.Listen("tcp", server+":"+strconv.Itoa(firstPort+i)); err != nil {
					break
				}
				go serve(s)
			}
		}
		ready <- err
		select {}
	}()
	if err := <-ready; err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tether-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "client"), b, 0o755); err != nil {
		return err
	}
	begin := time.Now()
	cmd := exec.Command(args[3], append(args[4:], "./client", clientWord, args[0], server)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	err = cmd.Run()
	took := time.Since(begin)
	fmt.Printf("packets %d, lost %d (%.2f %%), delay %v one way; took %v\n", l.seen.Load(), l.lost.Load(),
		100*float64(l.lost.Load())/float64(max(1, l.seen.Load())), delay, took.Round(time.Second))
	return err
}

// device makes a TUN device with an address in the thread's namespace.
func device(name, address string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w (some machines keep it for root)", err)
	}
	r, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	r.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
		return nil, fmt.Errorf("TUNSETIFF: %w", err)
	}
	for _, line := range []string{"link set lo up", "addr add " + address + " dev " + name, "link set " + name + " txqueuelen 10000 up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// link loses and delays packets.
type link struct {
	loss       float64
	delay      time.Duration
	seen, lost atomic.Int64
}

func (l *link) carry(from, to *os.File) {
	type packet struct {
		due time.Time
		b   []byte
	}
	queue := make(chan packet, 1<<16)
	go func() {
		for p := range queue {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.b)
		}
	}()
	b := make([]byte, 65536)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		l.seen.Add(1)
		if rand.Float64() < l.loss {
			l.lost.Add(1)
			continue
		}
		queue <- packet{time.Now().Add(l.delay), append([]byte(nil), b[:n]...)}
	}
}

// serve answers eight bytes by the same, turned around, and ends first.
func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var b [8]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return
			}
			binary.BigEndian.PutUint64(b[:], ^binary.BigEndian.Uint64(b[:]))
			_, _ = c.Write(b[:])
		}()
	}
}

// client makes count connections to the host at, many at once, and fails if one
// of them is not answered whole.
func client(count, at string) error {
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil || n == 0 {
		return errors.New("the number of connections is a whole number above 0")
	}
	var next, lost atomic.Uint64
	var slowest atomic.Int64
	var once sync.Once
	var first error
	var wg sync.WaitGroup
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				t := time.Now()
				if err := one(at+":"+strconv.FormatUint(firstPort+i%ports, 10), i); err != nil {
					lost.Add(1)
					once.Do(func() { first = err })
				}
				for d := int64(time.Since(t)); ; {
					was := slowest.Load()
					if d <= was || slowest.CompareAndSwap(was, d) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	fmt.Printf("connections %d, lost %d, %.0f a second, the slowest took %v\n", n, lost.Load(), float64(n)/took.Seconds(),
		time.Duration(slowest.Load()).Round(time.Millisecond))
	if first != nil {
		return fmt.Errorf("the first that was lost: %w", first)
	}
	return nil
}

func one(at string, i uint64) error {
	c, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], i)
	if _, err := c.Write(b[:]); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(c, 9))
	if err != nil {
		return err
	}
	if len(answer) != 8 || binary.BigEndian.Uint64(answer) != ^i {
		return fmt.Errorf("%d bytes came, or others than were sent", len(answer))
	}
	return nil
}
