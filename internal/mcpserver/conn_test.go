//go:build linux

package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/policy"
)

// message is what a server says.
type message struct {
	ID     any
	Method string
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// raw is a client that says what it likes.
type raw struct {
	t testing.TB
	*pipes
	said chan message
}

func dial(t testing.TB, o Options) *raw {
	t.Helper()
	r := &raw{t, start(t, o), make(chan message, 10000)}
	go func() {
		defer close(r.said)
		lines := bufio.NewReaderSize(r.out, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Errorf("the server said %q", line)
			}
			r.said <- m
		}
	}()
	return r
}

func (r *raw) say(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Fatal(err)
	}
}

// hear returns the next message.
func (r *raw) hear() message {
	r.t.Helper()
	select {
	case m, ok := <-r.said:
		if !ok {
			r.t.Fatal("the server has ended")
		}
		return m
	case <-time.After(30 * time.Second):
		r.t.Fatal("the server says nothing")
	}
	return message{}
}

// lives fails unless the server still answers.
func (r *raw) lives() {
	r.t.Helper()
	r.say(`{"jsonrpc":"2.0","id":"lives","method":"ping"}` + "\n")
	for {
		if m := r.hear(); m.ID == "lives" {
			if m.Error != nil {
				r.t.Fatalf("got %+v", m.Error)
			}
			return
		}
	}
}

func TestMalformed(t *testing.T) {
	r := dial(t, Options{Workspace: workspace(t), At: at(nil)})
	r.say(hello)
	r.hear()
	for _, c := range []struct {
		name, line string
		code       int
	}{
		{"no JSON", "hello", -32700},
		{"half of it", `{"jsonrpc":"2.0","id":1,"method":"ping"`, -32700},
		{"two on one line", `{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, -32700},
		{"NUL", "\x00", -32700},
		{"invalid UTF-8", "\xff\xfe", -32700},
		{"very deep", strings.Repeat("[", 1<<20), -32700},
		{"deep in a value", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20001), -32700},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		{"a number", "7", -32600},
		{"no version", `{"id":1,"method":"ping"}`, -32600},
		{"an object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{"too large", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", maxMessage) + `"}}`, -32600},
		{"an unknown method", `{"jsonrpc":"2.0","id":"x","method":"tools/paint"}`, -32601},
		{"params of a wrong kind", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":[1]}`, -32602},
		{"an answer that is no JSON", `{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"\u0000"}}`, -32603},
		{"no name", `{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{}}`, -32602},
	} {
		r.say(c.line + "\n")
		m := r.hear()
		if m.Error == nil || m.Error.Code != c.code {
			t.Errorf("%s: got %+v, want code %d", c.name, m.Error, c.code)
		}
		r.lives()
	}
	// What is nobody's answer, an empty line and unknown notifications are
	// passed over.
	r.say("\n\r\n" + `{"jsonrpc":"2.0","id":77,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/nothing"}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}` + "\n")
	r.lives()
}

func TestSameID(t *testing.T) {
	r := dial(t, Options{Workspace: workspace(t), At: at(nil)})
	r.say(hello)
	r.hear()
	slow := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"sleep 0.3; echo done"}}}` + "\n"
	r.say(slow + slow)
	if m := r.hear(); m.ID != nil || m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("got %+v", m)
	}
	if m := r.hear(); m.ID != 1.0 || !bytes.Contains(m.Result, []byte("done")) {
		t.Errorf("got %+v", m)
	}
	r.say(slow) // the id is free again
	if m := r.hear(); m.ID != 1.0 || m.Error != nil {
		t.Errorf("got %+v", m)
	}
}

// TestFlood sends far more at once than is taken.
func TestFlood(t *testing.T) {
	w := workspace(t)
	path, taken := fifo(t, w)
	r := dial(t, Options{Workspace: w, At: at(nil)})
	r.say(hello)
	r.hear()
	const n = 400
	for i := range n {
		r.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"bash","arguments":{"command":"exec sleep 300 >held"}}}`+"\n", i))
		r.say(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}` + "\n")
	}
	for range n - maxCalls {
		if m := r.hear(); m.Error == nil || m.Error.Code != codeBusy {
			t.Fatalf("got %+v", m)
		}
	}
	<-taken
	if g := runtime.NumGoroutine(); g > 40*maxRunning+10*maxCalls {
		t.Errorf("%d goroutines", g)
	}
	begin := time.Now()
	for i := range maxCalls {
		r.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`+"\n", i))
	}
	for range maxCalls {
		if m := r.hear(); m.Error == nil && !bytes.Contains(m.Result, []byte("CANCELLED")) {
			t.Fatalf("got %s", m.Result)
		}
	}
	r.lives()
	if held(t, path) {
		t.Error("a command lives")
	}
	t.Log("cancelled in", time.Since(begin))
}

// TestMuchAtOnce has open requests that are too large together.
func TestMuchAtOnce(t *testing.T) {
	c := newConn(strings.NewReader(""), io.Discard)
	line := func(i int) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"x","params":{"x":"%s"}}`, i, strings.Repeat("x", maxMessage-100))
	}
	taken := 0
	for i := range maxBytes/maxMessage + 2 {
		m, err := c.accept(line(i))
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			taken++
		}
	}
	if taken != maxBytes/maxMessage {
		t.Errorf("%d were taken", taken)
	}
}

// TestClientVanishes closes the input while commands run.
func TestClientVanishes(t *testing.T) {
	w := workspace(t)
	path, taken := fifo(t, w)
	r := dial(t, Options{Workspace: w, At: at(nil)})
	r.say(hello)
	quoted, _ := json.Marshal(stubborn)
	r.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":%s}}}`+"\n", quoted))
	<-taken
	if !held(t, path) {
		t.Fatal("control: the command does not hold its pipe")
	}
	r.in.Close()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("got %v", err)
		}
		r.done <- nil
	case <-time.After(patience / 2):
		t.Fatal("the server does not end")
	}
	if held(t, path) {
		t.Error("the command lives")
	}
}

func TestReadLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"ab", []string{"ab"}},
		{"ab\n", []string{"ab\n"}},
		{"12345678\n", []string{"!"}},
		{"1234567\n", []string{"1234567\n"}},
		{"1234567890123\nx\n", []string{"!", "x\n"}},
		{"123456789", nil}, // cut off at the end: there is no more to come
	} {
		r := bufio.NewReaderSize(strings.NewReader(c.in), 16)
		var got []string
		for {
			text, err := readLine(r, 8)
			if err == io.EOF {
				break
			}
			if err == errTooLarge {
				text = []byte("!")
			}
			got = append(got, string(text))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

// FuzzConn feeds whatever to the reader of messages: every line is answered,
// passed on or passed over, and what is said back is JSON.
func FuzzConn(f *testing.F) {
	for _, s := range []string{hello, "[\n", `{"jsonrpc":"2.0","id":1e999,"method":"x"}`, `{"jsonrpc":"2.0","id":null,"method":"x"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":null}`, `{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		c := newConn(bytes.NewReader(in), &out)
		c.linger = 0 // nobody answers here
		defer c.Close()
		messages := 0
		for {
			m, err := c.Read(t.Context())
			if err == io.EOF {
				break
			}
			if err != nil || m == nil {
				t.Fatalf("got %v, %v", m, err)
			}
			messages++
		}
		if n := bytes.Count(in, []byte{'\n'}) + 1; messages > n || len(c.calls) > maxCalls {
			t.Errorf("%d messages in %d lines, %d open", messages, n, len(c.calls))
		}
		for line := range bytes.Lines(out.Bytes()) {
			var m message
			if err := json.Unmarshal(line, &m); err != nil || m.Error == nil {
				t.Errorf("said %q: %v", line, err)
			}
		}
	})
}

// FuzzServe says whatever to a server that has been greeted: it goes on.
func FuzzServe(f *testing.F) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"edit","arguments":{"action":"view","path":"note.txt"},"_meta":{"progressToken":[]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"edit","arguments":null,"inputResponses":{"roots":{"roots":[{"uri":"file:///"}]}},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":7}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\u0000"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"lives"}}`,
		`{"jsonrpc":"2.0","id":"hello","result":{"roots":null}}`,
	} {
		f.Add([]byte(s))
	}
	r := dial(f, Options{Workspace: workspace(f), At: at(func(p *policy.Policy) { p.Profile = policy.ReadOnly })})
	r.say(hello)
	r.hear()
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.ContainsAny(line, "\n") || bytes.Contains(line, []byte("bash")) || bytes.Contains(line, []byte(`lives`)) {
			t.Skip("one line, and no commands of a fuzzer")
		}
		r.t = t
		r.say(string(line) + "\n")
		r.lives()
		if n := len(r.said); n > maxCalls {
			t.Errorf("%d messages for one", n)
		}
	})
}
