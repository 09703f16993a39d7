package bucket_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// TestRoundTrip: an object is fetched as the content of a web server is: its size, its parts under the condition that
// it has not changed, and what is not there.
func TestRoundTrip(t *testing.T) {
	twin := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(twin.Close)
	b := bucket.Bucket{Client: buckettest.Client(twin.URL), Name: "digitisation", Limits: bucket.DefaultLimits}
	const key = "a folder/ä 100%+#?.txt"
	put := func(text string) {
		t.Helper()
		if err := b.Put(t.Context(), key, []byte(text), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	put("0123456789")
	c := fetch.New(fetch.Guard{}, func() float64 { return 0 }).With(fetch.Access{Buckets: []string{"digitisation"},
		S3: func(name string) http.RoundTripper { return bucket.Bucket{Client: b.Client, Name: name} }})
	url := "s3://digitisation/a%20folder/%C3%A4%20100%25+%23%3F.txt"
	if n, err := c.Size(t.Context(), url); n != 10 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}

	var part fetch.Partial
	get := func(url string, most int64) (text string, from int64, err error) {
		err = c.Get(t.Context(), url, func() fetch.Partial { return part }, func(s fetch.Stream) error {
			data, err := io.ReadAll(io.LimitReader(s, most))
			text, from, part.Content = string(data), s.From, s.Content
			return err
		})
		return text, from, err
	}
	if text, _, err := get(url, 4); text != "0123" || err != nil || part.Validator == "" || part.Size != 10 {
		t.Errorf("%q, %v, %+v", text, err, part)
	}
	part.Offset = 4
	if text, from, err := get(url, 99); text != "456789" || from != 4 || err != nil {
		t.Errorf("the rest is %q from %d, %v", text, from, err)
	}
	put("abcdefghijkl")
	part.Offset = 4
	if text, from, err := get(url, 99); text != "abcdefghijkl" || from != 0 || err != nil {
		t.Errorf("of a changed object %q from %d, %v", text, from, err)
	}

	part = fetch.Partial{}
	for url, want := range map[string]string{
		"s3://digitisation/none":   "answered 404 Not Found",
		"s3://other/a":             "sources.buckets",
		"s3://digitisation":        "expected s3://bucket/key",
		"s3://digitisation/a?v=2":  "expected s3://bucket/key",
		"s3://digitisation:80/a":   "expected s3://bucket/key",
		"s3://me@digitisation/a":   "expected s3://bucket/key",
		"s3://digitisation/a#part": "expected s3://bucket/key",
	} {
		if _, _, err := get(url, 9); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
}
