package policyfile

import "golang.org/x/sys/unix"

// placeFlag opens a folder for what lies in it.
const placeFlag = unix.O_RDONLY
