package secrets

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"
)

// cacheKey is a file's content as far as stat can tell. The change time cannot
// be set by a program, unlike the modification time.
type cacheKey struct {
	identity
	ctime int64 // nanoseconds
	size  int64
}

// Cache remembers verdicts on contents, and folders that have not changed,
// between runs, in files of a state folder that only the user can write. It is
// safe for concurrent use.
//
// It is a help, not a source: a file that is missing, damaged, foreign or
// readable by others counts as empty. A verdict is only remembered when the
// file had not changed for two seconds, so that a later change has another
// change time even on coarse clocks. What it cannot see is a change through a
// writable memory mapping that the kernel has not timed yet.
type Cache struct {
	dir    string
	old    map[cacheKey]verdict
	settle time.Duration // settled, but for tests

	mu sync.Mutex
	// used are the verdicts that this run asked for or added; only these are
	// kept when the file is written.
	used map[cacheKey]verdict
	new  int
	// files are to be written besides, by name.
	files map[string][]byte
}

const (
	// cacheName changes when the meaning of a verdict does.
	cacheName    = "content-verdicts-1"
	cacheMagic   = "tether verdicts 1\n"
	cacheRecord  = 8 + 8 + 8 + 8 + 1
	cacheEntries = 1 << 16
	cacheMax     = int64(len(cacheMagic) + cacheEntries*cacheRecord + 4)
	// settled is how long a file must have been unchanged.
	settled = 2 * time.Second
)

func newCache(dir string) *Cache {
	return &Cache{dir: dir, settle: settled, used: map[cacheKey]verdict{}, files: map[string][]byte{}}
}

// get returns the remembered verdict.
func (c *Cache) get(k cacheKey) (verdict, bool) {
	if c == nil {
		return secret, false
	}
	v, ok := c.old[k]
	if ok {
		c.mu.Lock()
		c.used[k] = v
		c.mu.Unlock()
	}
	return v, ok
}

// put remembers a verdict reached at the time now.
func (c *Cache) put(k cacheKey, v verdict, now time.Time) {
	if c == nil || now.UnixNano()-k.ctime < int64(c.settle) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.used) < cacheEntries {
		c.used[k] = v
		c.new++
	}
}

// stale says whether the file is worth writing.
func (c *Cache) stale() bool {
	return c.new > 0 || len(c.old) > 2*len(c.used)+1024
}

// encode returns the file's bytes: magic, records, checksum.
func (c *Cache) encode() []byte {
	b := make([]byte, 0, len(cacheMagic)+len(c.used)*cacheRecord+4)
	b = append(b, cacheMagic...)
	for k, v := range c.used {
		b = binary.LittleEndian.AppendUint64(b, k.dev)
		b = binary.LittleEndian.AppendUint64(b, k.ino)
		b = binary.LittleEndian.AppendUint64(b, uint64(k.ctime))
		b = binary.LittleEndian.AppendUint64(b, uint64(k.size))
		b = append(b, byte(v))
	}
	return binary.LittleEndian.AppendUint32(b, checksum(b))
}

// decodeCache reads what encode wrote; anything else is nil.
func decodeCache(b []byte) map[cacheKey]verdict {
	body := len(b) - len(cacheMagic) - 4
	if body < 0 || body%cacheRecord != 0 || int64(len(b)) > cacheMax || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil
	}
	if binary.LittleEndian.Uint32(b[len(b)-4:]) != checksum(b[:len(b)-4]) {
		return nil
	}
	m := make(map[cacheKey]verdict, body/cacheRecord)
	for r := b[len(cacheMagic) : len(b)-4]; len(r) > 0; r = r[cacheRecord:] {
		if r[32] > byte(public) {
			return nil
		}
		u := binary.LittleEndian.Uint64
		m[cacheKey{identity{u(r), u(r[8:])}, int64(u(r[16:])), int64(u(r[24:]))}] = verdict(r[32])
	}
	return m
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
