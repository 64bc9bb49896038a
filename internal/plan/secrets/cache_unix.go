//go:build linux || darwin

package secrets

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OpenCache opens the cache in the folder dir, which must exist. It never
// fails: what cannot be trusted or read is left out.
func OpenCache(dir string) *Cache {
	c := newCache(dir)
	c.old = decodeCache(c.load(cacheName, cacheMax))
	return c
}

// load reads a file of the state folder; nil when it cannot be trusted.
func (c *Cache) load(name string, limit int64) []byte {
	dir, err := openState(c.dir)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o077 != 0 ||
		int(st.Uid) != unix.Geteuid() || st.Nlink != 1 || st.Size > limit {
		return nil
	}
	data := make([]byte, st.Size)
	n, err := readFull(fd, data)
	if err != nil {
		return nil
	}
	return data[:n]
}

// openState opens a folder that nobody but us can write.
func openState(dir string) (int, error) {
	fd, err := unix.Open(dir, openDir, 0)
	if err != nil {
		return -1, fmt.Errorf("open %q: %w", dir, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != unix.Geteuid() || st.Mode&0o022 != 0 {
		unix.Close(fd)
		return -1, errors.Join(err, fmt.Errorf("%q is not a folder that only its owner, us, can write", dir))
	}
	return fd, nil
}

// Save writes what this run used, when it differs enough from what is stored.
// The file is replaced at once; a crash leaves the old one or a damaged one,
// which counts as empty. A failure costs time at the next start, nothing else.
func (c *Cache) Save() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stale() {
		c.files[cacheName] = c.encode()
	}
	if len(c.files) == 0 {
		return nil
	}
	dir, err := openState(c.dir)
	if err != nil {
		return fmt.Errorf("secrets cache: %w", err)
	}
	defer unix.Close(dir)
	for name, data := range c.files {
		if err := replaceFile(dir, name, data); err != nil {
			return fmt.Errorf("secrets cache: %w", err)
		}
		delete(c.files, name)
	}
	c.new = 0
	return nil
}

// replaceFile writes a file of the state folder under its name at once.
func replaceFile(dir int, name string, data []byte) error {
	temp := fmt.Sprintf("%s.%d.%d", name, os.Getpid(), time.Now().UnixNano())
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, temp, flags, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", temp, err)
	}
	err = writeFull(fd, data)
	err = errors.Join(err, unix.Close(fd))
	if err == nil {
		err = unix.Renameat(dir, temp, dir, name)
	}
	if err != nil {
		unix.Unlinkat(dir, temp, 0)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// readFull reads until b is full or the file ends.
func readFull(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		got, err := unix.Read(fd, b[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if got == 0 {
			break
		}
		n += got
	}
	return n, nil
}

func writeFull(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
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
