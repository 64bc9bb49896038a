package fetch

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tether-sandbox/tether/fault"
)

// web is a server on loopback and a client that may reach nothing else.
type web struct {
	*httptest.Server
	client *Client
	mu     sync.Mutex
	dialed []string
}

func serve(t *testing.T, handler http.HandlerFunc) *web {
	t.Helper()
	w := &web{Server: httptest.NewServer(handler)}
	t.Cleanup(w.Close)
	w.client = &Client{Agent: "test", Time: 10 * time.Second, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		w.mu.Lock()
		w.dialed = append(w.dialed, address)
		w.mu.Unlock()
		// Names lead to the server itself, whatever they are.
		if strings.HasSuffix(strings.Split(address, ":")[0], ".test") {
			address = w.Listener.Addr().String()
		}
		if address != w.Listener.Addr().String() {
			return nil, fault.New(fault.EgressDenied, address+" is not allowed")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	return w
}

func (w *web) get(t *testing.T, path string) (*Response, error) {
	t.Helper()
	return w.client.Do(t.Context(), Request{URL: w.URL + path})
}

func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

func TestGet(t *testing.T) {
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
			_, _ = io.WriteString(w, "<title>no</title><script>alert(1)</script><h1>Caf\xe9</h1><p>a <b>bold</b> <a href=\"sub/x?a=b\">link</a></p><img alt=dot src='data:image/png;base64,AAAA'><table><tr><th>a</th></tr><tr><td>1</td></tr></table>")
		case "/json":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(418)
			_, _ = io.WriteString(w, `{"a":1}`)
		case "/binary":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 'P', 'N', 'G', 0, 255})
		case "/utf16":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte{0xff, 0xfe, 'h', 0, 'i', 0, 0x3d, 0xd8, 0x00, 0xde})
		case "/late":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, strings.Repeat("a", 2000)+"é")
		case "/sjis":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<meta charset=shift_jis><p>\x83e\x83X\x83g</p>")
		case "/empty":
		case "/echo":
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %q %s %s", r.Method, r.Host, b, r.Header.Get("X-Key"), r.UserAgent())
		}
	})
	for path, want := range map[string]struct {
		status  int
		kind    string
		form    Form
		charset string
		text    string
	}{
		"/page":   {200, "text/html", Markdown, "windows-1252", "# Café\n\na **bold** [link](" + w.URL + "/sub/x?a=b)"},
		"/json":   {418, "application/problem+json", Text, "utf-8", `{"a":1}`},
		"/binary": {200, "image/png", Binary, "", "\x89PNG\x00\xff"},
		"/utf16":  {200, "text/plain", Text, "utf-16le", "hi😀"},
		"/late":   {200, "text/plain", Text, "utf-8", strings.Repeat("a", 2000) + "é"},
		"/sjis":   {200, "text/html", Markdown, "shift_jis", "テスト"},
		"/empty":  {200, "text/plain", Raw, "", ""},
	} {
		r, err := w.get(t, path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if r.Status != want.status || r.Type != want.kind || r.Form != want.form || r.Charset != want.charset || !strings.HasPrefix(string(r.Body), want.text) || r.URL != w.URL+path {
			t.Errorf("%s: got %d %s %s %s %q at %s, want %+v", path, r.Status, r.Type, r.Form, r.Charset, r.Body, r.URL, want)
		}
		if strings.Contains(string(r.Body), "alert") || strings.Contains(string(r.Body), "data:") {
			t.Errorf("%s: scripts or inline images are left: %q", path, r.Body)
		}
	}
	r, err := w.client.Do(t.Context(), Request{URL: w.URL + "/page", Raw: true})
	if err != nil || r.Form != Raw || !bytes.Contains(r.Body, []byte("Caf\xe9")) {
		t.Errorf("raw: got %+v, %v", r, err)
	}
	r, err = w.client.Do(t.Context(), Request{URL: w.URL + "/echo", Body: "hello", Header: map[string]string{"x-key": "v"}})
	if want := "POST " + w.Listener.Addr().String() + ` "hello" v test`; err != nil || string(r.Body) != want {
		t.Errorf("post: got %+v, %v, want %s", r, err, want)
	}
}

// EC-096: an address that can be read in two ways is refused before anything is
// dialled, and the host that is judged is the one that is dialled.
func TestEC096(t *testing.T) {
	w := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, u := range []string{"", "example.test", "//evil.test/", "http:evil.test/x", "http:///x", "http://", "http://a b.test/", "http://a.test/\t",
		"http://evil.test\\@allowed.test/", "http://allowed.test%00.evil.test/", "http://a.test\x00/", "http://a.test\r\nX: y/", "http://user@127.0.0.1/",
		"http://allowed.test:80@127.0.0.1:81/", "http://a.test:0/", "http://a.test:99999/", "http://a.test:x/", "http://[::1/", "http://[a.test]/", "http://a..test/",
		"http://a.test/" + strings.Repeat("x", maxURL)} {
		if _, err := w.client.Do(t.Context(), Request{URL: u}); fault.CodeOf(err) != fault.UsageInvalid && fault.CodeOf(err) != fault.EgressDenied {
			t.Errorf("%q: got %v", u, err)
		}
	}
	for _, u := range []string{"http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/"} {
		_, err := w.client.Do(t.Context(), Request{URL: u})
		wantCode(t, u, err, fault.EgressDenied)
	}
	if len(w.dialed) != 0 {
		t.Errorf("dialled %v", w.dialed)
	}
	for u, want := range map[string]string{"HtTp://EXAMPLE.test./x": "example.test:80", "http://evil.test#@allowed.test/": "evil.test:80", "http://bücher.test": "xn--bcher-kva.test:80",
		"http://ａ.test/": "a.test:80", "http://[::ffff:127.0.0.9]:8/": "127.0.0.9:8"} {
		w.dialed = nil
		_, _ = w.client.Do(t.Context(), Request{URL: u})
		if !slices.Equal(w.dialed, []string{want}) {
			t.Errorf("%s: dialled %v, want %s", u, w.dialed, want)
		}
	}
}

// EC-114: http and https, in any case, and nothing else.
func TestEC114(t *testing.T) {
	came := 0
	w := serve(t, func(http.ResponseWriter, *http.Request) { came++ })
	for _, u := range []string{"file:///etc/passwd", "ftp://a.test/", "gopher://a.test/", "data:text/plain,x", "ws://a.test/", "unix:/run/x", "jar:http://a.test!/", "about:blank"} {
		_, err := w.client.Do(t.Context(), Request{URL: u})
		wantCode(t, u, err, fault.EgressDenied)
	}
	if len(w.dialed) != 0 {
		t.Errorf("dialled %v", w.dialed)
	}
	if _, err := w.client.Do(t.Context(), Request{URL: "HtTp" + strings.TrimPrefix(w.URL, "http")}); err != nil || came != 1 {
		t.Errorf("control: %v, %d came", err, came)
	}
}

// EC-125: every hop is judged; what is refused is not dialled.
func TestEC125(t *testing.T) {
	var silent net.Listener
	w := serve(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	silent = l
	var came []string
	w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		came = append(came, fmt.Sprintf("%s %s %s %q %q %q", r.Method, r.Host, r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Header.Get("Content-Type")))
		status, _ := strconv.Atoi(r.URL.Query().Get("s"))
		if to := r.URL.Query().Get("to"); to != "" {
			rw.Header().Set("Location", to)
			rw.WriteHeader(status)
			return
		}
		if r.URL.Path == "/loop" {
			http.Redirect(rw, r, "/loop", http.StatusFound)
			return
		}
		if r.URL.Path == "/refresh" {
			rw.Header().Set("Refresh", "0; url=http://"+silent.Addr().String())
			rw.Header().Set("Content-Type", "text/html")
		}
		fmt.Fprintf(rw, `<meta http-equiv="refresh" content="0; url=http://%s/">at %s`, silent.Addr(), r.URL.Path)
	})
	for _, s := range []string{"301", "302", "303", "307", "308"} {
		for _, to := range []string{"http://" + silent.Addr().String() + "/", "//" + silent.Addr().String(), "http://[::ffff:7f00:1]:1/", "http://0.0.0.0:1/"} {
			w.dialed = nil
			_, err := w.get(t, "/?s="+s+"&to="+to)
			wantCode(t, s+" to "+to, err, fault.EgressDenied)
			if len(w.dialed) != 2 {
				t.Errorf("%s to %s: dialled %v", s, to, w.dialed)
			}
		}
	}
	for to, code := range map[string]fault.Code{"file:///etc/passwd": fault.EgressDenied, "http://a@b.test/": fault.FetchFailed, "http://127.1/": fault.EgressDenied, "http://a%25zz/": fault.FetchFailed} {
		_, err := w.get(t, "/?s=302&to="+to)
		wantCode(t, to, err, code)
	}
	_, err = w.get(t, "/loop")
	wantCode(t, "a loop", err, fault.FetchFailed)
	if r, err := w.get(t, "/refresh"); err != nil || len(r.Redirects) != 0 || !strings.Contains(string(r.Body), "at /refresh") {
		t.Errorf("refresh: got %+v, %v", r, err)
	}
	if r, err := w.get(t, "/?s=302&to=/next"); err != nil || r.URL != w.URL+"/next" || len(r.Redirects) != 1 || !strings.Contains(string(r.Body), "at /next") {
		t.Errorf("relative: got %+v, %v", r, err)
	}
	// Credentials stay with their host; a body is not sent to another.
	head := map[string]string{"Authorization": "Bearer x", "X-Key": "y", "Content-Type": "text/plain"}
	came = nil
	if _, err := w.client.Do(t.Context(), Request{URL: w.URL + "/?s=307&to=/same", Header: head, Body: "b"}); err != nil || !strings.Contains(came[1], `"Bearer x" "y" "text/plain"`) || !strings.HasPrefix(came[1], "POST") {
		t.Errorf("the same host: %v, %v", err, came)
	}
	came = nil
	if _, err := w.client.Do(t.Context(), Request{URL: w.URL + "/?s=302&to=http://other.test/x", Header: head}); err != nil || came[1] != `GET other.test /x "" "" ""` {
		t.Errorf("another host: %v, %v", err, came)
	}
	came = nil
	if _, err := w.client.Do(t.Context(), Request{URL: w.URL + "/?s=302&to=/same", Header: head, Body: "b"}); err != nil || !strings.HasPrefix(came[1], "GET") || !strings.HasSuffix(came[1], `""`) {
		t.Errorf("302 of a POST: %v, %v", err, came)
	}
	_, err = w.client.Do(t.Context(), Request{URL: w.URL + "/?s=307&to=http://other.test/x", Header: head, Body: "b"})
	wantCode(t, "a body to another host", err, fault.EgressDenied)
	if err := silent.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if c, err := silent.Accept(); err == nil {
		c.Close()
		t.Error("the refused place was dialled")
	}
}

func TestDowngrade(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(rw, r, "http://"+r.Host+"/x", http.StatusFound)
			return
		}
		_, _ = io.WriteString(rw, "over "+r.Proto)
	}))
	defer s.Close()
	c := &Client{Time: 10 * time.Second, Dial: new(net.Dialer).DialContext}
	_, err := c.Do(t.Context(), Request{URL: s.URL})
	wantCode(t, "a certificate of nobody", err, fault.FetchFailed)
	c.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	if r, err := c.Do(t.Context(), Request{URL: s.URL}); err != nil || string(r.Body) != "over HTTP/1.1" {
		t.Errorf("control: got %+v, %v", r, err)
	}
	_, err = c.Do(t.Context(), Request{URL: s.URL + "/down"})
	wantCode(t, "https to http", err, fault.EgressDenied)
}

func TestSecrets(t *testing.T) {
	came := 0
	w := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		came++
		if r.URL.Path == "/back" {
			http.Redirect(rw, r, "/x?k=s3cret", http.StatusFound)
		}
	})
	w.client.Secret = func(s string) (string, bool) { return "KEY", strings.Contains(s, "s3cret") }
	for what, r := range map[string]Request{
		"path": {URL: w.URL + "/s3cret"}, "query": {URL: w.URL + "/?a=s3cret"}, "encoded": {URL: w.URL + "/?a=%733cret"}, "fragment": {URL: w.URL + "/#s3cret"},
		"header": {URL: w.URL, Header: map[string]string{"X-A": "a s3cret"}}, "body": {URL: w.URL, Body: "x s3cret"}, "host": {URL: "http://s3cret.evil.test/"},
	} {
		_, err := w.client.Do(t.Context(), r)
		wantCode(t, what, err, fault.EgressSecret)
	}
	if came != 0 || len(w.dialed) != 0 {
		t.Errorf("%d came, dialled %v", came, w.dialed)
	}
	_, err := w.get(t, "/back")
	wantCode(t, "a redirect", err, fault.EgressSecret)
	if _, err := w.get(t, "/harmless"); err != nil || came != 2 {
		t.Errorf("control: %v, %d came", err, came)
	}
}

func TestHeaders(t *testing.T) {
	w := serve(t, func(http.ResponseWriter, *http.Request) {})
	for name, value := range map[string]string{"Host": "x", "content-length": "3", "Transfer-Encoding": "chunked", "Connection": "x", "a b": "c", "": "x", "A": "b\r\nC: d", "A:": "b", "X": "a\x00"} {
		_, err := w.client.Do(t.Context(), Request{URL: w.URL, Header: map[string]string{name: value}})
		wantCode(t, name+": "+value, err, fault.UsageInvalid)
	}
	for _, r := range []Request{{URL: w.URL, Method: "DELETE"}, {URL: w.URL, Method: "GET", Body: "x"}, {URL: w.URL, Body: strings.Repeat("x", maxRequest+1)}} {
		_, err := w.client.Do(t.Context(), r)
		wantCode(t, r.Method, err, fault.UsageInvalid)
	}
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(b)
	z.Close()
	return out.Bytes()
}

// EC-130: the cap stops the transfer.
func TestEC130(t *testing.T) {
	w, sent := sizes(t)
	w.yields(t, map[string]string{"/exact": strings.Repeat("x", limit)})
	w.fails(t, map[string]fault.Code{"/more": fault.LimitResponse, "/promised": fault.LimitResponse, "/endless": fault.LimitResponse, "/less": fault.FetchFailed})
	select {
	case n := <-sent:
		if n > 64<<20 {
			t.Errorf("the server could send %d bytes", n)
		}
	case <-time.After(10 * time.Second):
		t.Error("the endless answer was not stopped")
	}
}

// EC-131: the cap holds after decoding; what was not asked for is not decoded.
func TestEC131(t *testing.T) {
	w, _ := sizes(t)
	w.yields(t, map[string]string{"/gzip": "gzip text", "/gzip-exact": strings.Repeat("x", limit), "/zlib": "zlib text", "/flate": "flate text"})
	w.fails(t, map[string]fault.Code{"/bomb": fault.LimitResponse, "/deflate-bomb": fault.LimitResponse, "/twice": fault.FetchFailed, "/br": fault.FetchFailed, "/zstd": fault.FetchFailed,
		"/lie": fault.FetchFailed, "/cut": fault.FetchFailed})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	w.fails(t, map[string]fault.Code{"/bomb": fault.LimitResponse})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4*limit {
		t.Errorf("a bomb made us allocate %d bytes", n)
	}
}

func (w *web) yields(t *testing.T, list map[string]string) {
	t.Helper()
	for path, want := range list {
		if r, err := w.get(t, path); err != nil || string(r.Body) != want || r.Size != int64(len(want)) {
			t.Errorf("%s: got %v, %.100v", path, err, r)
		}
	}
}

func (w *web) fails(t *testing.T, list map[string]fault.Code) {
	t.Helper()
	for path, want := range list {
		_, err := w.get(t, path)
		wantCode(t, path, err, want)
	}
}

const limit = 1 << 20

// sizes serves answers of all sizes and codings to a client with a small limit.
// sent is told how much of the endless one was sent.
func sizes(t *testing.T) (w *web, sent chan int64) {
	sent = make(chan int64, 1)
	var zl, fl bytes.Buffer
	z := zlib.NewWriter(&zl)
	_, _ = io.WriteString(z, "zlib text")
	z.Close()
	f, _ := flate.NewWriter(&fl, 9)
	_, _ = io.WriteString(f, "flate text")
	f.Close()
	bomb := gz(make([]byte, 64<<20))
	var flat bytes.Buffer
	z = zlib.NewWriter(&flat)
	_, _ = z.Write(make([]byte, 64<<20))
	z.Close()
	w = serve(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		code := func(c string, b []byte) { rw.Header().Set("Content-Encoding", c); _, _ = rw.Write(b) }
		switch r.URL.Path {
		case "/exact":
			_, _ = rw.Write(bytes.Repeat([]byte("x"), limit))
		case "/more":
			_, _ = rw.Write(bytes.Repeat([]byte("x"), limit+1))
		case "/promised":
			rw.Header().Set("Content-Length", strconv.Itoa(1<<40))
			_, _ = rw.Write([]byte("x"))
		case "/endless":
			var n int64
			for chunk := bytes.Repeat([]byte("x"), 64<<10); ; n += int64(len(chunk)) {
				if _, err := rw.Write(chunk); err != nil {
					sent <- n
					return
				}
			}
		case "/less":
			rw.Header().Set("Content-Length", "1000")
			_, _ = rw.Write([]byte("x"))
		case "/bomb":
			code("gzip", bomb)
		case "/deflate-bomb":
			code("deflate", flat.Bytes())
		case "/gzip":
			code("gzip", gz([]byte("gzip text")))
		case "/gzip-exact":
			code("gzip", gz(bytes.Repeat([]byte("x"), limit)))
		case "/zlib":
			code("deflate", zl.Bytes())
		case "/flate":
			code("deflate", fl.Bytes())
		case "/twice":
			code("gzip, gzip", gz(gz([]byte("x"))))
		case "/br", "/zstd":
			code(r.URL.Path[1:], []byte("whatever"))
		case "/lie":
			code("gzip", []byte("this is not compressed"))
		case "/cut":
			b := gz([]byte(strings.Repeat("cut text", 1000)))
			code("gzip", b[:len(b)-9])
		}
	})
	w.client.Bytes = limit
	return w, sent
}

// EC-132: whatever a peer is slow with, the fetch ends in time and leaves
// nothing.
func TestEC132(t *testing.T) {
	before := runtime.NumGoroutine()
	stop := make(chan struct{})
	drip := func(c net.Conn, first, each string) {
		defer c.Close()
		_, _ = bufio.NewReader(c).ReadString('\n')
		if _, err := io.WriteString(c, first); err != nil {
			return
		}
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := io.WriteString(c, each); err != nil {
				return
			}
		}
	}
	for what, say := range map[string][2]string{
		"a byte now and then":     {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", "x"},
		"headers that never end":  {"HTTP/1.1 200 OK\r\n", "X: y\r\n"},
		"a stall after one byte":  {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", ""},
		"silence":                 {"", ""},
		"interim answers, slowly": {"", "HTTP/1.1 102 Processing\r\n\r\n"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go drip(c, say[0], say[1])
			}
		}()
		c := &Client{Time: 300 * time.Millisecond, Dial: new(net.Dialer).DialContext}
		for _, scheme := range []string{"http://", "https://"} { // there, the handshake stalls
			begin := time.Now()
			_, err = c.Do(t.Context(), Request{URL: scheme + l.Addr().String()})
			if took := time.Since(begin); fault.CodeOf(err) != fault.LimitTime && scheme == "http://" || err == nil || took > 3*time.Second {
				t.Errorf("%s: got %v after %v", what, err, took)
			}
		}
		l.Close()
	}
	hole := &Client{Time: 100 * time.Millisecond, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }}
	_, err := hole.Do(t.Context(), Request{URL: "http://a.test"})
	wantCode(t, "a connection that is not answered", err, fault.LimitTime)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hole.Do(gone, Request{URL: "http://a.test"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	close(stop)
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d goroutines were left", runtime.NumGoroutine()-before)
			break
		}
	}
}

// A flood of headers or of interim answers is cut off.
func TestFlood(t *testing.T) {
	for what, say := range map[string]string{"headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Y: "+strings.Repeat("z", 1000)+"\r\n", 2000) + "\r\n",
		"interim": strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 50000) + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = io.WriteString(c, say)
			_, _ = io.Copy(io.Discard, c)
		}()
		c := &Client{Time: 10 * time.Second, Dial: new(net.Dialer).DialContext}
		_, err = c.Do(t.Context(), Request{URL: "http://" + l.Addr().String()})
		wantCode(t, what, err, fault.FetchFailed)
		l.Close()
	}
}

// Pages that are hard on a converter end in time, whatever comes out.
func TestHardPages(t *testing.T) {
	if testing.Short() || os.Getenv("GORACE") != "" {
		t.Skip("long")
	}
	for what, page := range map[string]string{
		"deep":       strings.Repeat("<div>", 100000),
		"formatting": strings.Repeat("<b><i><a href=x>", 5000) + "x",
		"tables":     strings.Repeat("<table><tr><td>", 300) + "x",
		"lists":      strings.Repeat("<ul><li>", 250) + "x",
		"quotes":     strings.Repeat("<blockquote>", 250) + strings.Repeat("x\n", 100000),
		"attributes": "<a " + strings.Repeat("a=b ", 200000) + ">x</a>",
		"entities":   strings.Repeat("&amp;", 300000),
		"wide table": "<table><tr>" + strings.Repeat("<td>x", 20000) + strings.Repeat("<tr><td>y", 20000) + "</table>",
		"colspan":    "<table>" + strings.Repeat("<tr><td colspan=65000 rowspan=65000>x", 100) + "</table>",
		"stars":      strings.Repeat("*_`[", 100000),
		"emphasis":   strings.Repeat("<b>x</b> <i>y</i>", 20000),
		"links":      strings.Repeat("<a href=/x>y</a>", 20000),
		"words":      strings.Repeat("<p>one two three", 40000),
		"nested":     strings.Repeat("<ul><li>a<ol><li>b<blockquote>c", 80) + strings.Repeat("<p>d", 20000),
		"code":       "<pre>" + strings.Repeat("`", 200000) + "</pre>",
	} {
		w := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, page)
		})
		w.client.Time = 3 * time.Second
		begin := time.Now()
		r, err := w.get(t, "/")
		took := time.Since(begin)
		if took > 6*time.Second || err != nil && fault.CodeOf(err) != fault.LimitTime {
			t.Errorf("%s: %v after %v", what, err, took)
		}
		if r != nil {
			t.Logf("%s: %v, %s, %d bytes", what, took.Round(time.Millisecond), r.Form, len(r.Body))
		} else {
			t.Logf("%s: %v, %v", what, took.Round(time.Millisecond), err)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a.test/x?y#z", "https://[::1]:8/", "http://a@b/", "http:x", "HTTP://bücher.test"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := parseURL(s)
		if err != nil {
			return
		}
		again, err := parseURL(u.String())
		if err != nil || again.Host != u.Host || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q: %v, then %v, %v", s, u, again, err)
		}
	})
}

func FuzzShape(f *testing.F) {
	f.Add([]byte("<p>a<b>c"), "text/html; charset=utf-8")
	f.Add([]byte("\xff\xfea\x00"), "text/plain")
	f.Fuzz(func(t *testing.T, body []byte, declared string) {
		res := &Response{Type: mediaType(declared, body), Body: body}
		if len(body) > 10000 || shape(t.Context(), res, declared) != nil {
			return
		}
		if res.Form != Binary && !bytes.Equal(bytes.ToValidUTF8(res.Body, nil), res.Body) {
			t.Fatalf("%q as %q gave %q", body, declared, res.Body)
		}
	})
}
