package local

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStripWithoutRights: whoever is not root takes the bits from files too,
// though nothing may be done about capabilities then.
func TestStripWithoutRights(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "file")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, bits := range []uint32{unix.S_ISUID, unix.S_ISGID, unix.S_ISUID | unix.S_ISGID, 0} {
		if err := unix.Chmod(path, bits|0o755); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends without its rights
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			if err := unix.Capset(&header, &none[0]); err != nil {
				done <- err
				return
			}
			done <- stripOne(path, uint32(os.Geteuid()))
		}()
		var st unix.Stat_t
		if err := <-done; err != nil || unix.Stat(path, &st) != nil || st.Mode&0o7777 != 0o755 {
			t.Errorf("%o: %v, mode %o", bits, err, st.Mode&0o7777)
		}
	}
}
