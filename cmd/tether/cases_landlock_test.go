package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tether-sandbox/tether/internal/enforce/landlock"
	"github.com/tether-sandbox/tether/internal/need"
)

// acceptWalls is a policy file that accepts what the provider landlock holds.
const acceptWalls = `accept = ["read=partial", "write=partial", "process=partial", "secrets=none", "network=partial"]` + "\n"

// Why a case does not hold under the provider landlock.
const (
	openWhole = "a writable folder is open whole, with the hidden files in it"
	notLocked = "a writable folder is open whole: what must stay locked in it can be changed, and is found at the end"
	ownTmp    = "/tmp, /var/tmp and /dev/shm are the host's and closed; TMPDIR names a private folder"
	noSockets = "no Unix sockets but pairs"
	noOwnLoop = "there is no loopback of its own, and nothing inside can listen"
	seen      = "what the host shows of files and processes by name is seen"
)

// landlockLimits says which acceptance cases do not hold under the provider
// landlock, and why. The others run under it, too.
var landlockLimits = map[string]string{
	"EC-001": openWhole, "EC-002": openWhole, "EC-004": openWhole, "EC-005": openWhole, "EC-009": openWhole, "EC-010": openWhole,
	"EC-011": openWhole, "EC-013": openWhole, "EC-014": openWhole, "EC-015": openWhole, "EC-016": openWhole, "EC-017": openWhole,
	"EC-019": openWhole, "EC-021": openWhole, "EC-174": openWhole, "EC-178": openWhole, "EC-183": openWhole, "EC-198": openWhole,
	"EC-199": openWhole, "EC-197": openWhole, "EC-186": notLocked,
	"EC-053": "processes of the host are seen; signals, tracing, and what is private of them are refused",
	"EC-059": "processes are not counted: without a user namespace the kernel counts all of the user's; --max-procs is refused where no control group counts",
	"EC-061": seen,
	"EC-214": "it is about namespaces that a kernel lacks",
	"EC-044": seen,
	"EC-045": notLocked,
	"EC-049": ownTmp,
	"EC-191": openWhole, "EC-192": openWhole, "EC-194": openWhole, "EC-196": openWhole, "EC-185": openWhole, "EC-180": openWhole,
	"EC-209": openWhole, "EC-202": ownTmp, "EC-204": ownTmp, "EC-205": noSockets, "EC-210": ownTmp, "EC-216": seen,
	"EC-201": "a write is refused with EACCES, not EROFS",
	"EC-022": notLocked, "EC-023": notLocked, "EC-024": notLocked, "EC-029": notLocked, "EC-034": notLocked, "EC-035": notLocked,
	"EC-037": notLocked, "EC-038": notLocked, "EC-041": notLocked,
	"EC-071": noSockets, "EC-078": noSockets, "EC-079": noOwnLoop,
	"EC-081": "System V IPC is refused; what the host has of it is seen in /proc/sysvipc",
}

// underLandlock says whether the test is that of a case which holds under the
// provider landlock, or of what is taken back while a command runs, which holds
// there as well.
func underLandlock(t *testing.T) bool {
	m := regexp.MustCompile(`^TestEC([0-9]{3})`).FindStringSubmatch(t.Name())
	if !strings.HasPrefix(t.Name(), "TestPrompt") && (m == nil || landlockLimits["EC-"+m[1]] != "") {
		return false
	}
	if abi, err := landlock.ABI(); err != nil || abi < 6 {
		need.Missing(t, "landlock", "it takes ABI 6")
	}
	return true
}
