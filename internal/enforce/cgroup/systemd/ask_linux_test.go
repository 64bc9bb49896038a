package systemd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/internal/need"
)

// fakeBus serves one connection, and answers the second call by reply. It returns
// its manager, and what the call was.
func fakeBus(t *testing.T, greeting string, reply func(serial uint32) []byte) (Manager, <-chan []byte) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		in := bufio.NewReader(conn)
		line, _ := in.ReadString('\n')
		if want := fmt.Sprintf("\x00AUTH EXTERNAL %x\r\n", fmt.Sprint(os.Geteuid())); line != want {
			t.Errorf("got %q, want %q", line, want)
		}
		fmt.Fprint(conn, greeting)
		if line, _ = in.ReadString('\n'); line != "BEGIN\r\n" {
			return
		}
		for serial := uint32(1); serial <= 2; serial++ {
			head, err := in.Peek(headLen)
			if err != nil {
				return
			}
			n, _ := size(head)
			m := make([]byte, n)
			if _, err := readFull(in, m); err != nil {
				return
			}
			if serial == 1 {
				_, _ = conn.Write(answerTo(1, methodReturn, ""))
				// A signal, as a bus sends when it has given a name.
				_, _ = conn.Write(answerTo(0, 4, ""))
				continue
			}
			asked <- m
			_, _ = conn.Write(reply(binary.LittleEndian.Uint32(m[8:])))
		}
	}()
	m, err := find(filepath.Join(dir, "bus"), uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	return m, asked
}

func readFull(in *bufio.Reader, b []byte) (int, error) {
	for n := range b {
		c, err := in.ReadByte()
		if err != nil {
			return n, err
		}
		b[n] = c
	}
	return len(b), nil
}

// answerTo is a message without a body, of a kind, with an error's name.
func answerTo(serial uint32, kind byte, name string) []byte {
	b := buffer{'l', kind, 0, 1}
	b.num(0)
	b.num(99)
	b.array(8, func() {
		b = append(b, fieldReplySerial)
		b.signature("u")
		b.num(serial)
		if name != "" {
			b.pad(8)
			b = append(b, fieldErrorName)
			b.signature("s")
			b.str(name)
		}
	})
	b.pad(8)
	return b
}

func TestAsk(t *testing.T) {
	s := Scope{Unit: "tether-1.scope", Description: "a command", PIDs: []uint32{7}}
	ok := func(serial uint32) []byte { return answerTo(serial, methodReturn, "") }
	const hi = "OK 0123456789abcdef0123456789abcdef\r\n"
	for _, c := range []struct {
		name, greeting string
		reply          func(uint32) []byte
		fails          string
	}{
		{"granted", hi, ok, ""},
		{"refused", hi, func(n uint32) []byte { return answerTo(n, methodError, "org.freedesktop.DBus.Error.AccessDenied") }, "AccessDenied"},
		{"another's answer, then nothing", hi, func(n uint32) []byte { return answerTo(n+1, methodReturn, "") }, "EOF"},
		{"no answer but others' for ever", hi, func(n uint32) []byte { return bytes.Repeat(answerTo(n+1, methodReturn, ""), 200) }, "does not answer"},
		{"garbage", hi, func(uint32) []byte { return bytes.Repeat([]byte("x"), 100) }, "malformed"},
		{"too much", hi, func(uint32) []byte { return []byte("l\x02\x00\x01\xff\xff\xff\x7f\x01\x00\x00\x00\x00\x00\x00\x00") }, "malformed"},
		{"who we are is not taken", "REJECTED EXTERNAL\x1b[2J\r\n", ok, "REJECTED EXTERNAL[2J"},
		{"no end of the greeting", strings.Repeat("O", 9000), ok, "buffer full"},
	} {
		m, asked := fakeBus(t, c.greeting, c.reply)
		err := m.Start(s)
		if c.fails == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if got := <-asked; !bytes.Equal(got, s.start(2)) {
				t.Errorf("%s: asked %q", c.name, got)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.fails)
		}
	}
}

// TestFind: a bus that somebody else could have put there is none.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	own := uint32(os.Geteuid())
	if _, err := find(path, own); err != nil {
		t.Fatalf("control: %v", err)
	}
	if m, err := find(path, own+1); own != 0 && err == nil {
		t.Errorf("another user's: got %+v", m)
	}
	if own == 0 {
		if err := os.Lchown(path, 54321, 54321); err != nil {
			t.Fatal(err)
		}
		if m, err := find(path, 0); err == nil {
			t.Errorf("another user's: got %+v", m)
		}
		if _, err := find(path, 54321); err != nil {
			t.Errorf("theirs: %v", err)
		}
		_ = os.Lchown(path, 0, 0)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if m, err := find(path, own); err == nil {
		t.Errorf("a folder that others can change: got %+v", m)
	}
	_ = os.Chmod(dir, 0o700)
	if err := os.Symlink(path, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "none", "."} {
		if m, err := find(filepath.Join(dir, name), own); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
	if m, _ := Find(12345678, "relative"); m.socket != "" {
		t.Errorf("got %+v", m)
	}
}

// TestRealBus: a real bus takes what we say for well formed, on which nobody has
// the name of systemd.
func TestRealBus(t *testing.T) {
	program := need.Program(t, "dbus-daemon")
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "conf")
	if err := os.WriteFile(config, []byte(`<busconfig><type>session</type><listen>unix:path=`+dir+`/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--config-file="+config, "--nofork", "--print-address=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the bus says %q: %v", line, err)
	}
	m, err := find(filepath.Join(dir, "bus"), uint32(os.Geteuid()))
	if err != nil {
		t.Fatal(err)
	}
	err = m.Start(Scope{Unit: "tether-1.scope", Description: "a command", PIDs: []uint32{uint32(os.Getpid())}})
	if err == nil || !strings.Contains(err.Error(), "org.freedesktop.systemd1") || !strings.Contains(err.Error(), "ServiceUnknown") {
		t.Errorf("got %v, want the word that nobody has that name", err)
	}
}
