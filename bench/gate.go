package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// clientWord makes this program the client that runs inside.
const clientWord = "gate-client"

// gate compares the network of a run with the host's own: what a start costs,
// and what goes through. Where the gate is a proxy the client asks it for
// tunnels, as programs that know of proxies do.
func (b bench) gate() error {
	w := filepath.Join(b.top, "gate")
	if err := os.MkdirAll(w, 0o755); err != nil {
		return err
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w, "client"), self, 0o755); err != nil {
		return err
	}
	host := "127.0.0.1"
	if all, err := net.InterfaceAddrs(); err == nil {
		for _, a := range all {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
				host = ip.IP.String()
				break
			}
		}
	}
	l, err := net.Listen("tcp4", host+":0")
	if err != nil {
		return err
	}
	defer l.Close()
	go serveBench(l)
	addr := l.Addr().String()
	open := []string{b.tether, "run", "--network", "open", "--"}
	veth := []string{b.tether, "run", "--provider", "native", "--network", "gated", "--allow-host", addr, "--"}
	ways := []subject{{name: "outside", argv: nil, dir: w}, {name: "open", argv: open, dir: w}, {name: "gated, veth", argv: veth, dir: w}}
	starts := []subject{{name: "no network", argv: []string{b.tether, "run", "--no-network", "--", "true"}, dir: w},
		{name: "open", argv: append(open[:len(open):len(open)], "true"), dir: w}, {name: "gated, veth", argv: append(veth[:len(veth):len(veth)], "true"), dir: w}}
	if os.Geteuid() != 0 { // bwrap cannot map root's own files
		proxy := []string{b.tether, "run", "--provider", "bwrap", "--network", "gated", "--allow-host", addr, "--"}
		ways = append(ways, subject{name: "gated, proxy (bwrap)", argv: proxy, dir: w})
		starts = append(starts, subject{name: "no network, bwrap", argv: []string{b.tether, "run", "--provider", "bwrap", "--no-network", "--", "true"}, dir: w},
			subject{name: "gated, proxy (bwrap)", argv: append(proxy[:len(proxy):len(proxy)], "true"), dir: w})
	}
	m, err := inTurns(20, starts)
	if err != nil {
		return err
	}
	table("start of true, cold, by network", starts, m, 0)
	fmt.Printf("\n%-24s %9s %9s %9s %9s %9s   (medians of %d, in turns)\n", "through the gate", "down Gb/s", "up Gb/s", "trip us", "conn/s 1", "conn/s 16", gateRounds)
	through := make([][5][]float64, len(ways))
	for range gateRounds {
		for i, s := range ways {
			cmd := exec.Command(filepath.Join(w, "client"), clientWord, addr)
			if s.argv != nil {
				cmd = exec.Command(s.argv[0], append(s.argv[1:len(s.argv):len(s.argv)], "./client", clientWord, addr)...)
			}
			cmd.Dir, cmd.Stderr = w, os.Stderr
			out, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			for n, field := range strings.Fields(string(out)) {
				v, err := strconv.ParseFloat(field, 64)
				if err != nil || n >= len(through[i]) {
					return fmt.Errorf("%s: the client printed %q", s.name, out)
				}
				through[i][n] = append(through[i][n], v)
			}
		}
	}
	for i, s := range ways {
		fmt.Printf("  %-22s", s.name)
		for n, all := range through[i] {
			slices.Sort(all)
			fmt.Printf("%9.*f ", max(0, 1-n/2), all[len(all)/2])
		}
		fmt.Println()
	}
	return nil
}

// gateRounds is how often each way is measured.
const gateRounds = 5

// serveBench sends, takes or echoes, as the first byte says.
func serveBench(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return
			}
			switch b[0] {
			case 'd':
				chunk := make([]byte, 1<<20)
				for range benchMiB {
					if _, err := c.Write(chunk); err != nil {
						return
					}
				}
			case 'u':
				_, _ = io.Copy(io.Discard, c)
				_, _ = c.Write(b[:])
			case 'e':
				_, _ = io.Copy(c, c)
			case 'c':
				_, _ = c.Write(b[:])
			}
		}()
	}
}

const benchMiB = 512

// gateClient measures and prints one line.
func gateClient(addr string) error {
	dial := dialer(addr)
	c, err := dial()
	if err != nil {
		return err
	}
	rate := func(begin time.Time) float64 { return float64(benchMiB<<23) / 1e9 / time.Since(begin).Seconds() }
	begin := time.Now()
	_, _ = c.Write([]byte("d"))
	if n, err := io.Copy(io.Discard, c); err != nil || n != benchMiB<<20 {
		return fmt.Errorf("down: %d bytes, %w", n, err)
	}
	down := rate(begin)
	if c, err = dial(); err != nil {
		return err
	}
	begin = time.Now()
	chunk := make([]byte, 1<<20)
	_, _ = c.Write([]byte("u"))
	for range benchMiB {
		if _, err := c.Write(chunk); err != nil {
			return err
		}
	}
	_ = c.CloseWrite()
	if _, err := io.ReadFull(c, chunk[:1]); err != nil {
		return err
	}
	up := rate(begin)
	if c, err = dial(); err != nil {
		return err
	}
	const trips = 2000
	_, _ = c.Write([]byte("e"))
	begin = time.Now()
	for range trips {
		if _, err := c.Write(chunk[:16]); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, chunk[:16]); err != nil {
			return err
		}
	}
	trip := time.Since(begin) / trips
	c.Close()
	one, err := connections(dial, 1)
	if err != nil {
		return err
	}
	many, err := connections(dial, 16)
	fmt.Printf("%9.1f %9.1f %9d %9.0f %9.0f\n", down, up, trip.Microseconds(), one, many)
	return err
}

// connections opens, uses and closes connections for a while, and returns how
// many there were in a second. None may fail.
func connections(dial func() (*net.TCPConn, error), clients int) (float64, error) {
	const long = time.Second
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := 0
	var first error
	begin := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(begin) < long {
				c, err := dial()
				if err == nil {
					b := []byte("c")
					if _, err = c.Write(b); err == nil {
						_, err = io.ReadFull(c, b)
					}
					c.Close()
				}
				mu.Lock()
				n++
				if err != nil && first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(begin).Seconds(), first
}

// dialer dials as the environment says.
func dialer(addr string) func() (*net.TCPConn, error) {
	direct := func(to string) (*net.TCPConn, error) {
		c, err := net.Dial("tcp", to)
		if err != nil {
			return nil, err
		}
		return c.(*net.TCPConn), nil
	}
	u, err := url.Parse(os.Getenv("https_proxy"))
	if err != nil || u.Host == "" {
		return func() (*net.TCPConn, error) { return direct(addr) }
	}
	secret, _ := u.User.Password()
	auth := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + secret))
	return func() (*net.TCPConn, error) {
		c, err := direct(u.Host)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", addr, addr, auth)
		r := bufio.NewReaderSize(io.LimitReader(c, 39), 39) // exactly the answer's head, so that nothing behind it is lost
		line, err := r.ReadString('\n')
		if err != nil || !strings.Contains(line, " "+strconv.Itoa(200)+" ") {
			c.Close()
			return nil, fmt.Errorf("proxy: %q, %w", line, err)
		}
		_, err = io.Copy(io.Discard, r)
		return c, err
	}
}
