//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"
)

// Addresses are ranges that agent services may have beside public ones, such as 127.0.0.0/8 for this machine.
type Addresses []netip.Prefix

// refusedAddress is an address that must not be called.
type refusedAddress struct {
	address netip.Addr
	plain   bool // refused because the connection is not encrypted
}

// Error says what to do.
func (r *refusedAddress) Error() string {
	if r.plain {
		return fmt.Sprintf("the address %s is public and the executor's url begins with http, which everybody on the way can read: use https", r.address)
	}
	return fmt.Sprintf("the address %s is not public, so that an executor could reach into this machine or its network by it: if that is wanted, start rouse with --http-allow %s (ROUSE_HTTP_ALLOW)",
		r.address, r.prefix())
}

// prefix is the address as --http-allow takes it.
func (r *refusedAddress) prefix() netip.Prefix {
	return netip.PrefixFrom(r.address, r.address.BitLen())
}

// dial connects to a host. It checks each address that is really dialled, after names were resolved: a name may lead
// anywhere, and elsewhere the next time.
func (a Addresses) dial(ctx context.Context, network, address string) (net.Conn, error) {
	encrypted := isEncrypted(ctx)
	dialer := net.Dialer{Timeout: httpConnect, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("judge the address %s: %w", address, err)
		}
		return a.check(target.Addr(), encrypted)
	}}
	return dialer.DialContext(ctx, network, address)
}

// check refuses an address that is neither allowed nor both public and called with encryption.
func (a Addresses) check(address netip.Addr, encrypted bool) error {
	address = address.Unmap().WithZone("")
	for _, allowed := range a {
		if allowed.Contains(address) {
			return nil
		}
	}
	switch {
	case !isPublic(address):
		return &refusedAddress{address: address}
	case !encrypted:
		return &refusedAddress{address: address, plain: true}
	}
	return nil
}

// special are ranges that netip's own words do not cover and that are not the public network.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carriers' own
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved
	netip.MustParsePrefix("::/96"),           // IPv4 in disguise
	netip.MustParsePrefix("64:ff9b::/96"),    // IPv4 behind a translator
	netip.MustParsePrefix("64:ff9b:1::/48"),  // the same, local
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, tunnels
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 in a tunnel
	netip.MustParsePrefix("fec0::/10"),       // site-local, as it once was
}

func isPublic(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, other := range special {
		if other.Contains(a) {
			return false
		}
	}
	return true
}

// encryptedKey marks the context of a request whose url begins with https.
type encryptedKey struct{}

func withScheme(ctx context.Context, address string) context.Context {
	u, err := url.Parse(address)
	return context.WithValue(ctx, encryptedKey{}, err == nil && u.Scheme == "https")
}

func isEncrypted(ctx context.Context) bool {
	encrypted, _ := ctx.Value(encryptedKey{}).(bool)
	return encrypted
}

// plainURLError is the reason alone: the address may hold what must not be shown.
func plainURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
