package bucket_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
)

// send sends a PUT request, and returns the status of the answer.
func send(t *testing.T, url string, headers map[string]string, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestSignPut: the request stores exactly the content that was signed, and nothing else: whatever of it is changed, it
// is refused, and nothing is stored.
func TestSignPut(t *testing.T) {
	twin, buckets := buckettest.Open(t, "work")
	const content = "the content"
	sum, other := sha256.Sum256([]byte(content)), sha256.Sum256([]byte("the c0ntent"))
	put, err := buckets[0].SignPut(t.Context(), "uploads/a b", int64(len(content)), sum[:], time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := buckets[0].SignPut(t.Context(), "x", int64(len(content)), other[:], time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if len(put.Headers) != 1 || put.Headers["x-amz-checksum-sha256"] == "" ||
		strings.Contains(strings.ToLower(put.URL), "x-amz-checksum-sha256=") ||
		!strings.Contains(put.URL, "content-length%3Bhost%3Bx-amz-checksum-sha256") {
		t.Fatalf("the size and the checksum are not signed headers: %+v", put)
	}
	for name, row := range map[string]struct {
		url, body string
		headers   map[string]string
		status    int
	}{
		"other content":         {put.URL, "the c0ntent", put.Headers, http.StatusBadRequest},
		"other content and sum": {put.URL, "the c0ntent", changed.Headers, http.StatusForbidden},
		"no checksum":           {put.URL, content, nil, http.StatusForbidden},
		"longer":                {put.URL, content + "!", put.Headers, http.StatusForbidden},
		"empty":                 {put.URL, "", put.Headers, http.StatusForbidden},
		"other key": {strings.Replace(put.URL, "a%20b", "c", 1), content, put.Headers,
			http.StatusForbidden},
		"later": {strings.Replace(put.URL, "X-Amz-Expires=3600", "X-Amz-Expires=86400", 1), content, put.Headers,
			http.StatusForbidden},
	} {
		if got := send(t, row.url, row.headers, row.body); got != row.status {
			t.Errorf("%s: answered %d, expected %d", name, got, row.status)
		}
	}
	if names := twin.Names("work/"); len(names) != 0 {
		t.Fatalf("refused requests have stored %q", names)
	}
	if got := send(t, put.URL, put.Headers, content); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	size, stored, err := buckets[0].Sums(t.Context(), "uploads/a b")
	if err != nil || size != int64(len(content)) || !bytes.Equal(stored, sum[:]) {
		t.Errorf("%d bytes, %x, %v", size, stored, err)
	}
}

// TestSignEmpty: an empty file can be sent, too.
func TestSignEmpty(t *testing.T) {
	_, buckets := buckettest.Open(t, "work")
	sum := sha256.Sum256(nil)
	put, err := buckets[0].SignPut(t.Context(), "empty", 0, sum[:], time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got := send(t, put.URL, put.Headers, "not empty"); got != http.StatusBadRequest {
		t.Errorf("other content: answered %d", got)
	}
	if got := send(t, put.URL, put.Headers, ""); got != http.StatusOK {
		t.Errorf("answered %d", got)
	}
}

// TestSentParts: parts that were sent by signed requests are listed, and become an object when all are there; a part of
// another size is refused.
func TestSentParts(t *testing.T) {
	twin, buckets := buckettest.Open(t, "work")
	b, ctx := buckets[0], t.Context()
	id, err := b.BeginSent(ctx, "large")
	if err != nil {
		t.Fatal(err)
	}
	for n, text := range map[int]string{2: "second", 1: "first "} {
		to, err := b.SignPart(ctx, "large", id, n, 6, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if got := send(t, to, nil, text+"!"); got != http.StatusForbidden {
			t.Errorf("a longer part: answered %d", got)
		}
		if got := send(t, to, nil, text); got != http.StatusOK {
			t.Fatalf("part %d: answered %d", n, got)
		}
	}
	parts, err := b.SentParts(ctx, "large", id)
	if err != nil || len(parts) != 2 || parts[0].Number != 1 || parts[1].Size != 6 {
		t.Fatalf("%+v, %v", parts, err)
	}
	if err := b.CompleteSent(ctx, "large", id, parts[1:]); err == nil {
		t.Error("completed without the first part")
	}
	for range 2 { // the first answer may be lost
		if err := b.CompleteSent(ctx, "large", id, parts); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := twin.Object("work/large"); string(data) != "first second" {
		t.Errorf("%q", data)
	}
	if _, err := b.SentParts(ctx, "large", id); !fault.Is(err, fault.NotFound) {
		t.Errorf("the parts of a completed upload: %v", err)
	}
	if _, sum, err := b.Sums(ctx, "large"); err != nil || sum != nil {
		t.Errorf("a whole of parts has a SHA-256: %x, %v", sum, err)
	}
}

// TestAbortAll: uploads below the prefix are aborted, and no others.
func TestAbortAll(t *testing.T) {
	_, buckets := buckettest.Open(t, "work")
	b, ctx, ids := buckets[0], t.Context(), map[string]string{}
	for _, key := range []string{"uploads/a/1", "uploads/a/2", "uploads/b/1"} {
		id, err := b.BeginSent(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		ids[key] = id
	}
	if all, err := b.AbortAll(ctx, "uploads/a/", func() bool { return false }); all || err != nil {
		t.Errorf("without time: %v, %v", all, err)
	}
	if all, err := b.AbortAll(ctx, "uploads/a/", func() bool { return true }); !all || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	var open []string
	for key, id := range ids {
		if _, err := b.SentParts(ctx, key, id); err == nil {
			open = append(open, key)
		}
	}
	if !slices.Equal(open, []string{"uploads/b/1"}) {
		t.Errorf("open are %q", open)
	}
}
