// Package native makes the kernel hold a plan with Linux namespaces by our own
// hand: user, mount, pid, ipc and uts namespaces (and a network namespace) from
// one clone, and the inner stage as their first process.
package native
