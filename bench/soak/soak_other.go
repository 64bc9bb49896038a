//go:build !linux

package main

import "errors"

var errLinux = errors.New("the gate is a part of Tether on Linux")

func client(string, string) error { return errLinux }

func soak([]string) error { return errLinux }
