package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket"
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

// half is the response to one request for the content from an offset. The first
// one that comes to half of the content stops there until it is released.
type half struct {
	http.ResponseWriter
	at, stop int64
	once     *sync.Once
	waiting  chan struct{}
	release  chan struct{}
	gone     <-chan struct{}
}

func (h *half) Write(p []byte) (int, error) {
	n, err := h.ResponseWriter.Write(p)
	h.at += int64(n)
	if h.at >= h.stop {
		h.once.Do(func() {
			close(h.waiting)
			select {
			case <-h.release:
			case <-h.gone:
			}
		})
	}
	return n, err
}

// kernelBuffers is the most that one connection's buffers hold, in bytes.
func kernelBuffers(t *testing.T) (sum int64) {
	t.Helper()
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		data, err := os.ReadFile("/proc/sys/net/ipv4/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var least, usual, most int64
		if _, err := fmt.Sscan(string(data), &least, &usual, &most); err != nil {
			t.Fatal(err)
		}
		sum += most
	}
	return sum
}

// gigabyte makes the large file one of 1 GiB, and a step's time budget 20 s.
var gigabyte = flag.Bool("gigabyte", false, "TestKilledDownloadResumesAtTheLastPart with 1 GiB and a time budget of "+
	"20 s (run it alone)")

// watchMemory notes the most memory that the process of each stage's function had
// resident, in bytes, until the returned function is called.
func watchMemory(t *testing.T) (peaks func() map[string]int64) {
	most, done, ended := map[string]int64{}, make(chan struct{}), make(chan struct{})
	look := func() {
		for _, p := range functionsOf(t) {
			if p.stage == "" {
				continue // a function that is no stage: it keeps an index, or signatures of formats, in memory
			}
			status, err := os.ReadFile(p.dir + "/status")
			if err != nil {
				continue // it ended
			}
			var kb int64
			if _, text, ok := strings.Cut(string(status), "VmHWM:"); ok {
				_, _ = fmt.Sscan(text, &kb)
			}
			most[p.stage] = max(most[p.stage], kb<<10)
		}
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				look()
				return
			case <-tick.C:
				look()
			}
		}
	}()
	return func() map[string]int64 {
		close(done)
		<-ended
		return most
	}
}

// mostResident is how much memory the process of a stage's function may have, in bytes. Download identifies the formats
// of what it receives: the signatures take 70 MiB from the first file on, and stay.
func mostResident(stage string) int64 {
	const most, signatures = 128 << 20, 70 << 20
	if stage == "download" {
		return most + signatures
	}
	return most
}

// submitted submits until it is accepted: an emulator may ask a process that was killed just before.
func submitted(t *testing.T, in v1.BatchRequest, key string) (b v1.Accepted) {
	t.Helper()
	until(t, "a submission is accepted", soon, func() (ok bool) {
		var err error
		b, err = client.Submit(t.Context(), in, key)
		return err == nil
	})
	return b
}

// TestKilledDownloadResumesAtTheLastPart: a file in many parts whose function is killed at half goes on
// where the last part ended, and comes back whole.
func TestKilledDownloadResumesAtTheLastPart(t *testing.T) {
	begin(t)
	size, patience := int64(100<<20), soon
	if *gigabyte {
		size, patience = 1<<30, 15*time.Minute
	}
	killFunctions(t) // what their processes have kept since an earlier test would count
	peaks := watchMemory(t)
	var killed atomic.Bool
	var next atomic.Int64 // where the first request after the kill began
	next.Store(-1)
	var once sync.Once
	waiting, release := make(chan struct{}), make(chan struct{})
	src := newSource(t)
	src.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"pattern"`)
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0" {
			var from int64
			_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
			if killed.Load() {
				next.CompareAndSwap(-1, from)
			}
			w = &half{w, from, size / 2, &once, waiting, release, r.Context().Done()}
		}
		http.ServeContent(w, r, "large.bin", time.Time{}, &pattern{size: size})
	})
	sum := sha256.New()
	if _, err := io.Copy(sum, &pattern{size: size}); err != nil {
		t.Fatal(err)
	}
	in := v1.BatchRequest{Collection: "e2e", Payload: v1.Payload{URL: src.URL + "/large.bin", Type: "file",
		Digest: &v1.Digest{Algorithm: "SHA-256", Value: strings.ToUpper(hex.EncodeToString(sum.Sum(nil)))}}}
	b := submitted(t, in, "large")
	select {
	case <-waiting:
	case <-time.After(patience):
		t.Fatal("half of the file never came")
	}
	killed.Store(true)
	if killFunctions(t) == 0 {
		t.Error("no function was killed")
	}
	close(release)
	j := ends(t, ingest.JobID(b.ID, 1), "Completed", patience)
	// What the server has sent and the function has not read yet is in the kernel.
	if again := size/2 - next.Load(); next.Load() < bucket.DefaultLimits.Part || again > bucket.DefaultLimits.Part+
		kernelBuffers(t) {
		t.Errorf("after the kill %d bytes were fetched again; a part has %d", again, bucket.DefaultLimits.Part)
	}
	t.Logf("killed at %d MiB, it went on at %d MiB", size/2>>20, next.Load()>>20)
	for stage, peak := range peaks() {
		t.Logf("%-9s at most %d MiB resident", stage, peak>>20)
		if most := mostResident(stage); peak > most {
			t.Errorf("%s had %.1f MiB resident, at most %d are allowed", stage, float64(peak)/(1<<20), most>>20)
		}
	}
	body, err := client.Content(t.Context(), j.Identifiers.Primary, 1, "producer/large.bin")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got := sha256.New()
	if n, err := io.Copy(got, body); err != nil || n != size ||
		hex.EncodeToString(got.Sum(nil)) != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%d bytes came back, %v", n, err)
	}
}
