package server

import (
	"syscall"
	"time"
)

// quietFor is how long the kernel keeps a new connection from us on which nobody says anything.
const quietFor = 5 * time.Second

// control is the hook of net.ListenConfig. Whoever connects to us speaks first: until then a connection is the kernel's, and costs this
// process nothing.
func control(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, int(quietFor/time.Second)) // a kernel without it does without
	})
}
