package inner

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tether-sandbox/tether/internal/enforce"
)

// looks is how often places are looked at while others may move them. Somebody
// who swaps two folders all the time is right by chance in half of the looks at
// the most, and cannot know when they are.
const looks = 20

// checkPlaces makes sure that what covers a place covers the very file that was
// planned for, where a launcher mounted by path while another command could
// move folders. What lies under a mount cannot be asked for, but its folder
// still tells its inode number.
func checkPlaces(order *enforce.Order) error {
	if order.Build || !order.Wary {
		return nil
	}
	names := map[string]map[string]uint64{}
	for i := range order.Steps {
		s := &order.Steps[i]
		switch s.Do {
		case enforce.MaskFile, enforce.MaskStub, enforce.MaskDir, enforce.Self, enforce.File:
		default:
			continue
		}
		if s.Ino == 0 {
			continue
		}
		dir := filepath.Dir(s.Dst)
		if names[dir] == nil {
			names[dir] = map[string]uint64{}
		}
		names[dir][filepath.Base(s.Dst)] = s.Ino
	}
	if len(names) == 0 {
		return nil
	}
	for range looks {
		if err := checkMounts(order); err != nil {
			return err
		}
		for dir, want := range names {
			if err := checkFolder(dir, want); err != nil {
				return err
			}
		}
		time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond))))
	}
	return nil
}

// checkFolder compares the inode numbers that a folder tells of its entries.
func checkFolder(dir string, want map[string]uint64) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err == unix.EACCES || err == unix.ENOENT {
		return nil // out of the command's reach; absent places were judged
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errChanged, dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	buf := make([]byte, 1<<16)
	found := 0
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if n == 0 {
			break
		}
		for b := buf[:n]; len(b) >= 19; {
			size := int(b[16]) | int(b[17])<<8
			ino := uint64(0)
			for i := range 8 {
				ino |= uint64(b[i]) << (8 * i)
			}
			name := b[19:size]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if w, ok := want[string(name)]; ok {
				found++
				if w != ino {
					return fmt.Errorf("%w: %s/%s is another file", errChanged, dir, name)
				}
			}
			b = b[size:]
		}
	}
	if found != len(want) {
		return fmt.Errorf("%w: %d of %d files are not in %s", errChanged, len(want)-found, len(want), dir)
	}
	return nil
}
