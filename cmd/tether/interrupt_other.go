//go:build !linux

package main

import "github.com/tether-sandbox/tether"

// interrupted does nothing: the exit status tells.
func interrupted(tether.Result, stdio) {}
