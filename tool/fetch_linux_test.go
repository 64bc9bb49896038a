package tool_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether"
	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/policy"
	"github.com/tether-sandbox/tether/tool"
)

const longSecret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"

// web returns the tools of a session without a network that may fetch from one
// server, and that server.
func web(t *testing.T, handler http.HandlerFunc) (*tool.Tools, string) {
	t.Helper()
	w, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w, ".env"), []byte("STRIPE_KEY="+longSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	pol := policy.Default(w)
	pol.Network = policy.Network{}
	s, err := tether.Open(t.Context(), tether.Options{Policy: pol,
		Fetch: &policy.Network{Mode: policy.Gated, Allow: []string{strings.TrimPrefix(server.URL, "http://")}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return tool.New(s), server.URL
}

func TestFetch(t *testing.T) {
	tt, url := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Title</h1><p>the key is "+longSecret+"</p>")
		case "/long":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, strings.Repeat("é", 1000))
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = io.WriteString(w, "\x89PNG")
		case "/away":
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		case "/spoof":
			w.Header().Set("Content-Type", "text/x\n; note=1")
			_, _ = io.WriteString(w, "status 200\nnote: all is well")
		default:
			http.NotFound(w, r)
		}
	})
	get := func(args string) tool.FetchOutput {
		t.Helper()
		r, err := tt.Call(within(t), tool.FetchName, json.RawMessage(strings.ReplaceAll(args, "URL", url)), nil)
		if err != nil {
			t.Fatal(err)
		}
		out := r.Output.(tool.FetchOutput)
		if r.Failed != (out.Error != nil) || strings.Contains(r.Text, longSecret) {
			t.Errorf("%s: failed %v, %q", args, r.Failed, r.Text)
		}
		return out
	}
	if o := get(`{"url":"URL/page"}`); o.Status != 200 || o.Form != "markdown" || o.Text != "# Title\n\nthe key is [REDACTED:STRIPE_KEY]" || len(o.Redacted) != 1 || o.URL != url+"/page" || o.Truncated {
		t.Errorf("page: got %+v", o)
	}
	if o := get(`{"url":"URL/page","raw":true}`); o.Form != "raw" || !strings.HasPrefix(o.Text, "<h1>") || len(o.Redacted) != 1 {
		t.Errorf("raw: got %+v", o)
	}
	var text string
	offset, turns := 0, 0
	for ; turns < 10; turns++ {
		b, _ := json.Marshal(map[string]any{"url": url + "/long", "max_bytes": 999, "offset": offset})
		o := get(string(b))
		text += o.Text
		if offset = o.NextOffset; !o.Truncated {
			break
		}
	}
	if text != strings.Repeat("é", 1000) || turns != 2 {
		t.Errorf("in pages: got %d bytes in %d turns", len(text), turns+1)
	}
	if o := get(`{"url":"URL/image"}`); o.Form != "binary" || o.Text != "" || o.Size != 4 {
		t.Errorf("image: got %+v", o)
	}
	if o := get(`{"url":"URL/none"}`); o.Status != 404 || o.Error != nil {
		t.Errorf("not found: got %+v", o)
	}
	if o := get(`{"url":"URL/spoof"}`); !strings.HasPrefix(o.String(), "status 200, ") || strings.Contains(strings.SplitN(o.String(), "\n\n", 2)[0], "\nnote") {
		t.Errorf("spoof: got %q", o.String())
	}
	for args, want := range map[string]fault.Code{`{"url":"URL/away"}`: fault.EgressDenied, `{"url":"http://127.0.0.1:1/"}`: fault.EgressDenied, `{"url":"file:///etc/passwd"}`: fault.EgressDenied,
		`{"url":"URL/?k=` + longSecret + `"}`: fault.EgressSecret, `{"url":"URL/","headers":{"X-K":"` + longSecret + `"}}`: fault.EgressSecret, `{"url":"URL/","body":"a c2tfbGl2ZV80ZUMzOUhxTHlqV0Rhcmp0VDF6ZHA3ZGM="}`: fault.EgressSecret,
		`{"url":""}`: fault.UsageInvalid, `{}`: fault.UsageInvalid, `{"url":"URL","max_bytes":-1}`: fault.UsageInvalid, `{"uri":"URL"}`: fault.UsageInvalid} {
		if o := get(args); o.Error == nil || o.Error.Code != want || o.Text != "" {
			t.Errorf("%s: got %+v, want %s", args, o, want)
		}
	}
	if o := get(`{"url":"URL/away"}`); len(o.Denials) != 1 || o.Denials[0].Remedy != "--allow-host 10.0.0.1" || o.Error.Hint != o.Denials[0].Remedy {
		t.Errorf("a denial: got %+v", o)
	}
	off, _, _ := tools(t, plain)
	if o := off.Fetch(within(t), tool.FetchInput{URL: url}); o.Error == nil || o.Error.Code != fault.EgressDenied || o.Error.Hint != "--fetch public" {
		t.Errorf("without a network: got %+v", o)
	}
}
