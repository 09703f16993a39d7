package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"archivist/pkg/kernel/fault"
)

// special are the entries of IANA's special-purpose address registries (IPv4 and IPv6,
// as of October 2025), and the blocks that are not unicast or no longer assigned.
var special = []string{
	"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
	"192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32",
	"192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16",
	"192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
	"224.0.0.0/4", // multicast
	"::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64",
	"2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32",
	"2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16",
	"2620:4f:8000::/48",
	"3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10",
	"::/96", "fec0::/10", "ff00::/8", // IPv4-compatible (RFC 4291), site local (RFC 3879), multicast
	"::/3", "4000::/3", "6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/3", // not assigned for global unicast
}

// last is the last address of a block.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// TestGuardAllowsGlobalUnicastOnly: nothing of a special-purpose block is fetched from,
// nor an IPv4 address of such a block within one of IPv6.
func TestGuardAllowsGlobalUnicastOnly(t *testing.T) {
	for _, block := range special {
		p := netip.MustParsePrefix(block)
		for _, a := range []netip.Addr{p.Addr(), p.Addr().Next(), last(p).Prev(), last(p)} {
			if !p.Contains(a) {
				continue // of a block of one address
			}
			forms := []netip.Addr{a}
			if a.Is4() {
				b := a.As4()
				mapped := a.As16()
				translated, tunnel := netip.MustParseAddr("64:ff9b::").As16(), netip.MustParseAddr("2002::").As16()
				copy(translated[12:], b[:])
				copy(tunnel[2:], b[:])
				forms = append(forms, netip.AddrFrom16(mapped), netip.AddrFrom16(translated), netip.AddrFrom16(tunnel))
			}
			for _, f := range forms {
				if (Guard{}).allows(f) {
					t.Errorf("%s of %s is allowed", f, block)
				}
			}
		}
	}
	for _, a := range []string{"8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
		"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
		"172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2001:200::1", "2606:4700::1111", "2a00:1450:4001::1", "3ffe:ffff::1"} {
		if !(Guard{}).allows(netip.MustParseAddr(a)) {
			t.Errorf("%s is refused", a)
		}
	}
	for _, a := range []string{"fe80::1%eth0", "2606:4700::1111%eth0", "fc00::1%1"} { // a zone is within this host
		if (Guard{}).allows(netip.MustParseAddr(a)) {
			t.Errorf("%s is allowed", a)
		}
	}
}

// FuzzGuard: what is allowed is global unicast by the standard library's own judgement,
// too, in each form, and an allow-listed block opens nothing but itself.
func FuzzGuard(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Add(netip.MustParseAddr("64:ff9b::a00:1").AsSlice())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		allow := netip.MustParsePrefix("127.0.0.0/8")
		plain := a.Unmap()
		open, opened := (Guard{}).allows(a), (Guard{Allow: []netip.Prefix{allow}}).allows(a)
		if open && (!plain.IsGlobalUnicast() || plain.IsPrivate() || plain.IsLoopback()) {
			t.Errorf("%s is allowed", a)
		}
		if opened != (open || allow.Contains(plain)) {
			t.Errorf("%s: allowed %v, with %s %v", a, open, allow, opened)
		}
		if open != ((Guard{}).allows(plain)) {
			t.Errorf("%s and %s differ", a, plain)
		}
	})
}

// names answers questions for addresses of any name, one answer after the other; the
// last is repeated.
type names struct {
	mu      sync.Mutex
	answers [][]string
}

func (n *names) next() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.answers[0]
	if len(n.answers) > 1 {
		n.answers = n.answers[1:]
	}
	return now
}

// resolver asks n, in the form of DNS over a stream (RFC 1035, section 4.2.2).
func (n *names) resolver(t *testing.T) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			var size uint16
			if binary.Read(theirs, binary.BigEndian, &size) != nil {
				return
			}
			query := make([]byte, size)
			var m dnsmessage.Message
			if _, err := io.ReadFull(theirs, query); err != nil || m.Unpack(query) != nil {
				t.Error("no question came")
				return
			}
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			q := m.Questions[0]
			if q.Type == dnsmessage.TypeA {
				for _, a := range n.next() {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()}})
				}
			}
			answer, err := m.Pack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
		}()
		return ours, nil
	}}
}

// TestGuardJudgesEachConnection: each address that a name has is judged when it is
// connected to, on redirects too, also when the name's answer changes.
func TestGuardJudgesEachConnection(t *testing.T) {
	var port string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "http://elsewhere.test:"+port+"/", http.StatusFound)
		}
	}))
	defer srv.Close()
	_, port, _ = net.SplitHostPort(srv.Listener.Addr().String())
	const here, inside = "127.0.0.1", "10.0.0.1" // the one is allowed, as if it were public
	for name, c := range map[string]struct {
		answers [][]string
		path    string
		refused bool
	}{
		"public":                      {[][]string{{here}}, "/", false},
		"private":                     {[][]string{{inside}}, "/", true},
		"several, one public":         {[][]string{{inside, here}}, "/", false},
		"several, none public":        {[][]string{{inside, "169.254.169.254", "0.0.0.1"}}, "/", true},
		"redirect to a private one":   {[][]string{{here}, {inside}}, "/moved", true},
		"private after it was public": {[][]string{{here}, {inside}}, "/", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
			d := g.dialer()
			d.Resolver = (&names{answers: c.answers}).resolver(t)
			client := New(g, func() float64 { return 0 })
			transport := client.HTTP.Transport.(*http.Transport)
			transport.DialContext, transport.DisableKeepAlives = d.DialContext, true
			get := func() error {
				return client.Get(t.Context(), "http://archive.test:"+port+c.path, nil,
					func(Stream) error { return nil })
			}
			check := func(what string, err error, refused bool) {
				t.Helper()
				var r *RefusedError
				if errors.As(err, &r) != refused || refused != fault.Is(err, fault.Invalid) {
					t.Errorf("%s: %v", what, err)
				}
			}
			check("get", get(), c.refused)
			if len(c.answers) > 1 { // the second answer is private
				check("get again", get(), true)
			}
		})
	}
}

// TestRedirectsTellNothing: another host learns neither the URL that redirected to it,
// nor credentials, nor cookies; the range that is asked for goes along.
func TestRedirectsTellNothing(t *testing.T) {
	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, _, ok := r.BasicAuth(); !ok || user != "me" {
			t.Error("the first host gets no credentials")
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "secret"})
		http.Redirect(w, r, other.URL+"/b", http.StatusFound)
	}))
	defer first.Close()
	raw := strings.Replace(first.URL, "http://", "http://me:secret@", 1) + "/a?X-Amz-Signature=secret"
	part := Partial{3, Content{Validator: `"one"`, Size: -1}}
	err := local("127.0.0.0/8").Get(t.Context(), raw, func() Partial { return part }, func(Stream) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range seen {
		for _, v := range values {
			if strings.Contains(v, "secret") || name == "Referer" || name == "Authorization" || name == "Cookie" {
				t.Errorf("%s: %s", name, v)
			}
		}
	}
	if seen.Get("Range") != "bytes=3-" || seen.Get("If-Range") != `"one"` {
		t.Errorf("%v", seen)
	}
}
