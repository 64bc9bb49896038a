//go:build !linux

package main

import "errors"

func sameByBwrap(string) (subject, error) {
	return subject{}, errors.New("bwrap is a program for Linux")
}
