// Package outbound calls addresses that people set, of agent services and of those who are told what happens. It keeps them from
// reaching into this machine or its network.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// connectTime is how long one connection may take, TLS included.
const connectTime = 10 * time.Second

// Addresses are ranges that may be called beside public ones, such as 127.0.0.0/8 for this machine.
type Addresses []netip.Prefix

// RefusedAddress is an address that must not be called.
type RefusedAddress struct {
	address netip.Addr
	Plain   bool // refused because the connection is not encrypted
}

// Error says what to do.
func (r *RefusedAddress) Error() string {
	if r.Plain {
		return fmt.Sprintf("the address %s is public and the connection is not encrypted, so that everybody on the way can read it: use https, or TLS for mail", r.address)
	}
	return fmt.Sprintf("the address %s is not public, so that whoever sets it could reach into this machine or its network by it: if that is wanted, start rouse with --http-allow %s (ROUSE_HTTP_ALLOW)",
		r.address, r.Prefix())
}

// Prefix is the address as --http-allow takes it.
func (r *RefusedAddress) Prefix() netip.Prefix {
	return netip.PrefixFrom(r.address, r.address.BitLen())
}

// Dial connects to a host. It checks each address that is really dialled, after names were resolved: a name may lead
// anywhere, and elsewhere the next time.
func (a Addresses) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	encrypted := IsEncrypted(ctx)
	dialer := net.Dialer{Timeout: connectTime, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
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
		return &RefusedAddress{address: address}
	case !encrypted:
		return &RefusedAddress{address: address, Plain: true}
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

// encryptedKey marks the context of a connection that is encrypted.
type encryptedKey struct{}

// WithScheme notes whether a request to an address is encrypted.
func WithScheme(ctx context.Context, address string) context.Context {
	u, err := url.Parse(address)
	return WithEncryption(ctx, err == nil && u.Scheme == "https")
}

// WithEncryption notes whether what is dialled is encrypted before anything is said.
func WithEncryption(ctx context.Context, encrypted bool) context.Context {
	return context.WithValue(ctx, encryptedKey{}, encrypted)
}

// IsEncrypted says what WithScheme or WithEncryption has noted.
func IsEncrypted(ctx context.Context) bool {
	encrypted, _ := ctx.Value(encryptedKey{}).(bool)
	return encrypted
}

// PlainURLError is the reason alone: the address may hold what must not be shown.
func PlainURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
