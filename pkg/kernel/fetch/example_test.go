package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// A file is digested as it comes. Only the allowed network of this test, and public
// addresses, are fetched from.
func Example() {
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.txt" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "content")
	}))
	defer source.Close()

	guard := fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	client := fetch.New(guard, func() float64 { return 0.5 })
	ctx := context.Background()

	digests := fetch.NewDigester("md5")
	err := client.Get(ctx, source.URL+"/a.txt", nil, func(s fetch.Stream) error {
		_, err := io.Copy(digests, s)
		return err
	})
	fmt.Println(digests.Size, digests.Sums()["md5"], err)

	err = client.Get(ctx, source.URL+"/b.txt?signature=secret", nil, func(fetch.Stream) error { return nil })
	fmt.Println(fault.Of(err), strings.ReplaceAll(err.Error(), source.URL, "http://source"))

	err = client.Get(ctx, "http://169.254.169.254/", nil, func(fetch.Stream) error { return nil })
	fmt.Println(fault.Of(err), err)
	// Output:
	// 7 9a0364b9e99bb480dd25e1f0284c8555 <nil>
	// Invalid http://source/b.txt?redacted answered 404 Not Found
	// Invalid http://169.254.169.254/: the host is 169.254.169.254, which is not a public address
}
