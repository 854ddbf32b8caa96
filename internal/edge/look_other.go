//go:build !(linux || darwin || freebsd)

package edge

import "net"

// look leaves reading to the lobby, where it waits for what comes.
func look(net.Conn, []byte) (n int, gone bool) { return 0, false }
