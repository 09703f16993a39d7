package api_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rendererSum is the sha256 of dist/browser/standalone.js in @scalar/api-reference 1.72.1.
const rendererSum = "bf091006bdc3af6067af77c2f534812e3e633e94a94e87138069f570f33b762c"

// TestPage: the page and all files that it names are served, by relative paths. The
// renderer is that of the package, compressed if the client accepts that.
func TestPage(t *testing.T) {
	c, _ := serve(t, through)
	resp, html := ask(t, "GET", c.URL+"/docs", "")
	policy := resp.Header.Get("Content-Security-Policy")
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "http") {
		t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if strings.HasPrefix(m[1], "/") || strings.Contains(m[1], ":") {
			t.Errorf("%s is not relative to the page", m[1])
		}
		if resp, _ := ask(t, "GET", c.URL+"/"+m[1], ""); resp.StatusCode != 200 ||
			resp.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", m[1], resp.StatusCode, resp.Header)
		}
	}
	const script = "/docs/scalar-1.72.1.js"
	resp, packed := ask(t, "GET", c.URL+script, "", "Accept-Encoding", "gzip, br")
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil || resp.Header.Get("Content-Encoding") != "gzip" ||
		!strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
		t.Fatal(resp.Header, err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != rendererSum {
		t.Errorf("the renderer is not that of the package: %x", sum)
	}
	resp, plain := ask(t, "GET", c.URL+script, "", "Accept-Encoding", "identity")
	if resp.Header.Get("Content-Encoding") != "" || !bytes.Equal([]byte(plain), content) {
		t.Errorf("without compression: %v, %d bytes", resp.Header, len(plain))
	}
	if _, err := os.Stat("page/LICENSE"); err != nil {
		t.Error(err)
	}
	if resp, _ := ask(t, http.MethodGet, c.URL+"/docs/LICENSE", ""); resp.StatusCode != 404 {
		t.Errorf("another file of the folder is served: %d", resp.StatusCode)
	}
}
