package server

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

// endText writes an end as the kernel does on this machine.
func endText(p netip.AddrPort) string {
	out := ""
	for word := p.Addr().AsSlice(); len(word) > 0; word = word[4:] {
		out += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(word))
	}
	return fmt.Sprintf("%s:%04X", out, p.Port())
}

func tcpLine(local, remote string, uid, inode int) string {
	return fmt.Sprintf("   0: %s %s 01 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 000000009115d22f 20 4 30 10 -1\n",
		endText(netip.MustParseAddrPort(local)), endText(netip.MustParseAddrPort(remote)), uid, inode)
}

const tcpHeader = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestWhoseASocketIs(t *testing.T) {
	const peer, server = "127.0.0.1:40000", "127.0.0.1:8080"
	for _, tt := range []struct {
		name, table, local, remote string
		want                       []tcpOwner
	}{
		{"the peer's own line", tcpLine(peer, server, 65534, 77), peer, server, []tcpOwner{{65534, 77}}},
		{"our end is not the peer", tcpLine(server, peer, 0, 77), peer, server, nil},
		{"another connection of the same port", tcpLine(peer, "127.0.0.1:8081", 65534, 77), peer, server, nil},
		{"another connection to the same server", tcpLine("127.0.0.1:40001", server, 65534, 77), peer, server, nil},
		{"another address of the loopback net", tcpLine("127.0.0.2:40000", server, 65534, 77), peer, server, nil},
		{"a socket that nobody holds", tcpLine(peer, server, 0, 0), peer, server, []tcpOwner{{0, 0}}},
		{"among others", tcpLine(server, peer, 0, 1) + tcpLine(peer, server, 1000, 2) + tcpLine("127.0.0.1:1", server, 3, 3), peer, server, []tcpOwner{{1000, 2}}},
		{"listed twice", tcpLine(peer, server, 0, 2) + tcpLine(peer, server, 65534, 3), peer, server, []tcpOwner{{0, 2}, {65534, 3}}},
		{"IPv6", tcpLine("[::1]:40000", "[::1]:8080", 1000, 9), "[::1]:40000", "[::1]:8080", []tcpOwner{{1000, 9}}},
		{"IPv4 through a socket of IPv6", tcpLine("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:8080", 1000, 9), peer, server, []tcpOwner{{1000, 9}}},
		{"IPv4 seen by a listener of IPv6", tcpLine(peer, server, 1000, 9), "[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:8080", []tcpOwner{{1000, 9}}},
		{"a line that is cut", tcpLine(peer, server, 1000, 9)[:90], peer, server, nil},
		{"nothing", "", peer, server, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tcpOwners(tcpHeader+tt.table, netip.MustParseAddrPort(tt.local), netip.MustParseAddrPort(tt.remote))
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func FuzzTCPOwners(f *testing.F) {
	f.Add(tcpHeader+tcpLine("127.0.0.1:40000", "127.0.0.1:8080", 65534, 77), []byte{127, 0, 0, 1}, uint16(40000))
	f.Add(tcpLine("[::1]:40000", "127.0.0.1:8080", 0, 0), make([]byte, 16), uint16(1))
	f.Add("0: : : 01 0 0 0 x 0 y z", []byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, table string, address []byte, port uint16) {
		addr, ok := netip.AddrFromSlice(address)
		if !ok {
			addr = netip.IPv6Loopback()
		}
		local, remote := netip.AddrPortFrom(addr, port), netip.MustParseAddrPort("127.0.0.1:8080")
		before := tcpOwners(table, local, remote)
		line := tcpLine(local.String(), remote.String(), 5, 6)
		after := tcpOwners(line+table, local, remote)
		if !slices.Equal(after, append([]tcpOwner{{5, 6}}, before...)) {
			t.Errorf("%v became %v with %q", before, after, line)
		}
	})
}
