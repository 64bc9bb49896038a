package main

import (
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"strconv"

	"github.com/tether-sandbox/tether/internal/enforce"
	"github.com/tether-sandbox/tether/internal/enforce/bwrap"
	"github.com/tether-sandbox/tether/internal/enforce/seccomp"
	"github.com/tether-sandbox/tether/internal/world"
	"github.com/tether-sandbox/tether/internal/world/local"
	"github.com/tether-sandbox/tether/policy"
)

// sameByBwrap is bwrap alone with the mounts, masks, namespaces and system call
// filter of a default run in w: the same isolation, as far as bwrap can give it,
// from a list that somebody else has made.
func sameByBwrap(w string) (subject, error) {
	pol := policy.Default(w)
	pol.Network.Mode = policy.Offline
	p, err := local.World{}.Plan(context.Background(), pol, world.Options{Environ: os.Environ(), Provider: enforce.Bwrap})
	if err != nil {
		return subject{}, err
	}
	var contents [][]byte
	data := func(content []byte) int {
		contents = append(contents, content)
		return 2 + len(contents)
	}
	args, err := bwrap.Arguments(enforce.Compile(p), false, bwrap.Host{Size: true, DisableUserns: true, Data: data,
		Exists: func(path string) bool { _, err := os.Lstat(path); return err == nil },
		Stub:   func(int64, int64, uint32) (string, error) { return os.DevNull, nil }})
	if err != nil {
		return subject{}, err
	}
	filter, err := seccomp.Compile(seccomp.Options{Arch: runtime.GOARCH, Inet: true, Unix: true, SetGID: true,
		Namespaced: true})
	if err != nil {
		return subject{}, err
	}
	var program []byte
	for _, i := range filter {
		program = binary.NativeEndian.AppendUint16(program, i.Code)
		program = append(program, i.Jt, i.Jf)
		program = binary.NativeEndian.AppendUint32(program, i.K)
	}
	args = append([]string{"bwrap"}, append(args, "--seccomp", strconv.Itoa(data(program)), "true")...)
	return subject{name: "bwrap true, the same mounts and filter", argv: args, dir: w, data: contents}, nil
}
