package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// inOrder is an object that several clients submit, one after another.
type inOrder struct {
	mu    sync.Mutex
	local []string
	jobs  []string // in the order in which they were accepted
}

// TestOrderOfSubmissions: 8 clients submit 30 objects 300 times, by whatever of their identifiers, alone or in a
// manifest; each object's versions are in the order in which the submissions were accepted, and none fails as
// overtaken.
func TestOrderOfSubmissions(t *testing.T) {
	begin(t)
	const clients, objects, each = 8, 30, 10
	src := newSource(t)
	all := make([]inOrder, objects)
	for i := range all {
		all[i].local = []string{fmt.Sprintf("order-%d-a", i), fmt.Sprintf("order-%d-b", i)}
	}
	turns := make(chan int, objects*each)
	for _, n := range rand.Perm(objects * each) {
		turns <- n
	}
	close(turns)
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for n := range turns {
				url := src.put(fmt.Sprintf("/order/%d.txt", n), fmt.Appendf(nil, "content %d", n))
				if err := all[n%objects].submit(t, src, url); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	for i := range all {
		all[i].check(t)
	}
}

// submit submits the object once more, by some of its identifiers: its ARK, once that is known, or a local id. The
// first submission has both local ids. Some are rows of a manifest, whose objects are not known before it is read.
func (o *inOrder) submit(t *testing.T, src *source, url string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := v1.Identifiers{Local: o.local}
	if len(o.jobs) > 0 {
		job, err := client.Job(t.Context(), o.jobs[0])
		if err != nil && !fault.Is(err, fault.NotFound) { // it may not be unpacked yet
			return err
		}
		ids.Local = o.local[:1]
		if len(o.jobs)%4 == 3 {
			return o.list(t, src, url)
		}
		switch ark := job.Identifiers.Primary; rand.IntN(3) {
		case 0:
			ids.Local = o.local[1:]
		case 1:
			if ark != "" {
				ids = v1.Identifiers{Primary: ark}
			}
		}
	}
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "e2e", Submitter: t.Name(), Identifiers: &ids,
		Payload: v1.Payload{URL: url, Type: "file"}}, "")
	if err == nil {
		o.jobs = append(o.jobs, ingest.JobID(b.ID, 1))
	}
	return err
}

// list submits the object as the second row of a manifest.
func (o *inOrder) list(t *testing.T, src *source, url string) error {
	rows := []checkm.Row{
		{URL: url, Name: "other.txt", Size: -1},
		{URL: url, Name: "a.txt", Local: o.local[:1], Size: -1},
	}
	list := src.list(t, url[strings.LastIndexByte(url, '/'):]+".checkm", "mrt-single-file-batch-manifest", rows...)
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "e2e", Submitter: t.Name(),
		Payload: v1.Payload{URL: list, Type: ingest.TypeSingleFileBatch}}, "")
	if err == nil {
		o.jobs = append(o.jobs, ingest.JobID(b.ID, 2))
	}
	return err
}

// check compares the object's versions with what was accepted.
func (o *inOrder) check(t *testing.T) {
	t.Helper()
	var ark string
	for _, id := range o.jobs {
		until(t, "job "+id+" is Completed", 2*soon, func() bool {
			job := jobOf(t, id)
			if job.State == string(ingest.Failed) {
				t.Fatalf("job %s is Failed: %s", id, job.Message)
			}
			ark = job.Identifiers.Primary
			return job.State == string(ingest.Completed)
		})
	}
	versions, err := client.Versions(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	var stored []string
	for _, v := range versions {
		stored = append(stored, v.Job)
	}
	if !slices.Equal(stored, o.jobs) {
		t.Errorf("%s: accepted were\n%v, stored are\n%v", ark, o.jobs, stored)
	}
}
