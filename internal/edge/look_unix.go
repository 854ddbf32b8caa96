//go:build linux || darwin || freebsd

package edge

import (
	"net"
	"syscall"
)

// look reads what a new connection has brought along, without waiting for more. gone says that its other end has closed it without a word. That
// costs one call of the system, and spares a connection that came and went all that serving it would cost.
func look(c net.Conn, into []byte) (n int, gone bool) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return 0, false
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Read(func(fd uintptr) bool {
		var failure error
		n, failure = syscall.Read(int(fd), into)
		gone = n == 0 && failure == nil || failure == syscall.ECONNRESET
		n = max(n, 0)
		return true
	})
	return n, gone && err == nil
}
