package enforcetest

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// int80 makes a system call of i386 without arguments through interrupt 0x80.
func int80(nr uintptr) (int, error) {
	// Arguments come in AX, BX, CX, as Go passes them; the result goes back in AX.
	code := []byte{0xcd, 0x80, 0x48, 0x98, 0xc3} // int 0x80; cdqe; ret
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Munmap(page) }()
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return 0, err
	}
	at := unsafe.Pointer(&page[0])
	value := unsafe.Pointer(&at)
	// Interrupt 0x80 clears R8 to R11, which a call may do.
	r := (*(*func(a, b, c uintptr) int)(unsafe.Pointer(&value)))(nr, 0, 0)
	if r < 0 {
		return 0, syscall.Errno(-r)
	}
	return r, nil
}
