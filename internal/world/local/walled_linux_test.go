package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tether-sandbox/tether/internal/plan"
)

// TestPrivateOfAnotherUser: the folder of a run that root starts for somebody is
// that one's to pass and nobody else's, though what lies in it may be open to all.
func TestPrivateOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts runs for others")
	}
	const owner, other = 54321, 54322
	p := &plan.Plan{Identity: plan.Identity{Root: true, HostUID: owner, HostGID: owner}}
	dir, release, err := holdPrivate(p)
	if errors.Is(err, syscall.EINVAL) {
		t.Skip("there are no such users in this namespace")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[uint32]bool{owner: true, other: false} {
		cat := exec.Command("cat", file)
		cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
		if out, err := cat.CombinedOutput(); (err == nil) != want {
			t.Errorf("%d: opens it %v, want %v: %s", id, err == nil, want, out)
		}
	}
}
