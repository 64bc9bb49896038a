//go:build linux

package mcpserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/policy"
)

func TestMain(m *testing.M) {
	tether.Inner()
	// Nothing of the tests touches the real home.
	dir, err := os.MkdirTemp("", "tether-mcp-")
	if err == nil {
		err = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	}
	if err == nil {
		err = os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

const secret = "S3NTINEL-mcp"

// workspace makes a folder with a note, a secret and two folders.
func workspace(t testing.TB) string {
	t.Helper()
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"", "a", "b"} {
		if err := os.MkdirAll(filepath.Join(w, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{".env": "TOKEN=" + secret + "\n", "note.txt": "one\ntwo\n", "a/in.txt": "in a\n"} {
		if err := os.WriteFile(filepath.Join(w, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// at opens sessions as the program does, with no network.
func at(change func(*policy.Policy)) func(string) (tether.Options, error) {
	return func(w string) (tether.Options, error) {
		pol := policy.Default(w)
		pol.Network.Mode = policy.Offline
		if change != nil {
			change(&pol)
		}
		return tether.Options{Policy: pol}, nil
	}
}

// pipes is a server and the client's ends of its streams.
type pipes struct {
	in   io.WriteCloser
	out  io.Reader
	done chan error
}

// start serves until the test ends, or the caller closes in.
func start(t testing.TB, o Options) *pipes {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipes{in: inW, out: outR, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		p.done <- Serve(ctx, inR, outW, o)
		outW.Close()
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			t.Error("the server does not end")
		}
	})
	return p
}

// connect returns the session of a client of the official SDK.
func connect(t testing.TB, o Options, version string, client *mcp.Client) *mcp.ClientSession {
	t.Helper()
	if client == nil {
		client = newClient(nil)
	}
	p := start(t, o)
	// Reading and closing are the test's, so the client gets no closer.
	s, err := client.Connect(soon(t), &mcp.IOTransport{Reader: io.NopCloser(p.out), Writer: p.in},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newClient(o *mcp.ClientOptions) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// versions are the protocol's that clients speak today, and the next.
var versions = []string{"2025-06-18", "2025-11-25", newProtocol}
