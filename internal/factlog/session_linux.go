package factlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fact"
	"github.com/tether-sandbox/tether/fault"
)

// Session is one session's log, open for writing, with the state that its
// facts add up to. It is safe for concurrent use, and so is the same session
// in other processes.
type Session struct {
	store *Store
	id    string

	mu     sync.Mutex
	file   *os.File
	live   *os.File // see Attend
	chain  chain
	state  fact.State
	broken error // set once what lies on the disk is no longer known
}

// Session opens a session, or begins it where it does not exist, and replays
// it. A session that exists is verified as a whole.
func (s *Store) Session(id string) (*Session, error) {
	for range 100 {
		f, err := s.open(id, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT)
		if err != nil {
			return nil, err
		}
		l := &Session{store: s, id: id, file: f, chain: newChain(s.key, id)}
		err = l.locked(l.begin)
		if err == nil {
			return l, nil
		}
		f.Close()
		if !errors.Is(err, errRemoved) { // removed between open and lock: begin anew
			return nil, err
		}
	}
	return nil, unavailable("the session "+id+" is removed again and again", errRemoved)
}

var errRemoved = errors.New("the session was removed")

// begin writes the header of a log that has none. No record follows before the
// header, the names of the file and of its folder and the key are on the disk,
// so whoever finds a record finds what will still be there after a power cut,
// whoever made it and died.
func (l *Session) begin() error {
	if l.chain.next > 1 {
		return nil
	}
	if l.chain.next == 0 {
		b, err := json.Marshal(header{Log: format, Session: l.id, Salt: newSalt()})
		if err != nil {
			return fault.Wrap(fault.Internal, "the header of a log", err)
		}
		// It lasts with the first record: what syncs that syncs all before.
		if err := l.put(b, false); err != nil {
			return err
		}
	}
	err := unix.Fsync(int(l.store.sessions.Fd()))
	if err == nil {
		err = unix.Fsync(int(l.store.state.Fd()))
	}
	if err != nil {
		return unavailable("the state folder cannot be written", err)
	}
	return nil
}

// Close closes the session.
func (l *Session) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live != nil {
		return errors.Join(l.live.Close(), l.file.Close())
	}
	return l.file.Close()
}

// State returns the state with what other processes have recorded by now.
func (l *Session) State() (fact.State, error) {
	var s fact.State
	err := l.Update(func(now fact.State) ([]fact.Fact, error) {
		s = now
		return nil, nil
	})
	return s, err
}

// Head names the last record that this process knows.
func (l *Session) Head() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chain.head()
}

// Append records facts, all or none of them, and returns when they are on the
// disk. A fact without a time gets the present one. An error means that nothing
// was recorded: what the facts announce must then not be done.
//
// STORE_UNAVAILABLE: the disk is full or read-only, another writer keeps the
// lock, or the session was removed. STORE_CORRUPT: somebody else changed what
// stands before. INTERNAL: a text is longer than fact.MaxText, or all
// together are longer than [MaxRecord]. Bytes that are not UTF-8 are escaped.
func (l *Session) Append(facts ...fact.Fact) error {
	return l.do(func() ([]fact.Fact, error) { return facts, nil })
}

// Update records what decide returns. decide sees the state as it is then and
// nobody else records anything in between, so what it finds allowed is so
// when it is recorded. An error of decide is returned as it is. decide must be
// quick, since others wait, and must not use this session.
func (l *Session) Update(decide func(fact.State) ([]fact.Fact, error)) error {
	return l.do(func() ([]fact.Fact, error) { return decide(l.state.Clone()) })
}

func (l *Session) do(decide func() ([]fact.Fact, error)) error {
	return l.locked(func() error {
		facts, err := decide()
		if err != nil || len(facts) == 0 {
			return err
		}
		payload, kept, err := encode(facts, time.Now())
		if err != nil {
			return err
		}
		if err := l.put(payload, true); err != nil {
			return err
		}
		for _, f := range kept {
			l.state.Add(f)
		}
		return nil
	})
}

// locked runs act while nobody else writes, on the state that then holds.
func (l *Session) locked(act func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if err := lock(l.file, l.store.patience); err != nil {
		return err
	}
	defer unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	if err := l.catchUp(); err != nil {
		return err
	}
	return act()
}

// catchUp reads what others have written and cuts what a dead one left.
func (l *Session) catchUp() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &st); err != nil {
		return unavailable("the log of "+l.id+" cannot be looked at", err)
	}
	switch {
	case st.Nlink == 0:
		return unavailable("the log of "+l.id+" is not there any more", errRemoved)
	case st.Nlink > 1:
		return fault.New(fault.StoreUnavailable, "the log of "+l.id+" has a second name")
	case st.Size == l.chain.off:
		return nil
	case st.Size < l.chain.off:
		return corrupt(l.id, l.chain.next-1, "the log was cut while we had it open")
	}
	r := newReader(&l.chain, io.NewSectionReader(l.file, l.chain.off, st.Size-l.chain.off))
	for {
		rec, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			l.broken = err // the chain stands somewhere in the middle
			return err
		}
		for _, f := range rec.Facts {
			l.state.Add(f)
		}
	}
	if r.torn == 0 {
		return nil
	}
	if err := unix.Ftruncate(int(l.file.Fd()), l.chain.off); err != nil {
		return unavailable("an unfinished record cannot be cut from the log of "+l.id, err)
	}
	return nil
}

// put writes the next record and moves the chain behind it, once it is on the
// disk if it has to be. What it could not finish it takes back.
func (l *Session) put(payload []byte, durable bool) error {
	fd, line := int(l.file.Fd()), l.chain.line(payload)
	err := writeAll(l.store.write, fd, line)
	synced := err == nil && durable
	if synced {
		err = l.store.sync(fd)
	}
	if err != nil {
		why := unavailable("nothing was recorded in the log of "+l.id, err)
		if cut := unix.Ftruncate(fd, l.chain.off); cut != nil || synced {
			// After a failed sync nobody knows what the disk holds.
			l.broken = why
		}
		return why
	}
	if _, ok := l.chain.take(line); !ok {
		l.broken = fault.New(fault.Internal, "a record of ours does not verify")
		return l.broken
	}
	return nil
}

func writeAll(write func(int, []byte) (int, error), fd int, b []byte) error {
	for len(b) > 0 {
		n, err := write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// lock takes the exclusive lock of a file. It polls, because a writer that was
// stopped while holding it must not stop everybody else for good.
func lock(f *os.File, patience time.Duration) error {
	const longest = 4 * time.Millisecond
	pause, until := 50*time.Microsecond, time.Now().Add(patience)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case err == unix.EINTR:
		case err != unix.EWOULDBLOCK:
			return unavailable("the log cannot be locked", err)
		case time.Now().After(until):
			return fault.New(fault.StoreUnavailable, fmt.Sprintf("another process has held the log for %v", patience))
		default:
			time.Sleep(pause)
			pause = min(2*pause, longest)
		}
	}
}
