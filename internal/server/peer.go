package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/edge"
)

// peerKey finds what withPeer left in the context of a connection.
type peerKey struct{}

// withPeer is the hook of http.Server for each connection. Whose the other end is, is looked up when it is first asked
// for, and not again: a socket does not change its owner.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, sync.OnceValues(func() ([]tcpOwner, error) {
		return peerOwners(c.RemoteAddr(), c.LocalAddr())
	}))
}

// agentsOf is the account that tells agents from the machine's owner; nil when nothing does: agents run as we do, or the
// system does not say whose a connection is.
func agentsOf(a *account.Account) *account.Account {
	if a == nil || int(a.UID) == os.Geteuid() || runtime.GOOS != "linux" {
		return nil
	}
	return a
}

// Texts are short enough for the close frame of a socket.
var (
	errAgentWithoutToken = &edge.Error{Code: edge.CodeUnauthenticated,
		Message: "a process of the agents' account must send its token: Authorization: Bearer $ROUSE_RUN_TOKEN"}
	errUnknownPeer = &edge.Error{Code: edge.CodeUnauthenticated,
		Message: "whose connection this is cannot be told; send a token: $ROUSE_RUN_TOKEN, or rouse token create"}
)

// refuseAgent refuses callers without a token that belong to the agents' account, and those of whom that is not known: a
// socket that its process has given up shows uid 0.
func refuseAgent(ctx context.Context, agents *account.Account) error {
	owners, ok := ctx.Value(peerKey{}).(func() ([]tcpOwner, error))
	if !ok {
		return errUnknownPeer
	}
	found, err := owners()
	if err != nil {
		return fmt.Errorf("whose connection it is: %w", err)
	}
	if len(found) == 0 {
		return errUnknownPeer
	}
	for _, o := range found {
		switch {
		case o.inode == 0:
			return errUnknownPeer
		case o.uid == agents.UID:
			return errAgentWithoutToken
		}
	}
	return nil
}

// tcpTables is where Linux lists the TCP sockets of this network namespace.
var tcpTables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// looks is how often a socket is looked for: the kernel's list may skip one while others come and go.
const looks = 3

// peerOwners finds the socket at the other end of a connection of this machine; here is our end. None: there is no such socket.
func peerOwners(peer, here net.Addr) ([]tcpOwner, error) {
	local, err := netip.ParseAddrPort(peer.String())
	if err != nil {
		return nil, err
	}
	remote, err := netip.ParseAddrPort(here.String())
	if err != nil {
		return nil, err
	}
	for range looks {
		var found []tcpOwner
		for _, path := range tcpTables {
			table, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // tcp6 is missing on a machine without IPv6
				return nil, err
			}
			found = append(found, tcpOwners(string(table), local, remote)...)
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}
