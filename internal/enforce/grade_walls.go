package enforce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// Landlock versions without which a guarantee is void.
const (
	truncateABI = 3

	// TCPABI is the first that holds TCP to ports.
	TCPABI = 4
)

// wallGrades says what the provider landlock makes of a plan.
func wallGrades(p *plan.Plan, m Machine) []Graded {
	var out []Graded
	add := func(g policy.Guarantee, grade policy.Grade, means, reason string) {
		out = append(out, Graded{g, grade, means, reason})
	}
	if m.LandlockABI < 1 {
		for _, g := range policy.Guarantees {
			add(g, policy.None, string(Landlock), "this kernel has no Landlock")
		}
		return out
	}
	lacks := func(abi int, kernel, what string) string {
		return fmt.Sprintf("%s: that takes Landlock ABI %d (Linux %s), this kernel has %d", what, abi, kernel, m.LandlockABI)
	}
	read := "names, sizes and times of every file, and the command lines of every process, can be seen"
	if p.Identity.Idmapped {
		read += "; the command is root without root's rights, and owns what root owns: what only root may read is left out of /etc, /opt and /var by a search at the start, and shown elsewhere in the system's folders and in /proc"
	}
	add(policy.Read, policy.Partial, "Landlock: content by allowlist", read)
	meta := "permissions, times and attributes of every file of the same user can be changed"
	switch {
	case m.LandlockABI < truncateABI:
		add(policy.Write, policy.None, "Landlock", lacks(truncateABI, "6.2", "every file of the same user can be cut to nothing"))
	case p.Policy.Profile == policy.WorkspaceWrite:
		add(policy.Write, policy.Partial, "Landlock: the writable roots and a private temporary folder",
			"a writable folder is writable whole, with what must stay locked in it; "+meta)
	default:
		add(policy.Write, policy.Partial, "Landlock: nothing is writable", meta)
	}
	out = append(out, wallSecrets(p))
	switch p.Policy.Network.Mode {
	case policy.Offline:
		add(policy.NetworkGuarantee, policy.Complete, "system call filter: no socket but pairs", "")
	case policy.Gated:
		if m.LandlockABI < TCPABI {
			add(policy.NetworkGuarantee, policy.Complete, "system call filter: no socket but pairs; nothing leads to the gate, so nothing out", "")
			break
		}
		why := "by port and not by address: whoever listens on the gate's port, elsewhere or on another address of this machine, can be reached past the gate"
		if p.Policy.Network.Upstream != "" {
			why += "; the upstream proxy resolves names, and may find any address for one that is allowed"
		}
		add(policy.NetworkGuarantee, policy.Partial, "Landlock: TCP to the port of the gate, which lets out what the rules allow; system call filter: no other sockets but pairs", why)
	default:
		add(policy.NetworkGuarantee, policy.None, "the host's network",
			"every address that the host reaches is reachable, its own loopback included")
	}
	if m.LandlockABI < ScopesABI {
		add(policy.Process, policy.None, "supervisor; no capabilities, no_new_privs, system call filter",
			lacks(ScopesABI, "6.12", "processes of the same user, the supervisor included, are open to signals"))
	} else {
		add(policy.Process, policy.Partial, "Landlock scopes; a supervisor that adopts and kills the whole tree, at one stroke; no capabilities, no_new_privs, system call filter",
			"processes of the host are seen")
	}
	add(policy.IPC, policy.Complete, "system call filter: no Unix sockets but pairs, no System V IPC, no queues", "")
	return append(out, limits(Landlock, p, m))
}

// wallSecrets says whether hidden files are in reach: in a folder that is only
// read they are left out, in one that is writable nothing is.
func wallSecrets(p *plan.Plan) Graded {
	var first string
	n := 0
	open := func(path string) { // a rule opens all that lies below, views that are only read as well
		if slices.ContainsFunc(p.Views, func(v plan.View) bool { return v.Writable && (v.Path == path || below(path, v.Path) || v.Path == "/") }) {
			if n++; n == 1 {
				first = path
			}
		}
	}
	for i := range p.Masks {
		open(p.Masks[i].Path)
	}
	for i := range p.Locks {
		if l := &p.Locks[i]; l.Content != nil && !strings.HasPrefix(l.Path, "/etc/") {
			open(l.Path)
		}
	}
	if n == 0 {
		how := "a search at the start, which found nothing to hide"
		if len(p.Masks) > 0 {
			how = "hidden files are left out of the folders that are only read"
		}
		return Graded{policy.Secrets, policy.Complete, how, "a secret that is created during the run is not hidden from it"}
	}
	where := "a hidden file lies in a folder that is open whole: " + first
	if n > 1 {
		where = fmt.Sprintf("%d hidden files lie in folders that are open whole, such as %s", n, first)
	}
	return Graded{policy.Secrets, policy.None, "Landlock", where + "; a clean checkout has none: git worktree add ../clean && cd ../clean"}
}
