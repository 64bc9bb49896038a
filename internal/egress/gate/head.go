package gate

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/tether-sandbox/tether/internal/host"
)

// request is the head of one HTTP/1 request. What two readers could read in two
// ways is no request.
type request struct {
	method, target string
	minor          int // of HTTP/1
	fields         []field
}

type field struct{ name, value string }

// mostHead bounds a request's head.
const mostHead = 64 << 10

var errHead = errors.New("it is no request that is read in one way only")

// readRequest reads a head up to its empty line, and nothing after it.
func readRequest(r *bufio.Reader) (*request, error) {
	left := mostHead
	line, err := readLine(r, &left)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !token(parts[0]) || parts[1] == "" {
		return nil, errHead
	}
	q := &request{method: parts[0], target: parts[1]}
	switch parts[2] {
	case "HTTP/1.1":
		q.minor = 1
	case "HTTP/1.0":
	default:
		return nil, errHead
	}
	for {
		line, err := readLine(r, &left)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return q, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !token(name) { // also a line that continues the one before
			return nil, errHead
		}
		q.fields = append(q.fields, field{name, strings.Trim(value, " \t")})
	}
}

// readLine reads a line that ends in CR LF and holds no control character.
func readLine(r *bufio.Reader, left *int) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errHead
	}
	if err != nil {
		return "", err
	}
	if *left -= len(line); *left < 0 {
		return "", errHead
	}
	text, ok := bytes.CutSuffix(line, []byte("\r\n"))
	if !ok {
		return "", errHead
	}
	for _, c := range text {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "", errHead
		}
	}
	return string(text), nil
}

// token says whether s is a token (RFC 9110, 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// all returns the values of a field.
func (q *request) all(name string) []string {
	var out []string
	for _, f := range q.fields {
		if strings.EqualFold(f.name, name) {
			out = append(out, f.value)
		}
	}
	return out
}

// drop removes fields.
func (q *request) drop(names ...string) {
	kept := q.fields[:0]
	for _, f := range q.fields {
		gone := false
		for _, n := range names {
			gone = gone || strings.EqualFold(f.name, n)
		}
		if !gone {
			kept = append(kept, f)
		}
	}
	q.fields = kept
}

// host returns the one host that the request names in its Host field.
func (q *request) host() (host.Host, uint16, error) {
	values := q.all("Host")
	if len(values) != 1 {
		return host.Host{}, 0, errHead
	}
	return authority(values[0], 80)
}

// authority reads host or host:port, without a user in it.
func authority(s string, port uint16) (host.Host, uint16, error) {
	name := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		v, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || v == 0 || s[i+1] == '+' {
			return host.Host{}, 0, errHead
		}
		name, port = s[:i], uint16(v)
	}
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return host.Host{}, 0, errHead
	}
	h, err := host.Parse(name)
	return h, port, err
}

// body is how the end of a request's body is found.
type body struct {
	length  int64
	chunked bool
}

func (q *request) body() (body, error) {
	lengths, codings := q.all("Content-Length"), q.all("Transfer-Encoding")
	switch {
	case len(codings) > 1, len(lengths) > 1, len(codings) == 1 && len(lengths) == 1:
		return body{}, errHead
	case len(codings) == 1:
		if q.minor == 0 || !strings.EqualFold(codings[0], "chunked") {
			return body{}, errHead
		}
		return body{chunked: true}, nil
	case len(lengths) == 1:
		s := lengths[0]
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || strings.Trim(s, "0123456789") != "" {
			return body{}, errHead
		}
		return body{length: n}, nil
	}
	return body{}, nil
}

// copy carries exactly one body from r to w.
func (b body) copy(w io.Writer, r *bufio.Reader) error {
	if !b.chunked {
		_, err := io.CopyN(w, r, b.length)
		return err
	}
	for {
		left := 4096
		line, err := readLine(r, &left)
		if err != nil {
			return err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(size, 16, 62)
		if err != nil || strings.Trim(size, "0123456789abcdefABCDEF") != "" {
			return errHead
		}
		// Extensions of a chunk mean nothing to anybody and are left out.
		if _, err := io.WriteString(w, strconv.FormatUint(n, 16)+"\r\n"); err != nil {
			return err
		}
		if n == 0 {
			return copyTrailer(w, r)
		}
		if _, err := io.CopyN(w, r, int64(n)); err != nil {
			return err
		}
		if line, err := readLine(r, &left); err != nil || line != "" {
			return errors.Join(err, errHead)
		}
		if _, err := io.WriteString(w, "\r\n"); err != nil {
			return err
		}
	}
}

// copyTrailer reads the fields after the last chunk and leaves them out.
func copyTrailer(w io.Writer, r *bufio.Reader) error {
	left := mostHead
	for {
		line, err := readLine(r, &left)
		if err != nil {
			return err
		}
		if line == "" {
			_, err := io.WriteString(w, "\r\n")
			return err
		}
	}
}

// write prints the head with another target.
func (q *request) write(target string) []byte {
	b := []byte(q.method + " " + target + " HTTP/1." + strconv.Itoa(q.minor) + "\r\n")
	for _, f := range q.fields {
		b = append(b, f.name+": "+f.value+"\r\n"...)
	}
	return append(b, "\r\n"...)
}
