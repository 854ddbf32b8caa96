package server

import (
	"fmt"
	"os"
	"strings"

	"rouse.dev/rouse/internal/doctor"
)

// serverName begins the name that each server's listening connection has in the database, so that others can tell whether
// one runs.
const serverName = "rouse serve"

// standbyName tells a server on standby from one at work.
const standbyName = "standby process"

// openName begins the name of a server that asks for no token.
const openName = "open "

// processName is that of this process.
func processName(standby, open bool) string {
	kind := "process"
	if standby {
		kind = standbyName
	}
	if open {
		kind = openName + kind
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	const most = 63 // bytes that PostgreSQL keeps
	name := fmt.Sprintf("%s, %s %d on %s", serverName, kind, os.Getpid(), host)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// described says what a server's name tells of it.
func described(name string) doctor.Server {
	rest, open := strings.CutPrefix(name, openName)
	return doctor.Server{Name: rest, Standby: strings.HasPrefix(rest, standbyName), Open: open}
}
