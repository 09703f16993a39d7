package stage_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue/queuetest"
)

// holed takes files of the payload out of a bag, and lists them in fetch.txt. They are served.
func (d *deposits) holed(bag map[string]string, taken func(name string) bool) map[string]string {
	holed := maps.Clone(bag)
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bag)) {
		root, in, payload := strings.Cut(name, "data/")
		if !payload || !taken(in) {
			continue
		}
		at := "/elsewhere/" + strings.ReplaceAll(in, "/", "-")
		d.files[at] = []byte(bag[name])
		delete(holed, name)
		size := "-"
		if len(in)%2 == 0 {
			size = fmt.Sprint(len(bag[name]))
		}
		fmt.Fprintf(&list, "%s%s %s data/%s\n", d.Source.URL, at, size, in)
		holed[root+"fetch.txt"], bag[root+"fetch.txt"] = list.String(), list.String()
	}
	return holed
}

// TestBagFetch: the files of a bag that are elsewhere are fetched, and become files of the object as the others do.
func TestBagFetch(t *testing.T) {
	d := newDeposits(t)
	// More than a segment of the ledger; all of the payload, or a part, or what is kept beside it.
	many := map[string]string{}
	for i := range 650 {
		many[fmt.Sprintf("%d.txt", i)] = fmt.Sprint("file ", i)
	}
	for name, bag := range map[string]map[string]string{"a.zip": bagged("delivery/", letters),
		"b.tgz": bagged("", many), "c.zip": bagged("", many)} {
		holed := d.holed(bag, func(in string) bool { return !strings.HasSuffix(in, "7.txt") })
		data := zipped(holed)
		if name == "b.tgz" {
			data = tarred(holed)
		}
		j := d.send(name, data)
		files := d.holds(j, bag)
		if b := j.Unpacked.Bag; b == nil || j.Files != len(bag) || j.Checked != b.Files || len(j.FileWarnings) > 0 {
			t.Errorf("%s: %+v, %d files: %v", name, b, j.Files, j.FileWarnings)
		}
		elsewhere := len(bag) - len(holed)
		says := fmt.Sprintf("in its fetch.txt: %d.", elsewhere)
		inside := fmt.Sprintf("Files unpacked from the container: %d.", len(holed))
		text := d.premis(j)
		if j.Unpacked.Fetched != elsewhere || !strings.Contains(text, says) || !strings.Contains(text, inside) {
			t.Errorf("%s: %d of %d files were fetched: %s", name, j.Unpacked.Fetched, elsewhere, text)
		}
		for path, e := range files {
			_, packed := holed[path]
			if len(e.Digests["md5"]) != 32 || packed == strings.HasPrefix(e.URL, d.Source.URL+"/elsewhere/") {
				t.Errorf("%s: %s: %+v", name, path, e)
			}
		}
	}
}

// TestBagFetchKeepsContainer: the container is a file of the object, but not one of the bag.
func TestBagFetchKeepsContainer(t *testing.T) {
	d := newDeposits(t)
	p := collection.Profile{Containers: &collection.Containers{Keep: true}}
	if err := d.Stages.Collections.Put(t.Context(), "bench", p,
		collection.By{Actor: "me"}, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	bag := bagged("delivery/", letters)
	data := zipped(d.holed(bag, func(in string) bool { return in == "letters/1.txt" }))
	j := d.send("a.zip", data)
	bag["a.zip"] = string(data)
	d.holds(j, bag)
	if j.Unpacked.Bag == nil || j.Unpacked.Bag.Files != len(letters) {
		t.Errorf("%+v", j.Unpacked.Bag)
	}
}

// TestBagFetchNames: of files that are fetched, too, the depositor is told which names some systems do not tell apart.
func TestBagFetchNames(t *testing.T) {
	d := newDeposits(t)
	bag := bagged("", map[string]string{"a.txt": "one", "A.txt": "two"})
	j := d.send("a.zip", zipped(d.holed(bag, func(in string) bool { return in == "A.txt" })))
	d.holds(j, bag)
	w := strings.Join(j.FileWarnings, "; ")
	if !strings.Contains(w, "data/A.txt: its name differs from another one in case") {
		t.Errorf("the warnings are %s", w)
	}
}

// TestBagFetchGoesOn: workers die at any request, and their time is up at any moment. All files are there.
func TestBagFetchGoesOn(t *testing.T) {
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 5))
		d := newDeposits(t)
		d.Stages.Work.Limits.Part = 5 << 20 // the least that S3 takes
		payload := map[string]string{}
		for i := range 700 {
			payload[fmt.Sprintf("%d.txt", i)] = fmt.Sprint("file ", i)
		}
		payload["300.bin"] = strings.Repeat("0123456789abcdef", 12<<16) // several parts
		bag := bagged("", payload)
		data := zipped(d.holed(bag, func(in string) bool { return r.IntN(4) > 0 || in == "300.bin" }))
		name := "a.zip"
		if seed%2 == 1 {
			data, name = tarred(d.holed(bag, func(in string) bool { return r.IntN(4) > 0 })), "a.tgz"
		}

		goOn := d.interrupted(int64(seed), 151, 397)
		d.holds(goOn(d.send(name, data)), bag)
	}
}

// TestBagFetchRefused: what fetch.txt names is judged before anything is fetched, and compared when it is there.
func TestBagFetchRefused(t *testing.T) {
	d := newDeposits(t)
	line := func(text string, args ...any) func(map[string]string) {
		return func(b map[string]string) {
			b["fetch.txt"] = fmt.Sprintf(text, args...)
		}
	}
	at := d.Source.URL
	for says, change := range map[string]func(bag map[string]string){
		"line 1 of fetch.txt: expected an http or https URL": line("ftp://example.org/1.txt - data/letters/1.txt\n"),
		"line 2 of fetch.txt: the URL has": line("\n%s/%s - data/letters/1.txt", at,
			strings.Repeat("x", 5000)),
		"line 1 of fetch.txt: the host denied.example is": line("http://denied.example/1.txt - data/letters/1.txt\n"),
		"its files have more than":                        line("%s/1 9000000000000000000 data/letters/1.txt", at),
		"found the length 99999999999999999999":           line("%s/1 99999999999999999999 data/letters/1.txt", at),
		"the depositor's sha512 is":                       line("%s/other - data/letters/1.txt", at),
	} {
		d.sources(&collection.Sources{Deny: []string{"denied.example"}})
		d.files["/other"] = []byte("of somebody else")
		bag := bagged("", letters)
		delete(bag, "data/letters/1.txt")
		change(bag)
		for kind, data := range map[string][]byte{"zip": zipped(bag), "tgz": tarred(bag)} {
			j := d.send(fmt.Sprintf("%d.%s", len(d.files), kind), data)
			if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, says) {
				t.Errorf("%s: %s: %s; expected %q", kind, j.State, j.Message, says)
			}
		}
	}
}

// TestBagFetchWaits: a source that does not answer now fails the job, and its requeue fetches what is not there.
func TestBagFetchWaits(t *testing.T) {
	d := newDeposits(t)
	open, down := d.Source.Config.Handler, true
	got := map[string]int{}
	d.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			got[r.URL.Path]++
		}
		if down && r.URL.Path == "/elsewhere/letters-1.txt" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		open.ServeHTTP(w, r)
	})
	bag := bagged("", letters)
	j := d.send("a.tgz", tarred(d.holed(bag, func(string) bool { return true })))
	if j.State != ingest.Failed || j.NotRecoverable || !strings.Contains(j.Message, "503") {
		t.Fatalf("%s: %s", j.State, j.Message)
	}
	down = false
	d.requeued(j.ID, queuetest.Requeue)
	d.holds(d.Job(j.ID), bag)
	if got["/a.tgz"] > 3 || got["/elsewhere/letters-Zürich.txt"] != 1 {
		t.Errorf("asked for: %v", got)
	}
}
