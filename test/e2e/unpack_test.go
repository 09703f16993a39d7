package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
)

// TestKilledUnpackingGoesOn: a container whose function is killed some times while it unpacks is downloaded once,
// and all of its files are there. With -gigabyte it has 50,000 files and 2 GiB.
func TestKilledUnpackingGoesOn(t *testing.T) {
	begin(t)
	files, size, most, patience := 2100, 10_000, 2, soon
	if *gigabyte {
		files, size, most, patience = 50_000, 43_000, 3, 40*time.Minute
	}
	path := filepath.Join(t.TempDir(), "deposit.zip")
	sums := packed(t, path, files, size)
	peaks := watchMemory(t)
	var sent atomic.Int64
	src := newSource(t)
	src.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.Header.Get("Range") != "bytes=0-0" {
			sent.Add(1)
		}
		http.ServeFile(w, r, path)
	})

	began := time.Now()
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "e2e", Payload: v1.Payload{
		URL: src.URL + "/deposit.zip", Type: "container"}}, "unpack")
	if err != nil {
		t.Fatal(err)
	}
	job := ingest.JobID(b.ID, 1)
	kills := killWhileUnpacking(t, job, (files+workspace.SegmentFiles-1)/workspace.SegmentFiles, most, patience)
	j := ends(t, job, "Completed", patience)
	if sent.Load() != 1 {
		t.Errorf("the container was sent %d times", sent.Load())
	}
	t.Logf("%d files in %.0f s, with %d kills", files, time.Since(began).Seconds(), kills)
	for stage, peak := range peaks() {
		t.Logf("%-9s at most %d MiB resident", stage, peak>>20)
		most := mostResident(stage)
		if stage == "download" {
			most += 128 << 20 // the directory of the zip file, and the names; the function has 512 MB
		}
		if peak > most {
			t.Errorf("%s had %.1f MiB resident, at most %d are allowed", stage, float64(peak)/(1<<20), most>>20)
		}
	}

	all, err := client.Files(t.Context(), j.Identifiers.Primary, 1)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, f := range all {
		if sums[f.Path] == f.Digests["sha256"] && sums[f.Path] != "" {
			same++
		}
	}
	if same != files {
		t.Errorf("%d of %d files are as they were packed", same, files)
	}
}

// killWhileUnpacking kills the function up to so many times, each time after it has written more of the ledger, which
// has a number of segments when all is unpacked. On a machine that is late, some of the ledger may be passed; the first
// kill must come before all is there.
func killWhileUnpacking(t *testing.T, job string, segments, most int, patience time.Duration) (kills int) {
	t.Helper()
	before := 0
	until(t, "the function has unpacked a part", patience, func() bool {
		n := unpacked(t, job)
		if n > before && n < segments && n >= (kills+1)*segments/(most+1) && killFunctions(t) > 0 {
			kills, before = kills+1, n
		}
		return kills == most || n >= segments || v1.Ended(jobOf(t, job).State)
	})
	if kills == 0 {
		t.Error("all was unpacked before the function could be killed")
	}
	return kills
}

// packed writes a zip file, and returns the sha256 of each of its files by its path in the version. Half of each file
// can be compressed.
func packed(t *testing.T, path string, files, size int) map[string]string {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, sums, rnd := zip.NewWriter(out), map[string]string{}, rand.NewChaCha8([32]byte{28})
	data := make([]byte, size)
	for i := range files {
		_, _ = rnd.Read(data[:size/2])
		name := fmt.Sprintf("folder-%03d/file-%05d.bin", i%300, i)
		to, err := w.Create(name)
		if err == nil {
			_, err = to.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		sums["producer/"+name] = hex.EncodeToString(sum[:])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return sums
}

// unpacked is how many segments of a job's ledger are written.
func unpacked(t *testing.T, job string) int {
	t.Helper()
	got, err := buckets().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &out.WorkBucket,
		Prefix: aws.String(workspace.Prefix(job) + "ledger/")})
	if err != nil {
		t.Fatal(err)
	}
	return len(got.Contents)
}
