package forkchain

import (
	"syscall"
	"unsafe"
)

// run forks and exits every 0.1 ms. Between fork and exit only system calls happen, since nothing else works in a Go program's fork.
// What fails of them is not looked at: there is nobody left to tell.
func run(newSession bool) {
	pause := syscall.Timespec{Nsec: 100_000}
	for range steps {
		child, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if child != 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if newSession {
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}
