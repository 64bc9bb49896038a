package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/flagset"
)

func TestMain(m *testing.M) {
	tether.Inner()
	dir, err := os.MkdirTemp("", "tether-fetch-")
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		if err == nil {
			err = os.Setenv(name, filepath.Join(dir, name))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestFetchVerb is the command line: what goes where, and the exit status.
func TestFetchVerb(t *testing.T) {
	const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
	w := t.TempDir()
	if err := os.WriteFile(filepath.Join(w, ".env"), []byte("KEY="+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/page":
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<h1>Hi</h1>"+secret)
		case "/bytes":
			rw.Header().Set("Content-Type", "application/octet-stream")
			_, _ = rw.Write([]byte{0, 1, 255, '\n'})
		case "/slow":
			<-r.Context().Done()
		case "/echo":
			fmt.Fprintf(rw, "%s %s %s", r.Method, r.Header.Get("X-A"), b)
		default:
			http.NotFound(rw, r)
		}
	}))
	defer server.Close()
	rule := "127.0.0.1:" + server.URL[strings.LastIndexByte(server.URL, ':')+1:]
	listed := []string{"-C", w, "--no-network", "--fetch", "listed", "--allow-host", rule}
	do := func(in string, args ...string) (out, errs string, code int, err error) {
		t.Helper()
		var files [2]*os.File
		for i := range files {
			f, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			files[i] = f
		}
		code, err = fetch(args, strings.NewReader(in), files[0], files[1])
		if err != nil {
			flagset.Tell(files[1], err)
		}
		a, _ := os.ReadFile(files[0].Name())
		b, _ := os.ReadFile(files[1].Name())
		return string(a), string(b), code, err
	}
	ok := func(args ...string) []string { return append(listed[:len(listed):len(listed)], args...) }
	for _, c := range []struct {
		in        string
		args      []string
		out, errs string
		code      int
	}{
		{"", ok(server.URL + "/page"), "# Hi\n\n[REDACTED:KEY]\n", "status 200, text/html, ", 0},
		{"", ok(server.URL+"/page", "--raw"), "<h1>Hi</h1>[REDACTED:KEY]", "[REDACTED:KEY] stands for a secret in 1 places", 0},
		{"", ok(server.URL + "/bytes"), "\x00\x01\xff\n", "4 bytes, binary, from " + server.URL, 0},
		{"from stdin", ok("--body", "-", "--header", "X-A: b", server.URL+"/echo"), "POST b from stdin\n", "status 200", 0},
		{"", ok(server.URL + "/none"), "404 page not found\n", "status 404", 1},
		{"", []string{"-C", w, "--no-network", server.URL}, "", "EGRESS_DENIED: the policy has no network for fetching\nhint: --fetch public", 125},
		{"", []string{"-C", w, "--no-network", "--fetch", "public", server.URL}, "", "EGRESS_DENIED: 127.0.0.1 port ", 125},
		{"", []string{"-C", w, "--no-network", "--fetch", "public", "--allow-host", rule, "--deny-host", "127.0.0.0/8", server.URL}, "", "EGRESS_DENIED: 127.0.0.1 port ", 125},
		{"", []string{"-C", w, "--network", "open", "--fetch", "none", server.URL}, "", "EGRESS_DENIED", 125},
		{"", ok(server.URL + "/?" + secret), "", "EGRESS_SECRET: the address of a request to 127.0.0.1", 125},
		{"", ok(), "", "USAGE_INVALID: the address is missing", 125},
		{"", ok("a", "b"), "", "USAGE_INVALID: one address is enough", 125},
		{"", ok("--fetch", "some", server.URL), "", "POLICY_INVALID", 125},
		{"", ok("--header", "X", server.URL), "", "tether: USAGE_INVALID: a header is NAME: VALUE\nhint: --header ", 125},
		{"", ok("--timeout", "100ms", server.URL+"/slow"), "", "LIMIT_TIME: the fetch took longer than 100ms", 124},
	} {
		out, errs, code, err := do(c.in, c.args...)
		if out != c.out || !strings.Contains(errs, c.errs) || code != c.code {
			t.Errorf("%v: got %q, %q, %d (%v); want %q, %q, %d", c.args, out, errs, code, err, c.out, c.errs, c.code)
		}
	}
	// Help lists what changes a fetch, and not what is about commands alone.
	if help, _, code, _ := do("", "-h"); code != 125 || !strings.Contains(help, "--only-host") || !strings.Contains(help, "--timeout") ||
		strings.Contains(help, "--max-memory") || strings.Contains(help, "--provider") || strings.Contains(help, "limits:\n  --max") {
		t.Errorf("-h: got %d, %s", code, help)
	}
	out, errs, code, err := do("", ok(server.URL+"/page", "--json")...)
	var got struct {
		Status   int
		Text     string
		Redacted []tether.Redaction
	}
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || code != 0 || errs != "" || got.Status != 200 || got.Text != "# Hi\n\n[REDACTED:KEY]" || len(got.Redacted) != 1 {
		t.Errorf("--json: got %q, %q, %d, %v", out, errs, code, err)
	}
	out, _, code, err = do("", "-C", w, "--no-network", "--json", server.URL)
	if err != nil || code != 125 || !strings.Contains(out, `"error":{"code":"`+string(fault.EgressDenied)+`"`) {
		t.Errorf("--json of a refusal: got %q, %d, %v", out, code, err)
	}
}
