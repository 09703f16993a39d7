package source

import (
	"fmt"
	"testing"
)

func ExampleCheck() {
	for _, url := range []string{"https://example.org/a.tif", "s3://bucket/a.tif", "example.org/a.tif"} {
		fmt.Println(url, "→", Check(url))
	}
	// Output:
	// https://example.org/a.tif → <nil>
	// s3://bucket/a.tif → expected an http or https URL; s3 URLs are not fetched, give a presigned https URL of the object
	// example.org/a.tif → expected an http or https URL
}

// TestCheck: only http and https, with a host.
func TestCheck(t *testing.T) {
	for url, good := range map[string]bool{
		"http://x/a": true, "HTTPS://x/a": true, "http://x": true, "http://[::1]:80/": true, "http://x/%7c": true,
		"": false, "x": false, "/a": false, "http:///a": false, "http:x": false, "ftp://x/a": false, "file:///a": false,
		"s3://b/k": false, "javascript:x": false, "http://x/%zz": false, "http://x:port/": false, "//x/a": false,
	} {
		if err := Check(url); (err == nil) != good {
			t.Errorf("%q: %v", url, err)
		}
	}
}
