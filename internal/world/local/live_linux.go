package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/fault"
	"github.com/tether-sandbox/tether/internal/mountinfo"
	"github.com/tether-sandbox/tether/internal/plan"
)

// Runs that share a folder know of each other, because one could hide a secret
// from the search of the next: it moves the folder that holds it back and forth,
// so that the walk misses it. What it can move is only what was there when it
// started, and that it had found itself. So every run lists what it hides, by
// identity, before its command starts; a search that has not found all of it is
// made again, and a run that ended while a search was under way makes it be
// made again too. A run that lists nothing yet has not started its command.
//
// The list is a file that its run keeps locked; a lock that is free says that
// the run is over.

// live is this run's own entry.
type live struct {
	dir  string
	mu   sync.Mutex
	name string
	file *os.File // locked as long as the run lives
	// hidden is what it hides, pid the first process of its sandbox.
	hidden []secret
	pid    int
	begin  time.Time
	roots  []string
	ended  bool
	// company says that another run was alive on the same folders.
	company bool
	// over are other runs that were over before this search began.
	over map[string]bool
}

// announce enters a run before its search begins.
func announce(stateDir string, roots []string) (*live, error) {
	l := &live{dir: filepath.Join(stateDir, "live"), begin: time.Now(), roots: roots, over: map[string]bool{}}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, err
	}
	return l, l.write(searching)
}

// The states of an entry.
const (
	searching = 's' // its command has not started
	running   = 'r' // its command may be running
	ended     = 'o'
)

const liveMagic = "tether-live-1\n"

// write replaces the entry as a whole: a reader sees the old or the new one.
func (l *live) write(state byte) error {
	b := append([]byte(liveMagic), state)
	put := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	put(uint64(l.pid))
	put(uint64(len(l.roots)))
	for _, r := range l.roots {
		put(uint64(len(r)))
		b = append(b, r...)
	}
	put(uint64(len(l.hidden)))
	for _, h := range l.hidden {
		put(h.dev)
		put(h.ino)
		put(uint64(len(h.path)))
		b = append(b, h.path...)
	}
	f, err := os.CreateTemp(l.dir, "new-*")
	if err != nil {
		return err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = f.Write(b)
	}
	if l.name == "" {
		l.name = filepath.Join(l.dir, "run-"+strings.TrimPrefix(filepath.Base(f.Name()), "new-"))
	}
	if err == nil {
		err = os.Rename(f.Name(), l.name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		f.Close()
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file = f
	return nil
}

// identity is which file it is.
type identity struct{ dev, ino uint64 }

// secret is a file that a run hides, and where it found it.
type secret struct {
	identity
	path string
}

// hides lists what a plan hides in the given folders.
func hides(p *plan.Plan, roots []string) []secret {
	out := make([]secret, 0, len(p.Masks))
	for i := range p.Masks {
		if m := &p.Masks[i]; m.Ino != 0 && overlap([]string{m.Path}, roots) {
			out = append(out, secret{identity{m.Dev, m.Ino}, m.Path})
		}
	}
	return out
}

// at says whether the file lies where it was found, seen from the host.
func (s secret) at() bool {
	var st unix.Stat_t
	return unix.Lstat(s.path, &st) == nil && s.identity == identity{st.Dev, st.Ino}
}

// agree compares a finished search with the other runs on the same folders and
// then enters what this run hides. plan.ErrChanged asks for another search.
func (l *live) agree(p *plan.Plan, last bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.compare(p, last); err != nil {
		l.begin = time.Now()
		return err
	}
	if len(l.hidden) == 0 {
		return nil // it knows of nothing that it could keep from others
	}
	return l.write(running)
}

func (l *live) compare(p *plan.Plan, last bool) error {
	l.hidden, l.company = hides(p, l.roots), false
	have := make(map[identity]bool, len(l.hidden))
	for _, h := range l.hidden {
		have[h.identity] = true
	}
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(l.dir, e.Name())
		info, err := e.Info()
		late := err == nil && info.ModTime().After(l.begin)
		over := strings.HasPrefix(e.Name(), "end-")
		if name == l.name || err != nil || over && !late || !over && !strings.HasPrefix(e.Name(), "run-") {
			continue // our own, gone, over before this search began, or unfinished
		}
		o, err := readLive(name)
		if err != nil || !overlap(l.roots, o.roots) {
			continue // it went away, and took its entry along; or is none of ours
		}
		missing := slices.DeleteFunc(o.hidden, func(h secret) bool {
			// One that lies outside of our folders is none of ours to find.
			return have[h.identity] || !overlap([]string{h.path}, l.roots) && h.at()
		})
		alive := o.held && o.state == running
		l.company = l.company || o.held || late
		switch {
		case len(missing) == 0:
			// What it knew we know too, or it has not started its command: when
			// it does, our search is over.
		case alive && last && o.gone(missing):
			// Nobody will find them.
		case alive:
			return fmt.Errorf("%w: another run hides %d files that were not found", plan.ErrChanged, len(missing))
		case !l.over[name]:
			// It is over now. The next search is made without it.
			l.over[name] = true
			return fmt.Errorf("%w: another run ended meanwhile", plan.ErrChanged)
		}
	}
	return nil
}

// more enters what came to be hidden while the command runs.
func (l *live) more(found []secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || len(found) == 0 {
		return
	}
	l.hidden = append(l.hidden, found...)
	_ = l.write(running) // without it others may have to search again
}

// started notes the first process of the sandbox, for those who have to ask
// what became of what this run hides.
func (l *live) started(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hidden) > 0 {
		l.pid = pid
		_ = l.write(running) // without it others are refused, and not misled
	}
}

// end marks the run as over. The entry stays for a moment, for searches that
// were under way.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.pid = 0
	defer l.prune()
	if len(l.hidden) == 0 {
		_ = os.Remove(l.name)
		l.file.Close()
		return
	}
	old := l.name
	l.name = filepath.Join(l.dir, "end-"+strings.TrimPrefix(filepath.Base(old), "run-"))
	if l.write(ended) == nil {
		_ = os.Remove(old)
	}
	l.file.Close()
}

// linger is how long the entry of a run that is over is of use: longer than any
// search takes.
const linger = 15 * time.Second

// prune removes some entries of runs that have long been over.
func (l *live) prune() {
	const some = 8 // more than come, and little enough for one run's end
	removed := 0
	entries, _ := os.ReadDir(l.dir)
	for _, e := range entries {
		if removed == some {
			return
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < linger {
			continue
		}
		name := filepath.Join(l.dir, e.Name())
		if o, err := readLive(name); err != nil || !o.held {
			_ = os.Remove(name)
			removed++
		}
	}
}

// other is another run's entry.
type other struct {
	state  byte
	held   bool // its run is alive
	pid    int
	roots  []string
	hidden []secret
}

func readLive(name string) (other, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return other{}, err
	}
	defer f.Close()
	o := other{held: unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil}
	raw, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err != nil {
		return other{}, err
	}
	return o, o.decode(raw)
}

func (o *other) decode(raw []byte) error {
	bad := fault.New(fault.Internal, "an entry of another run cannot be read")
	rest, ok := bytes.CutPrefix(raw, []byte(liveMagic))
	if !ok || len(rest) < 9 {
		return bad
	}
	o.state, rest = rest[0], rest[1:]
	get := func() (v uint64) {
		if len(rest) < 8 {
			ok = false
			return 0
		}
		v, rest = binary.LittleEndian.Uint64(rest), rest[8:]
		return v
	}
	o.pid = int(get())
	text := func() string {
		size := get()
		if size > uint64(len(rest)) {
			ok = false
			return ""
		}
		s := string(rest[:size])
		rest = rest[size:]
		return s
	}
	for n := get(); n > 0 && ok; n-- {
		o.roots = append(o.roots, text())
	}
	for n := get(); n > 0 && ok; n-- {
		o.hidden = append(o.hidden, secret{identity{get(), get()}, text()})
	}
	if !ok {
		return bad
	}
	return nil
}

// gone is asked after every search has failed to find what a living run hides:
// whether that was really removed on the host, as an editor does that replaces a
// file. What is still there is a mount in that run's sandbox, and its mountinfo
// tells the path that the file has by now; so a missing file that lies at one of
// these paths is not gone but was kept from us.
func (o other) gone(missing []secret) bool {
	if o.pid == 0 {
		return false
	}
	lost := make(map[identity]bool, len(missing))
	for _, m := range missing {
		lost[m.identity] = true
	}
	// Paths that flip are met at one of several looks, at moments that nobody
	// inside can foresee.
	for range 24 {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(o.pid) + "/mountinfo")
		if err != nil {
			return false
		}
		for line := range bytes.SplitSeq(raw, []byte{'\n'}) {
			fields := bytes.SplitN(line, []byte{' '}, 6)
			if len(fields) < 6 {
				continue
			}
			var st unix.Stat_t
			if unix.Lstat(mountinfo.Unescape(string(fields[4])), &st) == nil && lost[identity{st.Dev, st.Ino}] {
				return false
			}
		}
		time.Sleep(time.Duration(rand.Int64N(int64(4 * time.Millisecond))))
	}
	return true
}
