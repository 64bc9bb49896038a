//go:build !linux

package tether_test

// scriptedSession does nothing: no session is recorded on this system.
func scriptedSession(string) {}
