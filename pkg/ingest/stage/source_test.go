package stage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/formats"
)

// guarded are deposits whose source wants a token, with a bucket from which objects may be submitted.
func guarded(t *testing.T) *deposits {
	d := newDeposits(t)
	open := d.Source.Config.Handler
	d.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	})
	other := d.Stages.Work.Bucket
	d.Stages.S3 = func(name string) http.RoundTripper { return bucket.Bucket{Client: other.Client, Name: name} }
	d.Stages.Collections.Plain, d.Stages.Collections.Buckets = true, []string{"digitisation"}
	d.Stages.Secret = func(context.Context, string) (string, error) {
		return `{"host": "127.0.0.1", "token": "` + secret + `"}`, nil
	}
	return d
}

func (d *deposits) sources(s *collection.Sources) {
	d.Helper()
	p := collection.Profile{Sources: s}
	if err := d.Stages.Collections.Put(d.Context(), "bench", p,
		collection.By{Actor: "me"}, time.Now().UnixMilli()); err != nil {
		d.Fatal(err)
	}
}

// submit submits a payload, and returns its batch when nothing is to be done any more.
func (d *deposits) submit(p ingest.Payload, how ...func(*ingest.Batch)) ingest.Batch {
	d.Helper()
	in := ingest.Batch{Collection: "bench", Mode: "add", Payload: p}
	for _, f := range how {
		f(&in)
	}
	b, err := d.Machine.Queue.Submit(d.Context(), in, "", nil, "me")
	if err != nil {
		d.Fatal(err)
	}
	d.Drive()
	is, err := d.Machine.Queue.Batch(d.Context(), b.Batch.ID)
	if err != nil {
		d.Fatal(err)
	}
	return is.Batch
}

// TestSources: manifests and files are fetched with the secret of their host, and from buckets; the secret does not
// stay anywhere; what the profile does not allow is refused by its line, or when it is fetched.
func TestSources(t *testing.T) {
	d := guarded(t)
	of := []collection.Credential{{Host: "127.0.0.1", Secret: "archivist/sources/a"}}
	d.sources(&collection.Sources{Credentials: of, Buckets: []string{"digitisation"}})
	from := bucket.Bucket{Client: d.Stages.Work.Bucket.Client, Name: "digitisation", Limits: bucket.DefaultLimits}
	if err := from.Put(t.Context(), "b c.txt", []byte("of the bucket"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	d.files["/a.txt"] = []byte("of the server")
	d.files["/object.checkm"] = []byte(manifest("mrt-ingest-manifest", fileFields,
		d.Source.URL+"/a.txt | | | | | a.txt |",
		"s3://digitisation/b%20c.txt | | | | | |"))
	d.files["/batch.checkm"] = []byte(manifest("mrt-batch-manifest", batchFields,
		d.Source.URL+"/object.checkm | | | | | o.checkm | | a1 | | |"))
	b := d.submit(ingest.Payload{URL: d.Source.URL + "/batch.checkm", Type: ingest.TypeBatchManifest, Filename: "b"})
	j, err := d.Machine.Queue.Job(t.Context(), ingest.JobID(b.ID, 1))
	if err != nil || j.State != ingest.Completed {
		t.Fatalf("%v, %s: %s", err, j.State, j.Message)
	}
	d.holds(j, map[string]string{"a.txt": "of the server", "b c.txt": "of the bucket"})
	if kept := d.kept(); len(kept) > 0 {
		t.Errorf("the secret is in %v", kept)
	}

	d.sources(&collection.Sources{Credentials: of, Deny: []string{"*.example.org"}})
	d.files["/object.checkm"] = []byte(manifest("mrt-ingest-manifest", fileFields,
		"https://a.example.org/a | | | | | a |",
		d.Source.URL+"/a.txt | | | | | b |", "s3://digitisation/c | | | | | c |"))
	b = d.submit(ingest.Payload{URL: d.Source.URL + "/object.checkm", Type: ingest.TypeObjectManifest, Filename: "o"})
	d.Refused(ingest.JobID(b.ID, 1), "line 5")
	d.Refused(ingest.JobID(b.ID, 1), "the host a.example.org is one from which the collection takes no content")
	d.Refused(ingest.JobID(b.ID, 1), "line 7")
}

// TestSecretOfSource: which failure of a secret is told, and that only what a person can correct fails the job.
func TestSecretOfSource(t *testing.T) {
	d := guarded(t)
	d.files["/a.txt"] = []byte("x")
	of := func(host string) *collection.Sources {
		return &collection.Sources{Credentials: []collection.Credential{{Host: host, Secret: "archivist/sources/a"}}}
	}
	d.sources(of("127.0.0.1"))
	for name, c := range map[string]struct {
		secret string
		err    error
		plain  bool
		says   string
	}{
		"missing": {err: fault.New(fault.NotFound, "there is no such secret"), plain: true,
			says: "there is no such secret"},
		"of another":   {secret: `{"host": "example.org", "token": "T"}`, plain: true, says: "for another host"},
		"not by https": {secret: `{"host": "127.0.0.1", "token": "T"}`, says: "by https only"},
	} {
		t.Run(name, func(t *testing.T) {
			d.Stages.Secret = func(context.Context, string) (string, error) { return c.secret, c.err }
			d.Stages.Collections.Plain = c.plain
			b := d.submit(ingest.Payload{URL: d.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"})
			j, err := d.Machine.Queue.Job(t.Context(), ingest.JobID(b.ID, 1))
			if err != nil || j.State != ingest.Failed || !strings.Contains(j.Message, "requeue") ||
				!strings.Contains(j.Message, c.says) ||
				!strings.Contains(j.Message, "127.0.0.1") {
				t.Errorf("%v, %s: %s", err, j.State, j.Message)
			}
		})
	}

	d.Stages.Collections.Plain = true
	n := 0
	d.Stages.Secret = func(context.Context, string) (string, error) {
		n++
		if n < 12 {
			return "", errors.New("throttled")
		}
		return `{"host": "127.0.0.1", "token": "` + secret + `"}`, nil
	}
	now := time.Now()
	d.clock(&now)
	b := d.submit(ingest.Payload{URL: d.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"})
	id := ingest.JobID(b.ID, 1)
	for range 3 {
		if is := d.Job(id); is.State == ingest.Failed || n < 12 && !strings.Contains(is.Message, "throttled") {
			t.Errorf("a secret that cannot be read now: %s: %s", is.State, is.Message)
		}
		now = now.Add(time.Hour)
		d.Drive()
	}
	if is := d.Job(id); is.State != ingest.Completed {
		t.Errorf("a secret that could not be read for a while: %s: %s", is.State, is.Message)
	}
}

// TestFormatPolicy: a file whose format the collection refuses fails its job before anything is stored, also inside of
// a container; one that it does not recommend is stored with a warning; one that cannot be identified has no known
// format.
func TestFormatPolicy(t *testing.T) {
	d := newDeposits(t)
	d.Stages.Identify = func(_ context.Context, name string, _ io.ReaderAt, _ int64) ([]formats.Match, error) {
		switch path.Ext(name) {
		case ".exe":
			return []formats.Match{{ID: "fmt/899", Name: "Windows Portable Executable"}}, nil
		case ".bad":
			panic("a file that the library cannot read")
		}
		return []formats.Match{{ID: "x-fmt/111", MediaType: "text/plain"}}, nil
	}
	policy := func(f *collection.Formats) {
		t.Helper()
		if err := d.Stages.Collections.Put(t.Context(), "bench", collection.Profile{Formats: f},
			collection.By{Actor: "me"},
			time.Now().UnixMilli()); err != nil {
			t.Fatal(err)
		}
	}
	of := func(names ...string) map[string]string {
		files := map[string]string{}
		for _, name := range names {
			files[name] = "content of " + name
		}
		return files
	}

	policy(&collection.Formats{Refuse: []string{"fmt/899"}, Warn: []string{formats.Unknown}})
	const why = "its format is Windows Portable Executable (fmt/899), which the collection refuses"
	d.Refused(d.send("a.zip", zipped(of("a.txt", "b.exe", "c.txt"))).ID, "b.exe")
	d.Refused(d.send("b.zip", zipped(of("a.txt", "b.exe"))).ID, why)
	d.Refused(d.send("c.tgz", tarred(of("a.exe"))).ID, why)
	d.files["/one.exe"] = []byte("x")
	b := d.submit(ingest.Payload{URL: d.Source.URL + "/one.exe", Type: ingest.TypeFile, Filename: "one.exe"})
	d.Refused(ingest.JobID(b.ID, 1), "file one.exe: "+why)
	j := d.send("d.zip", zipped(of("a.txt", "b.bad")))
	d.holds(j, of("a.txt", "b.bad"))
	if w := j.FileWarnings; len(w) != 1 || !strings.Contains(w[0], "b.bad") ||
		!strings.Contains(w[0], "not known (UNKNOWN), which the collection does not recommend") {
		t.Errorf("the warnings are %q", w)
	}

	policy(&collection.Formats{Accept: []string{"text/*"}, Others: collection.Refused})
	now := time.Now()
	d.clock(&now)
	identify, fails := d.Stages.Identify, true
	d.Stages.Identify = func(ctx context.Context, name string, in io.ReaderAt, size int64) ([]formats.Match, error) {
		if fails {
			return nil, errors.New("s3: throttled")
		}
		return identify(ctx, name, in, size)
	}
	j = d.send("0.zip", zipped(of("a.txt")))
	if j.State != ingest.Downloading || !strings.Contains(j.Message, "could not be identified: s3: throttled") {
		t.Errorf("%s: %s", j.State, j.Message)
	}
	fails, now = false, now.Add(time.Hour)
	d.Drive()
	d.holds(d.Job(j.ID), of("a.txt"))
	d.Refused(d.send("e.zip", zipped(of("a.txt", "b.bad"))).ID, "not known (UNKNOWN), which the collection refuses")
	d.holds(d.send("f.zip", zipped(of("a.txt"))), of("a.txt"))
}
