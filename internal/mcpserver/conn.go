package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bounds of one connection. They hold whatever a client sends.
const (
	// maxMessage is the largest message, in bytes; a larger one is dropped
	// while it is read.
	maxMessage = 16 << 20
	// maxCalls is how many requests may be open at once, maxBytes how many
	// bytes they may have together.
	maxCalls = 64
	maxBytes = 4 * maxMessage
)

// codeBusy is a code of the range that JSON-RPC leaves to servers.
const codeBusy = -32000

// conn carries messages as lines. What is no message is answered with an error
// and does not end the connection, and nothing that a client sends makes the
// server hold more than the bounds above: not a huge message, nor a flood of
// calls or notifications.
type conn struct {
	out io.Writer

	lines  chan line
	stop   chan struct{} // closed by Close
	linger time.Duration // see answered
	once   sync.Once

	write sync.Mutex // guards out

	mu    sync.Mutex
	calls map[jsonrpc.ID]request // those that are open
	bytes int
	ready bool // "initialized" was passed on
}

// request is one that is open: its size, and whether it ends with the client,
// as calls of tools do.
type request struct {
	size int
	long bool
}

// line is one line of input, or why there is none.
type line struct {
	text []byte
	err  error
}

var errTooLarge = errors.New("too large")

func newConn(in io.Reader, out io.Writer) *conn {
	c := &conn{out: out, lines: make(chan line), linger: time.Second, stop: make(chan struct{}), calls: map[jsonrpc.ID]request{}}
	go c.readLines(in)
	return c
}

// Connect implements [mcp.Transport]: there is one connection.
func (c *conn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements [mcp.Connection].
func (c *conn) SessionID() string { return "" }

// Close ends reading. It does not close the streams: they are the process's.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.stop) })
	return nil
}

// readLines reads until the input ends. It may outlive Close by the read that
// it waits in.
func (c *conn) readLines(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r, maxMessage)
		select {
		case c.lines <- line{text, err}:
		case <-c.stop:
			return
		}
		if err != nil && err != errTooLarge {
			return
		}
	}
}

// readLine reads one line of at most limit bytes. It skips a longer one.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > limit; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err != nil && len(text) == 0:
			return nil, err
		case long:
			return nil, errTooLarge
		}
		return text, nil // an unfinished last line counts; the end comes next
	}
}

// Read implements [mcp.Connection].
func (c *conn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.stop:
			return nil, io.EOF
		default:
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.stop:
			return nil, io.EOF
		case l := <-c.lines:
			switch {
			case l.err == errTooLarge:
				if err := c.refuse(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message was larger than %d bytes", maxMessage)); err != nil {
					return nil, err
				}
				continue
			case l.err != nil:
				c.answered()
				c.Close()
				return nil, io.EOF
			}
			m, err := c.accept(l.text)
			if m != nil || err != nil {
				return m, err
			}
		}
	}
}

// answered waits, for a moment, until what a client asked right before it left
// is answered, but for what ends with it.
func (c *conn) answered() {
	open := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.calls {
			if !r.long {
				return true
			}
		}
		return false
	}
	for end := time.Now().Add(c.linger); open() && time.Now().Before(end); {
		select {
		case <-c.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// accept returns the message in a line, or answers it.
func (c *conn) accept(text []byte) (jsonrpc.Message, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	// The standard decoder bounds how deep values are nested.
	if !json.Valid(text) {
		return nil, c.refuse(nil, jsonrpc.CodeParseError, "a line was no JSON")
	}
	if text[0] == '[' {
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "messages come one by one, not in batches")
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "a line was no JSON-RPC message")
	}
	req, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil
	}
	if !req.IsCall() {
		if c.wanted(req) {
			return m, nil
		}
		return nil, nil
	}
	c.mu.Lock()
	_, used := c.calls[req.ID]
	busy := len(c.calls) >= maxCalls || c.bytes+len(text) > maxBytes
	if !used && !busy {
		c.calls[req.ID] = request{len(text), req.Method == "tools/call" || req.Method == "subscriptions/listen"}
		c.bytes += len(text)
	}
	c.mu.Unlock()
	switch {
	case used:
		return nil, c.refuse(nil, jsonrpc.CodeInvalidRequest, "the id of a request is that of another one that is still open")
	case busy:
		return nil, c.refuse(req.ID.Raw(), codeBusy, fmt.Sprintf("more than %d requests, or %d bytes of them, are open at once", maxCalls, maxBytes))
	}
	return m, nil
}

// wanted says whether a notification is one that the server listens to. The
// others would only queue up.
func (c *conn) wanted(n *jsonrpc.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n.Method {
	case "notifications/initialized":
		first := !c.ready
		c.ready = true
		return first
	case "notifications/cancelled":
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(n.Params, &p) != nil {
			return false
		}
		id, err := jsonrpc.MakeID(p.RequestID)
		if err != nil {
			return false
		}
		_, open := c.calls[id]
		return open
	}
	return false
}

// Write implements [mcp.Connection].
func (c *conn) Write(_ context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Response)
	if ok {
		c.mu.Lock()
		c.bytes -= c.calls[r.ID].size
		delete(c.calls, r.ID)
		c.mu.Unlock()
	}
	text, err := jsonrpc.EncodeMessage(m)
	switch {
	case err == nil:
		return c.send(text)
	case ok:
		// An error here would end the connection. The library writes some
		// errors, of words that a client chose, as what is no JSON.
		return c.refuse(r.ID.Raw(), jsonrpc.CodeInternalError, "the answer cannot be written as JSON")
	}
	if req, call := m.(*jsonrpc.Request); call && req.IsCall() {
		return err // nobody would answer it
	}
	return nil // a notification that cannot be written is one that is not sent
}

func (c *conn) send(text []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.out.Write(append(text, '\n'))
	return err
}

// refuse answers what never becomes a request. An id of nil is JSON's null.
func (c *conn) refuse(id any, code int, what string) error {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": map[string]any{"code": code, "message": what}})
	if err != nil {
		return err
	}
	return c.send(text)
}
