package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

func ExampleSign() {
	body := []byte(`{"type":"job.preserved"}`)
	fmt.Println(Sign("the shared key", body, time.Unix(1764547200, 0)))
	// Output: t=1764547200,v1=26e05670f9aa08169f809858c31db62a690c88971eb0e39d1897176c7dc7cd23
}

// sender has the times given, one a try, and may connect to this host.
func sender(times ...int64) Sender {
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	client.Wait = func(context.Context, time.Duration) error { return nil }
	return Sender{client, func() time.Time {
		now := times[0]
		times = append(times[1:], now)
		return time.Unix(now, 0)
	}}
}

// TestEachTryIsSigned: a callback is sent again after a failure, with the same body and
// a signature of that time.
func TestEachTryIsSigned(t *testing.T) {
	var heard []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		at := int64(len(heard) + 1)
		var p Preserved
		if err := json.Unmarshal(body, &p); err != nil || p.ID != "j.preserved" ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s, %v", body, err)
		}
		if got, want := r.Header.Get(SignatureHeader), Sign("key", body, time.Unix(at, 0)); got != want {
			t.Errorf("signed %s, want %s", got, want)
		}
		heard = append(heard, string(body))
		if at < 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer srv.Close()

	tries, err := sender(1, 2, 3).Send(t.Context(), srv.URL, "key",
		Preserved{ID: "j.preserved", Type: TypePreserved})
	if err != nil || tries != 3 || len(heard) != 3 || heard[0] != heard[2] {
		t.Errorf("%d tries, %v", len(heard), err)
	}
}

// TestFourTries: a server that always fails is asked four times; one that says that the request
// is wrong, once.
func TestFourTries(t *testing.T) {
	for status, want := range map[int]int{http.StatusBadGateway: 4, http.StatusGone: 1} {
		tries := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tries++
			w.WriteHeader(status)
		}))
		counted, err := sender(1).Send(t.Context(), srv.URL, "key", Preserved{})
		srv.Close()
		if err == nil || tries != want || counted != want {
			t.Errorf("%d: asked %d times, expected %d, %v", status, tries, want, err)
		}
	}
}

// TestErrorsNameTheHost: what a depositor reads of a callback that failed has no part of
// its URL but the host, also where the receiver redirects or its address is refused.
func TestErrorsNameTheHost(t *testing.T) {
	srv := httptest.NewServer(http.RedirectHandler("/SECRET", http.StatusFound))
	defer srv.Close()
	known := strings.Replace(srv.URL, "http://", "http://SECRET@", 1)
	for _, base := range []string{srv.URL, known, "http://127.0.0.1:1", "http://10.0.0.1", "http://%zz"} {
		_, err := sender(1).Send(t.Context(), base+"/services/SECRET?SECRET", "key", Preserved{})
		if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "services") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// TestPrivateAddressesAreRefused: a profile cannot make the system post into its own network.
func TestPrivateAddressesAreRefused(t *testing.T) {
	var refused *fetch.RefusedError
	_, err := sender(1).Send(t.Context(), "http://169.254.169.254/latest", "key", Preserved{})
	if !errors.As(err, &refused) || !fault.Is(err, fault.Invalid) {
		t.Errorf("%v", err)
	}
}

// TestSame: two URLs are the same receiver however they are written; what the receiver sees makes another one.
func TestSame(t *testing.T) {
	const url = "https://example.org/a?b=c"
	for other, want := range map[string]bool{"HTTPS://EXAMPLE.org:443/a?b=c": true, url + "#d": true,
		"https://example.org/A?b=c": false, "https://example.org/a": false, "https://example.org:8443/a?b=c": false,
		"https://example.net/a?b=c": false, "http://example.org:443/a?b=c": false, "https://%zz": false} {
		if got := Same(url, other); got != want {
			t.Errorf("%s: %v", other, got)
		}
	}
	if !Same("https://example.org", "https://example.org/") || !Same("https://%zz", "https://%zz") {
		t.Error("the same URL is another one")
	}
}

// TestUnsigned: without a key there is no signature, which an empty key would only seem to be.
func TestUnsigned(t *testing.T) {
	heard := 0
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard++
		if _, signed := r.Header[SignatureHeader]; signed {
			t.Errorf("signed %q", r.Header.Get(SignatureHeader))
		}
	}))
	defer srv.Close()
	if _, err := sender(1).Send(t.Context(), srv.URL, "", Preserved{}); err != nil || heard != 1 {
		t.Errorf("heard %d, %v", heard, err)
	}
}
