//go:build linux || darwin || freebsd

package edge

import (
	"net"
	"syscall"
)

// isGone reports whether the other end of a new connection has closed it without a word. That costs one call of the system, and spares all that
// serving it would.
func isGone(c net.Conn) (gone bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		gone = n == 0 && err == nil || err == syscall.ECONNRESET
		return true
	})
	return gone && err == nil
}
