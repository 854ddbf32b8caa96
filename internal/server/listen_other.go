//go:build !linux

package server

import "syscall"

// control is the hook of net.ListenConfig; only Linux can keep silent connections from us.
func control(_, _ string, _ syscall.RawConn) error { return nil }
