package factlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

// Who takes part in a session holds one byte of a file beside its log, far
// beyond its end, by a lock that the kernel drops when the process is gone. The
// byte's number is the part's name. The log itself is not used for that: on a
// network file system its own lock would be one of the same kind.
const liveSuffix = ".live"

// Attend says that this process takes part in the session until Close, and
// returns the name of the part: no other part of the session has it.
func (l *Session) Attend() (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live != nil {
		return "", fault.New(fault.Internal, "the session is attended already")
	}
	f, err := openAt(int(l.store.sessions.Fd()), l.id+liveSuffix, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return "", unavailable("who takes part in "+l.id+" cannot be noted", err)
	}
	for range 100 {
		var raw [8]byte
		rand.Read(raw[:])
		n := int64(binary.LittleEndian.Uint64(raw[:]) >> 24) // 40 bits
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: n, Len: 1})
		if err == nil {
			l.live = f
			return strconv.FormatInt(n, 36), nil
		}
		if err != unix.EAGAIN && err != unix.EACCES {
			break
		}
	}
	f.Close()
	return "", unavailable("who takes part in "+l.id+" cannot be noted", err)
}

// Alive tells whether the part with this name is still there. A name that was
// never given is not.
func (l *Session) Alive(part string) bool {
	n, err := strconv.ParseInt(part, 36, 64)
	if err != nil || n < 0 {
		return false
	}
	held, err := l.store.held(l.id, n, 1)
	return held || err != nil // what cannot be asked is not called dead
}

// Attended tells whether any process takes part in a session.
func (s *Store) Attended(id string) (bool, error) {
	if !ValidID(id) {
		return false, badID(id)
	}
	return s.held(id, 0, math.MaxInt64)
}

// held tells whether somebody holds a byte of a range.
func (s *Store) held(id string, start, length int64) (bool, error) {
	f, err := openAt(int(s.sessions.Fd()), id+liveSuffix, unix.O_RDWR)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unavailable("who takes part in "+id+" cannot be read", err)
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: length}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, unavailable("who takes part in "+id+" cannot be asked", err)
	}
	return lock.Type != unix.F_UNLCK, nil
}
