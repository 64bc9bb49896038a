//go:build !linux

package egress

import "net/netip"

// isOwn says whether an address is one of this host's interfaces.
func isOwn(addr netip.Addr) (bool, error) { return amongInterfaces(addr) }
