//go:build !(linux || darwin || freebsd)

package edge

import "net"

// isGone cannot be told here before the connection is served.
func isGone(net.Conn) bool { return false }
