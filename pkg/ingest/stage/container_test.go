package stage_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// deposits is a source of containers, by path. It counts how often each was sent.
type deposits struct {
	*twins
	files map[string][]byte
	asked atomic.Int64
}

func newDeposits(t *testing.T) *deposits {
	d := &deposits{twins: newTwins(t), files: map[string][]byte{}}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := d.files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if r.Method == http.MethodGet {
			d.asked.Add(1)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(source.Close)
	d.Source = source
	return d
}

// zipped packs files into a zip file.
func zipped(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to, _ := w.Create(name)
		_, _ = io.WriteString(to, files[name])
	}
	_ = w.Close()
	return b.Bytes()
}

// tarred packs files into a tar.gz file.
func tarred(files map[string]string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_ = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(files[name])), Mode: 0o644})
		_, _ = io.WriteString(w, files[name])
	}
	_ = w.Close()
	_ = z.Close()
	return b.Bytes()
}

// send submits a container under a name, and returns its job as it ended.
func (d *deposits) send(name string, data []byte, how ...func(*ingest.Batch)) *queue.Job {
	d.Helper()
	d.files["/"+name] = data
	how = append([]func(*ingest.Batch){func(b *ingest.Batch) {
		b.Payload.Type, b.LocalIDs = "", []string{name}
	}}, how...)
	return d.Job(d.Submit(name, how...))
}

// stored are the files of a job's version, and their content.
func (d *deposits) stored(j *queue.Job) (map[string]aip.Entry, map[string]string) {
	d.Helper()
	if j.State != ingest.Completed {
		d.Fatalf("%s is %s: %s", j.ID, j.State, j.Message)
	}

	obj, err := d.Stages.Root.Head(d.Context(), j.Primary)
	if err != nil {
		d.Fatal(err)
	}

	files, content := map[string]aip.Entry{}, map[string]string{}
	version := aip.Head(d.Stages.Root, obj)
	err = version.Each(d.Context(), 0, func(e aip.Entry, _ int64) error {
		name := strings.TrimPrefix(e.Path, "producer/")
		key, err := version.Content(d.Context(), e.Path)
		if err != nil {
			return err
		}
		data, _, err := d.Stages.Root.Bucket.Read(d.Context(), key)
		sum := sha256.Sum256(data)
		if err != nil || hex.EncodeToString(sum[:]) != e.Digests["sha256"] {
			d.Errorf("%s: %v: its digest is not that of its content", name, err)
		}
		files[name], content[name] = e, string(data)
		return nil
	})
	if err != nil {
		d.Fatal(err)
	}
	return files, content
}

// holds fails unless a job's version has these files.
func (d *deposits) holds(j *queue.Job, want map[string]string) map[string]aip.Entry {
	d.Helper()
	files, content := d.stored(j)
	if !maps.Equal(content, want) {
		d.Fatalf("%s has %d files; expected %d: %.300v", j.ID, len(content), len(want),
			slices.Sorted(maps.Keys(content)))
	}
	return files
}

// premis is the PREMIS document of a job's object.
func (d *deposits) premis(j *queue.Job) string {
	d.Helper()
	obj, err := d.Stages.Root.Head(d.Context(), j.Primary)
	if err != nil {
		d.Fatal(err)
	}
	body, err := d.Stages.Root.Open(d.Context(), obj, obj.Head, "system/premis.xml", 0)
	if err != nil {
		d.Fatal(err)
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

var letters = map[string]string{"letters/1.txt": "Dear Anna", "letters/empty.txt": "",
	"letters/Zürich.txt": "Dear Bert"}

// TestContainers: the files of a container become those of the object, whatever the kind.
func TestContainers(t *testing.T) {
	d := newDeposits(t)
	for name, data := range map[string][]byte{"a.zip": zipped(letters), "b.tar.gz": tarred(letters),
		"c.tgz": tarred(letters)} {
		j := d.send(name, data)
		files := d.holds(j, letters)
		sum := sha256.Sum256(data)
		if c := j.Unpacked; c == nil || c.Name != name || c.Bytes != int64(len(data)) ||
			c.SHA256 != hex.EncodeToString(sum[:]) || j.Files != 3 || j.Bytes != 18 || !j.SizeKnown {
			t.Errorf("%s: %+v, %d files of %d bytes", name, c, j.Files, j.Bytes)
		}
		if e := files["letters/Zürich.txt"]; e.URL != d.Source.URL+"/"+name+"#letters/Z%C3%BCrich.txt" ||
			e.MediaType != "text/plain" {
			t.Errorf("%s: %+v", name, e)
		}

		for _, says := range []string{">unpacking<", "Files unpacked from the container: 3", "is not kept"} {
			if !strings.Contains(d.premis(j), says) {
				t.Errorf("%s: the PREMIS document has no %q", name, says)
			}
		}
	}

	// The same again is no new version, whatever it is packed by.
	j := d.send("a.zip", tarred(letters), func(b *ingest.Batch) { b.Payload.Type = ingest.TypeContainer })
	if j.State != ingest.Completed || !j.NoChange {
		t.Errorf("the same files in another container: %s, no change %v: %s", j.State, j.NoChange, j.Message)
	}
}

// TestContainerNames: names that are unusual in manifests, URLs and XML stay as they are; the source of each file is
// an address.
func TestContainerNames(t *testing.T) {
	d := newDeposits(t)
	want := map[string]string{"a|b.txt": "1", `q"uote<&>.txt`: "2", "ha#sh?q.txt": "3", "per%7Ccent %20.txt": "4",
		"{b}^`.txt": "5", "]]>.txt": "6"}
	for name, data := range map[string][]byte{"a.tgz": tarred(want), "b.zip": zipped(want)} {
		for path, e := range d.holds(d.send(name, data), want) {
			at, err := url.Parse(e.URL)
			if err != nil || at.Fragment != path || strings.ContainsAny(e.URL, "|\"<> ") {
				t.Errorf("%s: the source of %q is %s, %v", name, path, e.URL, err)
			}
		}
	}
}

// interrupted lets workers die at one of so many requests, and their time be up at one of so many looks at the clock,
// some times each. What it returns drives a job until it is Completed, and fails if nothing was interrupted.
func (d *deposits) interrupted(seed, requests, looks int64) func(*queue.Job) *queue.Job {
	var calls, refused, stopped, asked atomic.Int64
	d.S3.Before = func(_, key string) int {
		n := calls.Add(1)
		if strings.HasPrefix(key, "work/jobs/") && (n*7+seed)%requests == 0 && refused.Add(1) < 8 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	var later time.Duration
	now := func() time.Time { return time.Now().Add(later) }
	d.Machine.Queue.Now, d.Machine.Scheduler.Leases.Now = now, now
	d.Stages.Now = func() time.Time {
		if n := asked.Add(1); (n+seed)%looks == 0 && stopped.Add(1) < 8 {
			return now().Add(time.Hour)
		}
		return now()
	}

	return func(j *queue.Job) *queue.Job {
		d.Helper()
		for range 20 { // tries that failed wait for their time
			j = d.Job(j.ID)
			if j.State == ingest.Completed {
				break
			}
			later += time.Hour
			d.Drive()
		}
		if refused.Load() == 0 || stopped.Load() == 0 {
			d.Errorf("seed %d: %d requests refused, %d tries stopped", seed, refused.Load(), stopped.Load())
		}
		return j
	}
}

// TestContainerGoesOn: workers die at any request, and their time is up at any moment. The container is asked for once,
// and all files are there.
func TestContainerGoesOn(t *testing.T) {
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 28))
		d := newDeposits(t)
		d.Stages.Work.Limits.Part = 5 << 20 // the least that S3 takes
		want := map[string]string{}
		for i := range 520 {
			want[fmt.Sprintf("folder/%d.txt", i)] = fmt.Sprint("file ", i)
		}
		noise := make([]byte, 1<<20)
		for i := range noise {
			noise[i] = byte(r.IntN(8)) // so that it is packed
		}
		want["folder/300.bin"] = strings.Repeat(string(noise), 12) // several parts

		data := zipped(want)
		name := "a.zip"
		if seed%2 == 1 {
			data, name = tarred(want), "a.tgz"
		}

		goOn := d.interrupted(int64(seed), 97, 211)
		j := goOn(d.send(name, data))
		d.holds(j, want)
		if d.asked.Load() > 3 { // the type is detected twice
			t.Errorf("seed %d: the container was asked for %d times", seed, d.asked.Load())
		}
	}
}

// TestContainerUploadIsGone: an upload that another worker has completed, or that was removed, is begun again; one
// whose worker died after it was completed is not.
func TestContainerUploadIsGone(t *testing.T) {
	want := map[string]string{"a.txt": "a", "b.bin": strings.Repeat("0123456789abcdef", 20<<16), "c.txt": "c"}
	for name, data := range map[string][]byte{"a.zip": zipped(want), "a.tgz": tarred(want)} {
		for _, way := range []string{"removed", "completed"} {
			d := newDeposits(t)
			d.Stages.Work.Limits.Part = 5 << 20
			later, parts, did := time.Duration(0), 0, 0
			now := func() time.Time { return time.Now().Add(later) }
			d.Machine.Queue.Now, d.Machine.Scheduler.Leases.Now, d.Stages.Now = now, now, now
			d.S3.Before = func(op, key string) int {
				switch {
				case op == "UploadPart" && strings.HasSuffix(key, "files/000001"):
					parts++
					if way != "removed" || parts != 3 {
						return 0
					}
					did++
					job, _, _ := strings.Cut(strings.TrimPrefix(key, "work/jobs/"), "/")
					u, err := d.Stages.Work.Unpacking(t.Context(), job)
					if err == nil {
						err = d.Stages.Work.Abort(t.Context(), u.Upload)
					}
					if err != nil {
						t.Error(err)
					}
				case strings.Contains(key, "/ledger/") && way == "completed" && parts == 4 && did == 0:
					did++ // the first request after the file was completed
					return http.StatusServiceUnavailable
				}
				return 0
			}
			j := d.send(name, data)
			for range 20 {
				if d.Job(j.ID).State == ingest.Completed {
					break
				}
				later += 4 * time.Minute
				d.Drive()
			}
			d.holds(d.Job(j.ID), want)
			if did != 1 || way == "completed" && parts != 4 || way == "removed" && parts != 7 {
				t.Errorf("%s: %s: %d parts, %d times", name, way, parts, did)
			}
		}
	}
}

// TestContainerOfAnotherTry: two tries that received different content unpack the one that was received first.
func TestContainerOfAnotherTry(t *testing.T) {
	d := newDeposits(t)
	other := zipped(map[string]string{"other.txt": "of the other try"})
	once := false
	d.S3.Before = func(op, key string) int {
		if once || !strings.HasSuffix(key, "/unpacking.json") || op != "PUT object" {
			return 0
		}
		once = true
		job, _, _ := strings.Cut(strings.TrimPrefix(key, "work/jobs/"), "/")
		at := workspace.ContainerKey(job, "other-try")
		err := d.Stages.Work.Put(t.Context(), at, other, bucket.Condition{})
		info, headErr := d.Stages.Work.Head(t.Context(), at)
		sums := fetch.NewDigester()
		_, _ = sums.Write(other)
		file := ocfl.File{Path: "producer/a.zip", Size: int64(len(other)), Digests: sums.Sums(), Source: at}
		err = errors.Join(err, headErr, d.Stages.Work.BeginUnpacking(t.Context(), job, &workspace.Unpacking{
			Container: aip.Entry{File: file}, ETag: info.ETag, Kind: container.Zip}))
		if err != nil {
			t.Error(err)
		}
		return 0
	}
	d.holds(d.send("a.zip", zipped(letters)), map[string]string{"other.txt": "of the other try"})
	if !once {
		t.Error("there was no other try")
	}
}

// TestRefusedContainers: what cannot be unpacked fails for good, names the entry, and leaves nothing.
func TestRefusedContainers(t *testing.T) {
	d := newDeposits(t)
	link := func() []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: "link"}
		h.SetMode(fs.ModeSymlink | 0o777)
		to, _ := w.CreateHeader(h)
		_, _ = io.WriteString(to, "/etc/passwd")
		_ = w.Close()
		return b.Bytes()
	}
	evil := zipped(map[string]string{"a": "a", "../evil": "x"})
	as := func(kind string) func(*ingest.Batch) { return func(b *ingest.Batch) { b.Payload.Type = kind } }
	for i, row := range []struct {
		says string
		data []byte
		how  []func(*ingest.Batch)
	}{
		{`"../evil" of the container: its name has the path segment ".."`, evil, nil},
		{`"link" of the container: it is a symbolic link`, link(), nil},
		{"not a complete zip file", zipped(letters)[:200], nil},
		{"ends in the middle", tarred(letters)[:100], nil},
		{"the payload is no container", []byte("a text"), []func(*ingest.Batch){as(ingest.TypeContainer)}},
		{"the depositor's sha256 is", zipped(letters), []func(*ingest.Batch){func(b *ingest.Batch) {
			b.Payload.Algorithm, b.Payload.Digest = "sha256", strings.Repeat("0", 64)
		}}},
		{"bytes", zipped(letters), []func(*ingest.Batch){func(b *ingest.Batch) { b.Payload.Size = 5 }}},
	} {
		name := fmt.Sprintf("%d.zip", i)
		if i == 3 {
			name = "3.tgz"
		}
		j := d.send(name, row.data, row.how...)
		if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, row.says) {
			t.Errorf("%s: %s, for good %v: %s; expected %q", name, j.State, j.NotRecoverable, j.Message, row.says)
		}
	}
}

// TestKeptAsFile: a container that is submitted as a file is one, and its depositor is told.
func TestKeptAsFile(t *testing.T) {
	d := newDeposits(t)
	data := zipped(letters)
	j := d.send("a.zip", data, func(b *ingest.Batch) { b.Payload.Type = ingest.TypeFile })
	d.holds(j, map[string]string{"a.zip": string(data)})
	if j.Warned != 1 || !strings.Contains(fmt.Sprint(j.FileWarnings), "submit it with the type container") {
		t.Errorf("warnings: %v", j.FileWarnings)
	}
	j = d.send("a.docx", data)
	d.holds(j, map[string]string{"a.docx": string(data)})
	if strings.Contains(fmt.Sprint(j.FileWarnings), "type container") {
		t.Errorf("warnings of a document: %v", j.FileWarnings)
	}
}

// TestContainerProfile: a collection keeps containers, and has limits.
func TestContainerProfile(t *testing.T) {
	d := newDeposits(t)
	profile := func(p collection.Profile) {
		t.Helper()
		if err := d.Stages.Collections.Put(t.Context(), "bench", p,
			collection.By{Actor: "me"}, time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}

	profile(collection.Profile{Containers: &collection.Containers{Keep: true}})
	data := zipped(letters)
	all := maps.Clone(letters)
	all["a.zip"] = string(data)
	sum := sha256.Sum256(data)
	j := d.send("a.zip", data, func(b *ingest.Batch) {
		b.Payload.Algorithm, b.Payload.Digest = "sha256", hex.EncodeToString(sum[:])
	})
	d.holds(j, all)
	if !j.Unpacked.Kept || j.Unpacked.Verified != "sha256" || j.Files != 4 {
		t.Errorf("%+v, %d files", j.Unpacked, j.Files)
	}
	j = d.send("same", zipped(map[string]string{"same": "x"}), func(b *ingest.Batch) {
		b.Payload.Type = ingest.TypeContainer
	})
	d.Refused(j.ID, "the name of the container")

	profile(collection.Profile{Containers: &collection.Containers{MaxFiles: 2}})
	d.Refused(d.send("b.zip", data).ID, "more than 2 files")
	profile(collection.Profile{Containers: &collection.Containers{MaxBytes: 10}})
	d.Refused(d.send("c.tgz", tarred(letters)).ID, "more than 10 bytes together")
	profile(collection.Profile{RequireDigest: true})
	d.files["/d.zip"] = data
	b, err := d.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: d.Source.URL + "/d.zip", Filename: "d.zip"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	d.Drive()
	is, err := d.Machine.Queue.Batch(t.Context(), b.Batch.ID)
	if err != nil || is.State != ingest.BatchFailed || !strings.Contains(is.Message, "the container has no digest") {
		t.Errorf("without a digest: %v, %s: %s", err, is.State, is.Message)
	}
}

// TestEmptyFolders: folders without files are named; one whose files come before or behind it is none.
func TestEmptyFolders(t *testing.T) {
	d := newDeposits(t)
	packed := rawZip(entry{name: "empty/", mode: fs.ModeDir | 0o755}, entry{name: "./full/", mode: fs.ModeDir | 0o755},
		entry{name: "full/a", data: "x"}, entry{name: "full/deep/b", data: "x"},
		entry{name: "full/deep/", mode: fs.ModeDir | 0o755}, entry{name: "full/none/", mode: fs.ModeDir | 0o755})
	dir := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
	for name, data := range map[string][]byte{"a.zip": packed, "a.tar": rawTar(dir("./"), dir("empty/"), dir("./full/"),
		tar.Header{Name: "full/a", Size: 1}, tar.Header{Name: "full/deep/b", Size: 1}, dir("full/deep/"),
		dir("full/none/"))} {
		j := d.send(name, data)
		d.holds(j, map[string]string{"full/a": "x", "full/deep/b": "x"})
		want := []string{"container: folders without files are not kept: empty, full/none"}
		if !slices.Equal(j.FileWarnings, want) {
			t.Errorf("%s: %q", name, j.FileWarnings)
		}
	}
	if j := d.send("b.zip", zipped(letters)); len(j.FileWarnings) > 0 {
		t.Errorf("%q", j.FileWarnings)
	}
}

// TestContainerSpace: files that need more than the whole work space fail before they are unpacked, and can be
// requeued.
func TestContainerSpace(t *testing.T) {
	for name, data := range map[string][]byte{
		"a.zip": zipped(map[string]string{"a": strings.Repeat("text ", 1<<18)}),
		"a.tgz": tarred(map[string]string{"a": strings.Repeat("text ", 1<<18)}),
	} {
		d := newDeposits(t)
		d.Machine.Queue.Settings.Space = 1 << 20
		j := d.send(name, data)
		if j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "more than the whole space") {
			t.Errorf("%s: %s, for good %v: %s", name, j.State, j.NotRecoverable, j.Message)
		}
	}
}

// TestContainerBatch: each row of a manifest of containers becomes an object.
func TestContainerBatch(t *testing.T) {
	d := newDeposits(t)
	d.files["/a.zip"], d.files["/b.tgz"] = zipped(letters), tarred(map[string]string{"b.txt": "b"})
	sum := sha256.Sum256(d.files["/a.zip"])
	rows := []string{
		fmt.Sprintf("%s/a.zip | sha256 | %x | %d | | a.zip | | box-1 | Anna | Letters | 1851", d.Source.URL, sum,
			len(d.files["/a.zip"])),
		d.Source.URL + "/b.tgz | | | | | b.tgz | | box-2 | | Box two |",
		d.Source.URL + "/gone.zip | | | | | gone.zip | | box-3 | | |",
	}
	list := manifest("mrt-container-batch-manifest", batchFields, rows...)
	first := d.send("list.txt", []byte(list), func(b *ingest.Batch) { b.LocalIDs = nil })
	jobs, err := d.Machine.Queue.Jobs(t.Context(), first.Batch, 0)
	if err != nil || len(jobs) != 3 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	d.holds(&jobs[0], letters)
	d.holds(&jobs[1], map[string]string{"b.txt": "b"})
	if j := jobs[0]; j.What != "Letters" || j.Who != "Anna" || !slices.Equal(j.LocalIDs, []string{"box-1"}) ||
		j.Unpacked.Verified != "sha256" {
		t.Errorf("%+v", j.Job)
	}
	if j := jobs[2]; j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "404") {
		t.Errorf("%s: %s", j.State, j.Message)
	}
}
