// Package ownthread runs what changes the rights of one thread, which Linux keeps for each thread by itself.
package ownthread

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Run runs f, as the last thing of a goroutine, on a thread that ends with it, because f takes rights from the thread that
// nobody may give back. The first thread of a process never ends, and the system tells its rights for those of the whole process.
// So it is kept waiting while another one does it.
func Run(f func()) {
	runtime.LockOSThread() // without an unlock the thread ends with the goroutine
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); Run(f) }()
	<-done
	runtime.UnlockOSThread()
}
