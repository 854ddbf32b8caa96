package server

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// tcpOwner is whose a TCP socket is. Inode 0: no process holds it any more, and uid says nothing.
type tcpOwner struct {
	uid   uint32
	inode uint64
}

// Columns of /proc/net/tcp and /proc/net/tcp6, see proc_net_tcp in the kernel's documentation.
const (
	columnLocal  = 1
	columnRemote = 2
	columnUID    = 7
	columnInode  = 9
)

// tcpOwners reads the text of /proc/net/tcp or /proc/net/tcp6 and finds the sockets with these two ends. IPv4 addresses
// and the same mapped to IPv6 are one. Lines that cannot be read are no sockets.
func tcpOwners(table string, local, remote netip.AddrPort) []tcpOwner {
	local, remote = unmap(local), unmap(remote)
	var out []tcpOwner
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) <= columnInode {
			continue
		}
		if end, ok := parseEnd(fields[columnLocal]); !ok || end != local {
			continue
		}
		if end, ok := parseEnd(fields[columnRemote]); !ok || end != remote {
			continue
		}
		uid, err := strconv.ParseUint(fields[columnUID], 10, 32)
		if err != nil {
			continue
		}
		inode, err := strconv.ParseUint(fields[columnInode], 10, 64)
		if err != nil {
			continue
		}
		out = append(out, tcpOwner{uint32(uid), inode})
	}
	return out
}

// parseEnd reads an end of a socket: the words of its address as hexadecimal numbers of this machine's byte order, a
// colon, and the port. 127.0.0.1:8080 is 0100007F:1F90 where the lowest byte comes first.
func parseEnd(s string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(s, ":")
	if !ok {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	words, err := hex.DecodeString(address)
	if err != nil || len(words) != 4 && len(words) != 16 {
		return netip.AddrPort{}, false
	}
	for word := words; len(word) > 0; word = word[4:] {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	addr, ok := netip.AddrFromSlice(words)
	return unmap(netip.AddrPortFrom(addr, uint16(n))), ok
}

// unmap gives an end one form.
func unmap(p netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(p.Addr().Unmap().WithZone(""), p.Port())
}
