package layout

import (
	"net/netip"
	"testing"
)

func TestAddressesDoNotMeet(t *testing.T) {
	a := Addresses{Subnet: netip.MustParsePrefix(DefaultSubnet)}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	if !a.Services().Contains(a.API()) || a.Services().Addr().Next() != a.API() {
		t.Errorf("the API server at %s is not the first Service of %s", a.API(), a.Services())
	}
	taken := []netip.Prefix{a.Services()}
	for i := range MaxNodes {
		taken = append(taken, netip.PrefixFrom(a.Node(i), 32), a.Pods(i))
	}
	for i, one := range taken {
		if !a.Subnet.Overlaps(one) {
			t.Errorf("%s is outside of %s", one, a.Subnet)
		}
		for _, other := range taken[:i] {
			if one.Overlaps(other) {
				t.Errorf("%s and %s overlap", one, other)
			}
		}
	}
}

func TestSubnetsThatAreRefused(t *testing.T) {
	for _, text := range []string{"10.1.0.0/24", "10.1.2.0/16", "fd00::/16", "10.0.0.0/8"} {
		if err := (Addresses{Subnet: netip.MustParsePrefix(text)}).Check(); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if err := (Addresses{}).Check(); err == nil {
		t.Error("no subnet is accepted")
	}
}
