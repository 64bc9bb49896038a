package seccomp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/need"
)

// The numbers are those of golang.org/x/sys for both architectures, not only
// for the one that the test runs on. Nothing is missing either: a call that
// exists on an architecture has a number in the table, and the gaps and the
// ceiling are where x/sys has them.
func TestNumbers(t *testing.T) {
	out, err := exec.Command(need.Program(t, "go"), "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	for _, arch := range archs {
		text, err := os.ReadFile(filepath.Join(dir, "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		numbers, used := map[string]int{}, map[uint32]bool{}
		for _, m := range regexp.MustCompile(`SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.Atoi(m[2])
			if err != nil {
				t.Fatal(err)
			}
			if m[1] != "ARCH_SPECIFIC_SYSCALL" { // the first of a gap
				numbers[strings.ToLower(m[1])], used[uint32(n)] = n, true
			}
		}
		if len(used) < 300 {
			t.Fatalf("%s: read %d numbers, want all", arch, len(used))
		}
		for _, r := range seccomp.Table() {
			want, exists := numbers[r.Call]
			got, ok := r.Number(arch)
			if ok != exists || ok && int(got) != want {
				t.Errorf("%s on %s: got %d (%v), want %d (%v)", r.Call, arch, got, ok, want, exists)
			}
		}
		for nr := uint32(0); nr <= seccomp.Ceiling; nr++ {
			// x/sys leaves out two that only exist for probes.
			probe := arch == "amd64" && (nr == 335 || nr == 336)
			if used[nr] == gap(arch, nr) && !probe {
				t.Errorf("%s number %d: used is %v, and so is gap", arch, nr, used[nr])
			}
		}
		for nr := range used {
			if nr > seccomp.Ceiling {
				t.Logf("%s: number %d is above the ceiling; judge it and raise the ceiling", arch, nr)
			}
		}
	}
}
