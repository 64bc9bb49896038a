package factlog

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
)

const (
	folderName = "sessions"
	keyName    = "log.key"
	suffix     = ".log"
	openFolder = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	openFile   = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
)

// Store is the sessions of one state folder. It is safe for concurrent use.
type Store struct {
	dir      string
	state    *os.File // the state folder
	sessions *os.File // the folder in it
	key      []byte
	patience time.Duration // how long to wait for another writer

	// What tests replace to fail or to die at any byte.
	write func(fd int, b []byte) (int, error)
	sync  func(fd int) error
}

// Open opens the store in the state folder dir and makes both, and the key,
// where they are missing. Every failure is STORE_UNAVAILABLE, but for a key
// that is gone while sessions are there: that is STORE_CORRUPT, since a new
// one could verify none of them.
//
// dir itself may be no link, must be ours, and nobody else may be able to
// write it; what is made inside only we can read. The folders above dir are
// the caller's to judge.
func Open(dir string) (*Store, error) {
	dir = filepath.Clean(dir) // a final slash would follow a link
	if err := makeDir(dir); err != nil {
		return nil, fault.Wrap(fault.StoreUnavailable, "the state folder cannot be made", err).WithHint(writable(dir))
	}
	state, err := openDirAt(unix.AT_FDCWD, dir, 0o022)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, state: state, patience: 10 * time.Second, write: unix.Write, sync: unix.Fdatasync}
	if err := unix.Mkdirat(int(state.Fd()), folderName, 0o700); err != nil && err != unix.EEXIST {
		state.Close()
		return nil, unavailable("the sessions' folder cannot be made in "+strconv.Quote(dir), err)
	}
	if s.sessions, err = openDirAt(int(state.Fd()), folderName, 0o077); err != nil {
		state.Close()
		return nil, err
	}
	if s.key, err = s.loadKey(int(state.Fd())); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close closes the store, which must not be used any more, nor its sessions.
func (s *Store) Close() error { return errors.Join(s.sessions.Close(), s.state.Close()) }

// makeDir makes a folder and those above it, and sees to it that they last.
func makeDir(dir string) error {
	parent := filepath.Dir(dir)
	err := unix.Mkdir(dir, 0o700)
	if err == unix.ENOENT && parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
		err = unix.Mkdir(dir, 0o700)
	}
	if err == unix.EEXIST {
		return nil
	} else if err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	f, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// openDirAt opens a folder of ours for which no permission in forbidden is
// given. A write access by an access list shows in the group's bits.
func openDirAt(at int, name string, forbidden uint32) (*os.File, error) {
	fd, err := unix.Openat(at, name, openFolder, 0)
	if err != nil {
		return nil, unavailable("the folder "+strconv.Quote(name)+" cannot be opened", err)
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, unavailable("the folder "+strconv.Quote(name)+" cannot be looked at", err)
	}
	if int(st.Uid) != unix.Geteuid() || st.Mode&forbidden != 0 {
		f.Close()
		return nil, fault.New(fault.StoreUnavailable, fmt.Sprintf("the folder %q must be ours alone: its owner is %d and its mode %04o", name, st.Uid, st.Mode&0o7777)).
			WithHint("chmod 700 " + strconv.Quote(name))
	}
	return f, nil
}

// openAt opens a file of ours that nobody else can read.
func openAt(at int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(at, name, flags|openFile, 0o600)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != unix.Geteuid() || st.Mode&0o077 != 0 {
		f.Close()
		return nil, fmt.Errorf("%s is not a file that is ours alone: owner %d, mode %06o", name, st.Uid, st.Mode)
	}
	return f, nil
}

// writable is what to do when nothing can be made in a state folder.
func writable(dir string) string {
	return "make " + filepath.Dir(dir) + " writable and leave it room, or set XDG_STATE_HOME"
}

// loadKey reads the key or makes it. Many processes may do so at once: the
// first one to give it its name wins, with a file that is complete and on the
// disk by then.
func (s *Store) loadKey(state int) ([]byte, error) {
	key, err := readKey(state)
	if !errors.Is(err, unix.ENOENT) {
		return key, err
	}
	list, err := s.List()
	if err != nil {
		return nil, err
	}
	if len(list) > 0 {
		if key, err = readKey(state); errors.Is(err, unix.ENOENT) { // somebody may have made both just now
			return nil, fault.Wrap(fault.StoreCorrupt, "the key of the log is gone: its sessions can be verified no more", err).
				WithHint("put " + filepath.Join(s.dir, keyName) + " back, or move " + filepath.Join(s.dir, folderName) + " away")
		}
		return key, err
	}
	if err := makeKey(state); err != nil {
		return nil, fault.Wrap(fault.StoreUnavailable, "the key of the log cannot be made", err).WithHint(writable(s.dir))
	}
	return readKey(state)
}

func readKey(state int) ([]byte, error) {
	f, err := openAt(state, keyName, unix.O_RDONLY)
	if err != nil {
		return nil, unavailable("the key of the log cannot be opened", err)
	}
	defer f.Close()
	key := make([]byte, keyLen+1)
	n, err := io.ReadFull(f, key)
	if n != keyLen || !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fault.New(fault.StoreCorrupt, fmt.Sprintf("the key of the log is not %d bytes long", keyLen))
	}
	return key[:keyLen], nil
}

func makeKey(state int) error {
	key := make([]byte, keyLen)
	rand.Read(key)
	temp := keyName + "." + rand.Text()
	f, err := openAt(state, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer unix.Unlinkat(state, temp, 0)
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := unix.Linkat(state, temp, state, keyName, 0); err != nil && err != unix.EEXIST {
		return err
	}
	return unix.Fsync(state)
}

// List returns the sessions in the store by name. It opens none of them.
func (s *Store) List() ([]Info, error) {
	dir, err := openDirAt(int(s.sessions.Fd()), ".", 0o077) // its own offset
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, unavailable("the sessions cannot be listed", err)
	}
	slices.Sort(names)
	var list []Info
	for _, name := range names {
		id, ok := strings.CutSuffix(name, suffix)
		var st unix.Stat_t
		if !ok || !ValidID(id) || unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		list = append(list, Info{id, st.Size, time.Unix(st.Mtim.Unix())})
	}
	return list, nil
}

// open opens the file of a session.
func (s *Store) open(id string, flags int) (*os.File, error) {
	if !ValidID(id) {
		return nil, badID(id)
	}
	f, err := openAt(int(s.sessions.Fd()), id+suffix, flags)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing(id)
	}
	if err != nil {
		return nil, unavailable("the log of "+id+" cannot be opened", err)
	}
	return f, nil
}

// Read yields the records of a session in their order, each one verified, as
// far as they are written when it begins. An error is the last thing that it
// yields. It takes no lock.
func (s *Store) Read(id string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		_, err := s.scan(id, func(r Record) bool { return r.Seq == 0 || yield(r, nil) })
		if err != nil {
			yield(Record{}, err)
		}
	}
}

// scan calls each, if there is one, for every record, also the header, until it
// says no.
func (s *Store) scan(id string, each func(Record) bool) (Report, error) {
	f, err := s.open(id, unix.O_RDONLY)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Report{}, unavailable("the log of "+id+" cannot be looked at", err)
	}
	c := newChain(s.key, id)
	r := newReader(&c, io.LimitReader(f, st.Size()))
	var rep Report
	for {
		rec, err := r.next()
		if err == io.EOF {
			rep.Torn, rep.Head = r.torn, c.head()
			return rep, nil
		}
		if err != nil {
			return rep, err
		}
		if rec.Seq > 0 {
			rep.Records++
			rep.Facts += len(rec.Facts)
		}
		if each != nil && !each(rec) {
			return rep, nil
		}
	}
}

// Verify reads a whole session and returns STORE_CORRUPT with the first record
// that is not what was written there. See the package's promise for what it
// cannot see.
func (s *Store) Verify(id string) (Report, error) { return s.scan(id, nil) }

// VerifyAgainst is Verify of the session that a head names, which must hold
// the head's record still. The log may have grown since.
func (s *Store) VerifyAgainst(kept string) (Report, error) {
	h, err := parseHead(kept)
	if err != nil {
		return Report{}, err
	}
	found, end := "", uint64(0)
	rep, err := s.scan(h.id, func(r Record) bool {
		if r.Seq == h.seq {
			found = r.MAC
		}
		end = r.Seq
		return true
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rep, fault.Wrap(fault.StoreCorrupt, "the session "+h.id+" is gone", err)
	case err != nil:
		return rep, err
	case found == "":
		return rep, corrupt(h.id, h.seq, fmt.Sprintf("the log was cut: it ends with record %d", end))
	case found != h.mac:
		return rep, corrupt(h.id, h.seq, "the log is another one than the head's")
	}
	return rep, nil
}

// Head verifies a session and returns the name of its last record, to be kept
// where nobody who can write the store can change it.
func (s *Store) Head(id string) (string, error) {
	rep, err := s.Verify(id)
	return rep.Head, err
}

// Remove deletes a session for good, also a corrupt one. Whoever has it open
// is refused from then on.
func (s *Store) Remove(id string) error {
	f, err := s.open(id, unix.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := lock(f, s.patience); err != nil {
		return err
	}
	defer unix.Flock(int(f.Fd()), unix.LOCK_UN)
	if err := unix.Unlinkat(int(s.sessions.Fd()), id+suffix, 0); err != nil {
		return unavailable("the session "+id+" cannot be removed", err)
	}
	if err := unix.Unlinkat(int(s.sessions.Fd()), id+liveSuffix, 0); err != nil && err != unix.ENOENT {
		return unavailable("what belongs to the session "+id+" cannot be removed", err)
	}
	if err := unix.Fsync(int(s.sessions.Fd())); err != nil {
		return unavailable("the removal of "+id+" may not last", err)
	}
	return nil
}

func newSalt() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}
