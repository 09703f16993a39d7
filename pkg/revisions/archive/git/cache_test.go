package git

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive/archivetest"
)

// TestDamagedCache: whatever happens to the files of the cache, the answers are right.
func TestDamagedCache(t *testing.T) {
	folder := imported(t, numbered(30))
	served, _ := overHTTPOf(t, folder)
	run(t, folder, "", "gc", "-q")
	inBucket, _ := inBucketOf(t, folder)
	for name, s := range map[string]*Source{"HTTP": served, "Bucket": inBucket} {
		head(t, s, 30)
		var files []string
		_ = filepath.WalkDir(s.folder.path, func(path string, d os.DirEntry, _ error) error {
			if d.Type().IsRegular() {
				files = append(files, path)
			}
			return nil
		})
		if len(files) < 4 {
			t.Fatalf("%s: the cache has %v", name, files)
		}
		for _, file := range files {
			for _, how := range []string{"removed", "emptied", "cut", "changed"} {
				damage(t, file, how)
				for n := int64(1); n <= 30; n += 29 {
					archivetest.CheckCheckout(t, s, n, numbered(30)[n-1].Files)
					if got := message(t, s, n); got != fmt.Sprint(n) {
						t.Errorf("%s: %s %s: revision %d is %q", name, file, how, n, got)
					}
				}
				head(t, s, 30)
			}
		}
	}
}

// damage damages a file, if it is there.
func damage(t *testing.T, file, how string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		return // the cache was made anew, with files of other names
	}
	_ = os.Chmod(file, 0o600)
	switch how {
	case "removed":
		err = os.Remove(file)
	case "emptied":
		err = os.WriteFile(file, nil, 0o600)
	case "cut":
		err = os.WriteFile(file, data[:len(data)/2], 0o600)
	default:
		for i := range data {
			data[i] ^= 0x5a
		}
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamagedRepository: a repository that is damaged itself is an Invalid that says so.
func TestDamagedRepository(t *testing.T) {
	folder := imported(t, numbered(3))
	run(t, folder, "", "gc", "-q")
	packs, err := filepath.Glob(folder + "/objects/pack/*.pack")
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	damage(t, packs[0], "cut")
	inBucket, _ := inBucketOf(t, folder)
	for _, s := range []*Source{open(t, deps(t), "file://"+folder), inBucket} {
		_, err := s.Head(t.Context())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s: %v", s.location, err)
		}
	}
	served, _ := overHTTPOf(t, folder)
	if _, err := served.Head(t.Context()); fault.Of(err) == "" {
		t.Errorf("a server that cannot read its repository: %v", err)
	}
}

// TestBounded: a cache keeps what was used last, and refuses what is too large.
func TestBounded(t *testing.T) {
	d := deps(t)
	var urls []string
	for range 3 {
		history := numbered(2)
		noise := make([]byte, 100_000)
		for i := 0; i+8 <= len(noise); i += 8 { // not compressible
			binary.LittleEndian.PutUint64(noise[i:], uint64(i+len(urls))*0x9E3779B97F4A7C15)
		}
		history[1].Files["noise"] = archivetest.Text(string(noise))
		folder := imported(t, history)
		urls = append(urls, serve(t, filepath.Dir(folder), "", "").URL+"/maps.git")
	}
	d.Most = 250_000
	for _, url := range urls {
		head(t, open(t, d, url), 2)
		time.Sleep(20 * time.Millisecond) // times of files
	}
	if got := size(d.Cache); got > d.Most {
		t.Errorf("the cache has %d bytes; the most are %d", got, d.Most)
	}
	if got := open(t, d, urls[0]); size(got.folder.path) > 0 {
		t.Error("what was used first is still there")
	}
	d.Most = 50_000
	d.Cache = t.TempDir()
	_, err := open(t, d, urls[0]).Head(t.Context())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "more than 50000 bytes") {
		t.Errorf("a repository that is too large: %v", err)
	}
}

// TestTogether: invocations that use one cache at the same time do not disturb each other.
func TestTogether(t *testing.T) {
	folder := imported(t, numbered(50))
	s, _ := overHTTPOf(t, folder)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			own := open(t, s.deps, s.location.URL)
			n := int64(i*6 + 1)
			r, err := own.Revision(t.Context(), n)
			if err != nil || strings.TrimSpace(r.Message) != fmt.Sprint(n) {
				t.Errorf("revision %d is %+v, %v", n, r, err)
			}
			archivetest.CheckCheckout(t, own, n, numbered(50)[n-1].Files)
		})
	}
	all.Wait()
}
