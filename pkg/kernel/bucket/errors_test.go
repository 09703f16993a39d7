package bucket_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
)

// TestErrorsAreWords: errors of S3 are in our words, with its code, since people read them as reasons. What the SDK
// says of the request is not in the text, but can be found in the error.
func TestErrorsAreWords(t *testing.T) {
	twin, buckets := buckettest.Open(t, "b")
	b := buckets[0]
	if err := b.Put(t.Context(), "is", []byte("x"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	get := func() error { _, _, err := b.Read(t.Context(), "not"); return err }
	put := func() error { return b.Put(t.Context(), "is", nil, bucket.Condition{Absent: true}) }
	for _, c := range []struct {
		status int
		do     func() error
		kind   fault.Kind
		says   string
	}{
		{0, get, fault.NotFound, "s3: get not: there is no such object"},
		{0, put, fault.Stale, "s3: put is: the object has changed"},
		{http.StatusForbidden, get, "", "s3: get not: AccessDenied"},
		{http.StatusServiceUnavailable, put, "", "s3: put is: SlowDown"},
	} {
		twin.Before = func(string, string) int { return c.status }
		err := c.do()
		var api smithy.APIError
		if fault.Of(err) != c.kind || err == nil || !strings.HasPrefix(err.Error(), c.says) ||
			strings.Contains(err.Error(), "RequestID") || !errors.As(err, &api) {
			t.Errorf("%v; expected %q with S3's error", err, c.says)
		}
	}
}

// TestPresignMissing: no URL is made of an object that is missing: S3's XML would be all that a reader of it gets.
func TestPresignMissing(t *testing.T) {
	_, buckets := buckettest.Open(t, "b")
	to, err := buckets[0].Presign(t.Context(), "a", "a.txt", time.Minute)
	if !fault.Is(err, fault.NotFound) || to != "" {
		t.Errorf("%q, %v", to, err)
	}
}
