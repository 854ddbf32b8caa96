package outbound

import (
	"net/netip"
	"testing"
)

func TestAddressesAreJudged(t *testing.T) {
	loopback := Addresses{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for _, test := range []struct {
		address           string
		encrypted, refuse bool
	}{
		{"93.184.216.34", true, false}, {"93.184.216.34", false, true}, {"2606:2800:220:1::1", true, false},
		{"10.0.0.1", true, true}, {"172.16.9.9", true, true}, {"192.168.1.1", true, true}, {"169.254.169.254", true, true},
		{"100.64.0.1", true, true}, {"0.0.0.0", true, true}, {"224.0.0.1", true, true}, {"255.255.255.255", true, true},
		{"::ffff:10.0.0.1", true, true}, {"::ffff:127.0.0.1", false, false}, {"fe80::1%eth0", true, true}, {"fd00::1", true, true},
		{"64:ff9b::a00:1", true, true}, {"2002:a00:1::", true, true}, {"::", true, true}, {"::1", false, false}, {"127.9.9.9", false, false},
	} {
		err := loopback.check(netip.MustParseAddr(test.address), test.encrypted)
		if (err != nil) != test.refuse {
			t.Errorf("%s, encrypted %v: %v", test.address, test.encrypted, err)
		}
	}
}
