package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// MakeBridge makes sure that there is a bridge of that name, up, with these
// addresses.
func MakeBridge(name string, addresses []netip.Prefix) error {
	bridge, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = name
		// Left to itself, a bridge takes the lowest hardware address among its
		// ports: it would change as Pods come and go, and Pods that remember
		// the old one would no longer reach the machine.
		ip := addresses[0].Addr().As4()
		attributes.HardwareAddr = net.HardwareAddr{0x02, 'k', ip[0], ip[1], ip[2], ip[3]}
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
			return fmt.Errorf("make the bridge %s: %w", name, err)
		}
		bridge, err = netlink.LinkByName(name)
	}
	if err != nil {
		return fmt.Errorf("look for the bridge %s: %w", name, err)
	}
	for _, address := range addresses {
		ip := &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), 32)}
		if err := netlink.AddrReplace(bridge, &netlink.Addr{IPNet: ip}); err != nil {
			return fmt.Errorf("give %s the address %s: %w", name, address, err)
		}
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// RemoveBridge removes the bridge and every interface that is plugged into it.
func RemoveBridge(name string) error {
	bridge, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for the bridge %s: %w", name, err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list the interfaces: %w", err)
	}
	for _, link := range links {
		if link.Attrs().MasterIndex == bridge.Attrs().Index {
			// Its network namespace may just be ending and take it along.
			if err := netlink.LinkDel(link); err != nil && !isGone(link.Attrs().Name) {
				return fmt.Errorf("remove the interface %s: %w", link.Attrs().Name, err)
			}
		}
	}
	if err := netlink.LinkDel(bridge); err != nil {
		return fmt.Errorf("remove the bridge %s: %w", name, err)
	}
	return nil
}

func isGone(name string) bool {
	_, err := netlink.LinkByName(name)
	return errors.As(err, &netlink.LinkNotFoundError{})
}

// SubnetInUse names the interface and route of the machine that the subnet
// would collide with; ours does not count.
func SubnetInUse(subnet netip.Prefix, ours string) (string, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return "", fmt.Errorf("list the routes: %w", err)
	}
	for _, route := range routes {
		if route.Dst == nil {
			continue
		}
		address, ok := netip.AddrFromSlice(route.Dst.IP.To4())
		if !ok {
			continue
		}
		bits, _ := route.Dst.Mask.Size()
		if bits == 0 || !netip.PrefixFrom(address, bits).Overlaps(subnet) {
			continue
		}
		link, err := netlink.LinkByIndex(route.LinkIndex)
		if err == nil && link.Attrs().Name != ours {
			return fmt.Sprintf("%s on %s", route.Dst, link.Attrs().Name), nil
		}
	}
	return "", nil
}
