package factlog

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

const (
	keyLen = 32
	macLen = 2 * sha256.Size
	// maxLine bounds a line with its sequence number, MAC and newline.
	maxLine = MaxRecord + macLen + 32
	// format is the version in the header. A reader refuses later ones.
	format = 1
)

// header is the payload of record 0.
type header struct {
	Log     int    `json:"log"`
	Session string `json:"session"`
	// Salt makes the heads of two sessions with one name differ.
	Salt string `json:"salt"`
}

// chain stands behind the last good record of a log and knows what the next
// one must look like.
type chain struct {
	mac  hash.Hash
	id   string
	next uint64 // the sequence number of the next record
	last string // the MAC of the last record; empty before the header
	off  int64  // where the next record begins
	buf  []byte
}

func newChain(key []byte, id string) chain {
	return chain{mac: hmac.New(sha256.New, key), id: id}
}

// sum appends the MAC of the next record to b.
func (c *chain) sum(b, payload []byte) []byte {
	c.mac.Reset()
	c.buf = append(c.buf[:0], "tether log 1\n"...)
	c.buf = append(append(c.buf, c.id...), '\n')
	c.buf = append(strconv.AppendUint(c.buf, c.next, 10), '\n')
	c.buf = append(append(c.buf, c.last...), '\n')
	c.mac.Write(c.buf)
	c.mac.Write(payload)
	c.buf = c.mac.Sum(c.buf[:0])
	return hex.AppendEncode(b, c.buf)
}

// line returns the next record as it is written. It does not move c.
func (c *chain) line(payload []byte) []byte {
	b := make([]byte, 0, len(payload)+macLen+24)
	b = append(strconv.AppendUint(b, c.next, 10), ' ')
	b = append(c.sum(b, payload), ' ')
	return append(append(b, payload...), '\n')
}

// take moves c behind line, which must be the next record, and returns its
// payload. The whole line is compared as text, so that no second spelling of
// the same record passes.
func (c *chain) take(line []byte) ([]byte, bool) {
	seq, rest, _ := bytes.Cut(line, []byte(" "))
	if len(rest) < macLen+2 || rest[macLen] != ' ' || line[len(line)-1] != '\n' || string(seq) != strconv.FormatUint(c.next, 10) {
		return nil, false
	}
	payload := rest[macLen+1 : len(rest)-1]
	if !hmac.Equal(c.sum(nil, payload), rest[:macLen]) {
		return nil, false
	}
	c.last = string(rest[:macLen])
	c.next++
	c.off += int64(len(line))
	return payload, true
}

// head names the last record.
func (c *chain) head() string {
	if c.next == 0 {
		return ""
	}
	return head{c.id, c.next - 1, c.last}.String()
}

// reader reads the records behind a chain and moves it.
type reader struct {
	c    *chain
	in   *bufio.Reader
	long []byte
	// torn is set at the end: bytes of a record that was never finished.
	torn int64
}

func newReader(c *chain, in io.Reader) *reader {
	return &reader{c: c, in: bufio.NewReaderSize(in, 32<<10)}
}

// next returns the facts of the next record, none for the header, and io.EOF
// behind the last one.
//
// A crash may leave, as the last record and only there, a line without its end
// or one with bytes that never reached the disk and read as zeros, which no
// record holds. Both were never acknowledged, so they count as not written.
// Everything else that is not the next record is STORE_CORRUPT.
func (r *reader) next() (Record, error) {
	line, err := r.line()
	if err == io.EOF {
		r.torn = int64(len(line))
		return Record{}, io.EOF
	} else if err != nil {
		return Record{}, err
	}
	seq := r.c.next
	payload, ok := r.c.take(line)
	if !ok {
		if r.atEnd() && r.unwritten(line) {
			r.torn = int64(len(line))
			return Record{}, io.EOF
		}
		return Record{}, corrupt(r.c.id, seq, "its MAC does not fit")
	}
	rec := Record{Seq: seq, MAC: r.c.last}
	if seq == 0 {
		return rec, r.header(payload)
	}
	rec.Facts, err = decode(payload)
	if err != nil {
		return Record{}, fault.Wrap(fault.StoreCorrupt, fmt.Sprintf("record %d of the session %s has our MAC and cannot be read", seq, r.c.id), err)
	}
	return rec, nil
}

// line returns the next line with its newline, or what is left and io.EOF.
func (r *reader) line() ([]byte, error) {
	r.long = r.long[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		switch {
		case len(r.long)+len(part) > maxLine:
			return nil, corrupt(r.c.id, r.c.next, "it is longer than any record")
		case err == nil && len(r.long) == 0:
			return part, nil
		case errors.Is(err, bufio.ErrBufferFull):
			r.long = append(r.long, part...)
		case err == nil, err == io.EOF:
			r.long = append(r.long, part...)
			return r.long, err
		default:
			return nil, unavailable("the log of "+r.c.id+" cannot be read", err)
		}
	}
}

// unwritten tells whether a line has zeros in it, and not in the place where a
// good record ended: that one had been acknowledged, so no crash put them there.
func (r *reader) unwritten(line []byte) bool {
	zero := bytes.IndexByte(line, 0)
	if zero < 0 {
		return false
	}
	probe := *r.c
	_, ended := probe.take(append(bytes.Clone(line[:zero]), '\n'))
	return !ended
}

func (r *reader) atEnd() bool {
	_, err := r.in.Peek(1)
	return err == io.EOF
}

func (r *reader) header(payload []byte) error {
	var h header
	if err := json.Unmarshal(payload, &h); err != nil || h.Session != r.c.id || h.Log < 1 {
		return corrupt(r.c.id, 0, "it is no header")
	}
	if h.Log > format {
		return fault.New(fault.StoreUnavailable, fmt.Sprintf("the session %s was written by a later version of tether", r.c.id)).
			WithHint("use that version, or a new session")
	}
	return nil
}

func decode(payload []byte) ([]fact.Fact, error) {
	if len(payload) == 0 || payload[0] != '[' {
		f, err := fact.Parse(payload)
		return []fact.Fact{f}, err
	}
	var facts []fact.Fact
	err := json.Unmarshal(payload, &facts)
	return facts, err
}
