package enforce

import (
	"github.com/tether-sandbox/tether/internal/plan"
	"github.com/tether-sandbox/tether/policy"
)

// beltGrades are those of macOS: rules by path, in the kernel, for a process and
// all that it starts. There is no process namespace and no network of its own.
func beltGrades(p *plan.Plan) []Graded {
	var out []Graded
	add := func(g policy.Guarantee, grade policy.Grade, means, reason string) {
		out = append(out, Graded{g, grade, means, reason})
	}
	if p.Identity.HostUID == 0 {
		add(policy.Read, policy.Partial, "seatbelt profile", "the command runs as root: root-only files of the system are readable")
	} else {
		add(policy.Read, policy.Complete, "seatbelt profile: system folders by allowlist, the rest closed", "")
	}
	add(policy.Write, policy.Complete, "seatbelt profile: writable roots by allowlist", "")
	add(policy.Secrets, policy.Complete, masksOver(len(p.Masks)),
		"a secret that is created during the run is not hidden from it")
	switch p.Policy.Network.Mode {
	case policy.Offline:
		add(policy.NetworkGuarantee, policy.Complete, "seatbelt profile: no address, not even a loopback", "")
	case policy.Gated:
		why, grade := "", policy.Complete
		if p.Policy.Network.Upstream != "" {
			grade = policy.Partial
			why = "the upstream proxy resolves names, and may find any address for one that is allowed"
		}
		add(policy.NetworkGuarantee, grade, "seatbelt profile: only the port of the gate, which lets out what the rules allow", why)
	default:
		add(policy.NetworkGuarantee, policy.None, "the host's network",
			"every address that the host reaches is reachable, its own loopback included")
	}
	add(policy.Process, policy.Partial, "a session of its own; signals and questions within the sandbox only",
		"there is no process namespace: what leaves the session and hides where it came from outlives the command, still confined")
	add(policy.IPC, policy.Partial, "services of the system by allowlist; sockets in writable roots only",
		"named semaphores of Python and the memory by which OpenMP finds itself are shared with the host")
	none := policy.Limits{}
	asked := p.Policy.Limits
	asked.Time, asked.OutputBytes, asked.FreeDisk = 0, 0, 0
	switch {
	case asked.MemoryBytes > 0 || asked.ScratchBytes > 0:
		add(policy.LimitsGuarantee, policy.None, "rlimits", "memory and scratch space are not limited by this provider")
	case asked.Processes > 0:
		add(policy.LimitsGuarantee, policy.Partial, "rlimits", "the kernel counts all processes of the user, not those of the command")
	case asked.CPU > 0:
		add(policy.LimitsGuarantee, policy.Partial, "rlimits", "processor time is counted for each process, not for all together")
	case asked != none:
		add(policy.LimitsGuarantee, policy.Complete, "rlimits, for what was asked", "")
	default:
		add(policy.LimitsGuarantee, policy.Partial, "time and output", "memory, processes and scratch space are not limited")
	}
	return out
}
