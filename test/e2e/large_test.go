package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/bucket"
)

// pattern is content of a size that need not be kept: byte n follows from n.
type pattern struct{ at, size int64 }

func (p *pattern) Read(b []byte) (int, error) {
	if p.at >= p.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), p.size-p.at))
	for i := range n {
		at := p.at + int64(i)
		b[i] = byte(at ^ at>>8 ^ at>>16 ^ at>>24)
	}
	p.at += int64(n)
	return n, nil
}

func (p *pattern) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += p.at
	case io.SeekEnd:
		offset += p.size
	}
	p.at = offset
	return offset, nil
}

// half stops sending at half of the content, once, until it is released.
type half struct {
	http.ResponseWriter
	sent    *atomic.Int64
	stop    int64
	waiting chan struct{}
	release chan struct{}
	gone    <-chan struct{}
}

func (h *half) Write(p []byte) (int, error) {
	n, err := h.ResponseWriter.Write(p)
	if was := h.sent.Add(int64(n)); was >= h.stop && was-int64(n) < h.stop {
		close(h.waiting)
		select {
		case <-h.release:
		case <-h.gone:
		}
	}
	return n, err
}

// Test4aLarge: a file in many parts whose function is killed at half goes on
// where the last part ended, and comes back whole.
func Test4aLarge(t *testing.T) {
	const size = 100 << 20
	var sent, next atomic.Int64 // bytes; where the first request after the kill began
	next.Store(-1)
	waiting, release := make(chan struct{}), make(chan struct{})
	src := newSource(t)
	src.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"pattern"`)
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0" {
			var from int64
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				next.CompareAndSwap(-1, from)
			}
			w = &half{w, &sent, size / 2, waiting, release, r.Context().Done()}
		}
		http.ServeContent(w, r, "large.bin", time.Time{}, &pattern{size: size})
	})
	sum := sha256.New()
	if _, err := io.Copy(sum, &pattern{size: size}); err != nil {
		t.Fatal(err)
	}
	in := v1.BatchRequest{Collection: "e2e", Payload: v1.Payload{URL: src.URL + "/large.bin", Type: "file", Digest: &v1.Digest{Algorithm: "SHA-256", Value: strings.ToUpper(hex.EncodeToString(sum.Sum(nil)))}}}
	b, err := client.Submit(t.Context(), in, "large")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-waiting:
	case <-time.After(soon):
		t.Fatal("half of the file never came")
	}
	if killFunctions(t) == 0 {
		t.Error("no function was killed")
	}
	close(release)
	j := ends(t, b.ID+"-00001", "Completed", 3*time.Minute)
	const buffers = 8 << 20 // what the server has sent and the function had not read
	if again := size/2 - next.Load(); again > bucket.DefaultLimits.Part+buffers {
		t.Errorf("after the kill %d bytes were fetched again; a part has %d", again, bucket.DefaultLimits.Part)
	}
	// Each invocation that ends at its time budget loses what its connection holds.
	t.Logf("after the kill it went on at %d MiB; %d MiB were sent in all", next.Load()>>20, sent.Load()>>20)
	body, err := client.Content(t.Context(), j.Identifiers.Primary, 1, "producer/large.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got := sha256.New()
	if n, err := io.Copy(got, body); err != nil || n != size || hex.EncodeToString(got.Sum(nil)) != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}
