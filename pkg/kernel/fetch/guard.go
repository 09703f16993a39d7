package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Guard restricts the addresses from which content is downloaded.
type Guard struct {
	Allow []netip.Prefix // in addition to public ones, e.g. 127.0.0.0/8 locally
}

// RefusedError reports a source that is not allowed: an address, a URL of another scheme to which a source redirects,
// or a host that an Access refuses.
type RefusedError struct {
	Address netip.Addr
	Scheme  string
	Why     string
}

// Error names what is refused and why.
func (e *RefusedError) Error() string {
	if e.Why != "" {
		return e.Why
	}
	if e.Scheme != "" {
		return fmt.Sprintf("a URL of the scheme %q; only http and https URLs are fetched", e.Scheme)
	}
	return e.Address.String() + ", which is not a public address"
}

// reserved4 are the blocks of IPv4 without public hosts: the IANA IPv4
// Special-Purpose Address Registry (RFC 6890), also where it says "globally
// reachable" of a protocol's own service, and the Multicast Address Space Registry.
var reserved4 = prefixes(
	"0.0.0.0/8",       // this network, RFC 791
	"10.0.0.0/8",      // private use, RFC 1918
	"100.64.0.0/10",   // shared address space, RFC 6598
	"127.0.0.0/8",     // loopback, RFC 1122
	"169.254.0.0/16",  // link local, RFC 3927; metadata of cloud hosts
	"172.16.0.0/12",   // private use, RFC 1918
	"192.0.0.0/24",    // IETF protocol assignments, RFC 6890
	"192.0.2.0/24",    // documentation, RFC 5737
	"192.31.196.0/24", // AS112, RFC 7535
	"192.52.193.0/24", // AMT, RFC 7450
	"192.88.99.0/24",  // relays of 6to4, RFC 7526
	"192.168.0.0/16",  // private use, RFC 1918
	"192.175.48.0/24", // direct delegation AS112, RFC 7534
	"198.18.0.0/15",   // benchmarking, RFC 2544
	"198.51.100.0/24", // documentation, RFC 5737
	"203.0.113.0/24",  // documentation, RFC 5737
	"224.0.0.0/4",     // multicast, RFC 5771
	"240.0.0.0/4",     // reserved, RFC 1112, and limited broadcast, RFC 919
)

// global6 is the block that IANA assigns for global unicast (Internet Protocol Version 6
// Address Space registry, RFC 4291). All addresses outside it are refused.
var global6 = netip.MustParsePrefix("2000::/3")

// reserved6 are the blocks of global6 without public hosts (IANA IPv6
// Special-Purpose Address Registry). The tunnels carry an IPv4 address, by which a
// private one could be reached; they are out of use, so all of them are refused.
var reserved6 = prefixes(
	"2001::/23",         // IETF protocol assignments, RFC 2928: Teredo, ORCHID, benchmarking and others
	"2001:db8::/32",     // documentation, RFC 3849
	"2002::/16",         // 6to4, RFC 3056
	"2620:4f:8000::/48", // direct delegation AS112, RFC 7534
	"3fff::/20",         // documentation, RFC 9637
)

// nat64 is the well-known prefix of translated IPv4 addresses (RFC 6052). Resolvers
// of IPv6-only networks return it, so the embedded IPv4 address is checked.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func within(a netip.Addr, all []netip.Prefix) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

// public reports whether an address is that of a public Internet host. a must not be an
// IPv4-mapped IPv6 address.
func public(a netip.Addr) bool {
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is4() {
		return !within(a, reserved4)
	}
	return global6.Contains(a) && !within(a, reserved6)
}

// allows reports whether content may be downloaded from an address. It is called for each
// connection, after the name was resolved, so that neither a redirect nor a changed DNS
// record can bypass it (server-side request forgery).
func (g Guard) allows(a netip.Addr) bool {
	a = a.Unmap()
	return within(a, g.Allow) || public(a)
}

// dialer returns a dialer that connects to allowed addresses only.
func (g Guard) dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !g.allows(ap.Addr()) {
			return &RefusedError{Address: ap.Addr()}
		}
		return nil
	}}
}
