package policyfile

import "golang.org/x/sys/unix"

// placeFlag opens a folder for what lies in it, and not to be read.
const placeFlag = unix.O_PATH
