package fetch

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/tether-sandbox/tether/fault"
)

// read reads the body of resp and gives it its form.
func (c *Client) read(ctx context.Context, resp *http.Response, raw bool) (*Response, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return nil, fault.New(fault.FetchFailed, "the server changed the protocol")
	}
	body, err := decode(resp)
	if err != nil {
		return nil, err
	}
	limit := c.Bytes
	if limit == 0 {
		limit = DefaultBytes
	}
	// Known beforehand, or found on the way.
	tooMuch := fault.New(fault.LimitResponse, fmt.Sprintf("the answer is larger than %d bytes", limit)).
		WithHint("ask for a part of it, or download it with a command: tether run -- curl -O URL")
	if resp.ContentLength > limit {
		return nil, tooMuch
	}
	b, err := readAll(body, limit, resp.ContentLength)
	switch {
	case errors.Is(err, errTooMuch):
		return nil, tooMuch
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault.New(fault.FetchFailed, "the answer ended before it was complete")
	case err != nil:
		return nil, err
	}
	res := &Response{Status: resp.StatusCode, URL: resp.Request.URL.String(), Size: int64(len(b)), Form: Raw, Body: b}
	declared := resp.Header.Get("Content-Type")
	res.Type = mediaType(declared, b)
	if raw || len(b) == 0 {
		return res, nil
	}
	return res, shape(ctx, res, declared)
}

var errTooMuch = errors.New("too much")

// readAll reads at most limit bytes; expected is how many it should be, or
// negative. What is kept grows with what has come, not with what was promised.
func readAll(r io.Reader, limit, expected int64) ([]byte, error) {
	buf := make([]byte, 0, min(max(expected, 0)+1, 64<<10))
	for {
		if len(buf) == cap(buf) {
			next := make([]byte, len(buf), min(2*int64(cap(buf))+512, limit+1))
			copy(next, buf)
			buf = next
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			return nil, errTooMuch
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// decode takes off one content coding that we asked for.
func decode(resp *http.Response) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	if resp.ContentLength == 0 || resp.Request.Method == http.MethodHead {
		return resp.Body, nil
	}
	bad := func(err error) error {
		return fault.Wrap(fault.FetchFailed, "the answer is not the "+coding+" that it says it is", err)
	}
	switch coding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		resp.ContentLength = -1 // is that of the coding
		z, err := gzip.NewReader(resp.Body)
		if err == io.EOF {
			return resp.Body, nil // empty after all
		}
		if err != nil {
			return nil, bad(err)
		}
		return z, nil
	case "deflate":
		resp.ContentLength = -1
		b := bufio.NewReader(resp.Body)
		head, err := b.Peek(2)
		if err != nil {
			return b, nil
		}
		// Meant is zlib's format, and some send the bare one.
		if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			z, err := zlib.NewReader(b)
			if err != nil {
				return nil, bad(err)
			}
			return z, nil
		}
		return flate.NewReader(b), nil
	}
	return nil, fault.New(fault.FetchFailed, fmt.Sprintf("the answer is coded as %q, which was not asked for", coding))
}

// mediaType is what the server declares, or what the first bytes look like.
func mediaType(declared string, raw []byte) string {
	if t, _, err := mime.ParseMediaType(declared); err == nil && t != "" {
		return t
	}
	t, _, _ := mime.ParseMediaType(http.DetectContentType(raw))
	return t
}
