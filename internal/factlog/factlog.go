// Package factlog keeps the facts of sessions in an append-only store in the
// user's state folder.
//
// Each session is one file of lines, and each line is bound to the one before
// by a MAC under a key that lies in the state folder:
//
//	SEQ MAC PAYLOAD
//
// SEQ counts from 0; MAC is HMAC-SHA256 in hexadecimal over the session's name,
// SEQ, the MAC of the line before and PAYLOAD; PAYLOAD is a header in line 0
// and one fact, or a list of facts recorded together, in the others.
//
// What it promises: a record is on the disk before Append returns. Records are
// never half there: a line that a crash cut short is dropped by the next
// writer. Many processes may write one session; what each decides on, it
// decides under the lock, on the state that then holds. Whoever lacks the key
// cannot change, insert, reorder, repeat, move to another session or remove a
// record in the middle without Verify finding it. The removal of records at the
// end, or of the whole session, shows only against a head that was kept
// elsewhere.
//
// What it does not promise: anything against those who can read the key, which
// is everything that runs as the user outside the sandbox. Secrets are the
// caller's to keep out; the log stores what it is given.
//
// On systems other than Linux every function refuses.
package factlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// MaxRecord is the longest payload of one record, in bytes. Texts are bounded
// besides, by fact.MaxText.
const MaxRecord = 256 << 10

// Record is one line of a log: what one call recorded.
type Record struct {
	Seq   uint64
	Facts []fact.Fact
	// MAC names the record, and with it all before.
	MAC string
}

// Info is a session as it lies in the store, unverified.
type Info struct {
	ID       string
	Bytes    int64
	Modified time.Time
}

// Report is the outcome of a verification.
type Report struct {
	// Records counts the lines after the header, Facts what is in them.
	Records uint64
	Facts   int
	// Torn is how many bytes a crash left behind the last record. They were
	// never acknowledged; the next writer cuts them.
	Torn int64
	// Head is what to keep elsewhere: see VerifyAgainst.
	Head string
}

// ValidID tells whether a session can have this name: 1 to 64 lower-case
// letters, digits and hyphens, the first one not a hyphen.
func ValidID(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '-' {
		return false
	}
	for _, c := range []byte(id) {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// NewID makes up the name of a session: when it began, and chance.
func NewID(now time.Time) string {
	const letters = "abcdefghijkmnpqrstuvwxyz23456789" // 32, none that looks like another
	var raw [8]byte
	rand.Read(raw[:])
	for i := range raw {
		raw[i] = letters[raw[i]%32]
	}
	return now.UTC().Format("20060102-150405-") + string(raw[:])
}

// head is a place in a log: SESSION:SEQ:MAC.
type head struct {
	id  string
	seq uint64
	mac string
}

func (h head) String() string { return h.id + ":" + strconv.FormatUint(h.seq, 10) + ":" + h.mac }

func parseHead(s string) (head, error) {
	id, rest, _ := strings.Cut(s, ":")
	seq, mac, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseUint(seq, 10, 64)
	h := head{id, n, mac}
	if err != nil || !ValidID(id) || len(mac) != macLen || h.String() != s {
		return head{}, fault.New(fault.UsageInvalid, "this is no head of a log: "+strconv.Quote(s))
	}
	return h, nil
}

// encode makes the payload of a record and reads it back: what is counted live
// is then what a replay will count.
func encode(facts []fact.Fact, now time.Time) ([]byte, []fact.Fact, error) {
	payload := []byte{'['}
	kept := make([]fact.Fact, len(facts))
	for i, f := range facts {
		if n := f.Longest(); n > fact.MaxText {
			return nil, nil, fault.New(fault.Internal, fmt.Sprintf("a fact with a text of %d bytes, where at most %d are recorded", n, fact.MaxText))
		}
		if f.Time.IsZero() {
			f.Time = now
		}
		f.Time = f.Time.UTC().Round(0)
		b, err := f.MarshalJSON()
		if err != nil {
			return nil, nil, fault.Wrap(fault.Internal, "a fact cannot be written", err)
		}
		if kept[i], err = fact.Parse(b); err != nil {
			return nil, nil, fault.Wrap(fault.Internal, "a fact cannot be read back", err)
		}
		payload = append(append(payload, b...), ',')
	}
	payload[len(payload)-1] = ']'
	if len(facts) == 1 {
		payload = payload[1 : len(payload)-1]
	}
	if len(payload) > MaxRecord {
		return nil, nil, fault.New(fault.Internal, fmt.Sprintf("a record of %d bytes, where at most %d are recorded", len(payload), MaxRecord))
	}
	return payload, kept, nil
}

func unavailable(what string, err error) error {
	return fault.Wrap(fault.StoreUnavailable, what, err)
}

func missing(id string) error {
	return unavailable("no session is called "+strconv.Quote(id), fs.ErrNotExist)
}

func badID(id string) error {
	return fault.New(fault.UsageInvalid, strconv.Quote(id)+" cannot be the name of a session").
		WithHint("lower-case letters, digits and hyphens, at most 64")
}

// corrupt says which record it is. Records are counted as Verify reports them:
// the header is 0.
func corrupt(id string, seq uint64, why string) error {
	return fault.Wrap(fault.StoreCorrupt, fmt.Sprintf("record %d of the session %s is not what was written there", seq, id), errors.New(why))
}
