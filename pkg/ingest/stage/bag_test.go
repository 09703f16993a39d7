package stage_test

import (
	"crypto/md5"
	"crypto/sha512"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
)

// bagged makes a bag of files, in a folder, with manifests of md5 and sha512.
func bagged(folder string, files map[string]string) map[string]string {
	bag := map[string]string{"bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"}
	var info, fives, longs strings.Builder
	size := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		size += len(text)
		bag["data/"+name] = text
		fmt.Fprintf(&fives, "%x  data/%s\n", md5.Sum([]byte(text)), name)
		fmt.Fprintf(&longs, "%x  data/%s\n", sha512.Sum512([]byte(text)), name)
	}
	fmt.Fprintf(&info, "Source-Organization: The Library\nTitle: Letters of Anna\nPayload-Oxum: %d.%d\n", size,
		len(files))
	bag["bag-info.txt"], bag["manifest-md5.txt"] = info.String(), fives.String()
	bag["manifest-sha512.txt"] = longs.String()
	bag["tagmanifest-md5.txt"] = fmt.Sprintf("%x  bag-info.txt\n", md5.Sum([]byte(info.String())))
	in := map[string]string{}
	for name, text := range bag {
		in[folder+name] = text
	}
	return in
}

// TestBags: the files of a container that are a bag are validated, and describe the object.
func TestBags(t *testing.T) {
	d := newDeposits(t)
	for name, bag := range map[string]map[string]string{"a.zip": bagged("delivery/", letters),
		"b.tgz": bagged("", letters)} {
		data := zipped(bag)
		if name == "b.tgz" {
			data = tarred(bag)
		}
		j := d.send(name, data)
		files := d.holds(j, bag)
		both := []string{"md5", "sha512"}
		if b := j.Unpacked.Bag; b == nil || b.Version != "1.0" || !slices.Equal(b.Algorithms, both) ||
			b.Files != 3 || j.What != "Letters of Anna" || j.Who != "The Library" {
			t.Fatalf("%s: %+v; %s by %s", name, b, j.What, j.Who)
		}
		for path, e := range files {
			if len(e.Digests["md5"]) != 32 {
				t.Errorf("%s: the md5 of %s is not kept: %v", name, path, e.Digests)
			}
		}

		if !strings.Contains(d.premis(j), "a bag of BagIt 1.0") {
			t.Errorf("%s: the PREMIS document does not name the bag", name)
		}
	}

	// What the depositor says of the object comes first.
	j := d.send("c.zip", zipped(bagged("", map[string]string{"x": "x"})), func(b *ingest.Batch) { b.What = "My title" })
	if j.What != "My title" || j.Who != "The Library" {
		t.Errorf("%s by %s", j.What, j.Who)
	}
	// It is no bag: not all files are in it.
	other := bagged("bag/", letters)
	other["beside.txt"], other["bag/data/more.txt"] = "x", "not listed"
	if j := d.send("d.zip", zipped(other)); j.State != ingest.Completed || j.Unpacked.Bag != nil {
		t.Errorf("%s: %s", j.State, j.Message)
	}
}

// TestBagsThatAreNotValid: they are refused with all that is wrong.
func TestBagsThatAreNotValid(t *testing.T) {
	d := newDeposits(t)
	for says, change := range map[string]func(bag map[string]string){
		"data/letters/1.txt: its md5 is": func(b map[string]string) {
			b["data/letters/1.txt"] = "changed"
		},
		"it is not there; manifest-md5.txt lists": func(b map[string]string) {
			delete(b, "data/letters/1.txt")
		},
		"data/more.txt: no manifest lists it": func(b map[string]string) { b["data/more.txt"] = "x" },
		"bag-info.txt: its md5 is": func(b map[string]string) {
			b["bag-info.txt"] += "Bag-Count: 1\n"
		},
		"version 9.9 is not known": func(b map[string]string) {
			b["bagit.txt"] = "BagIt-Version: 9.9\nTag-File-Character-Encoding: UTF-8\n"
		},
		"there is no manifest of the payload": func(b map[string]string) {
			delete(b, "manifest-md5.txt")
			delete(b, "manifest-sha512.txt")
		},
		"it is not there yet: fetch.txt says where": func(b map[string]string) {
			delete(b, "data/letters/1.txt")
			b["fetch.txt"] = "https://example.org/1.txt - data/letters/1.txt\n"
			b["manifest-md5.txt"] += "no digest\n" // so nothing is fetched
		},
		"sha224 ": func(b map[string]string) {
			b["manifest-sha224.txt"] = strings.Repeat("0", 56) + "  data/letters/1.txt\n"
		},
	} {
		bag := bagged("", letters)
		change(bag)
		for kind, data := range map[string][]byte{"zip": zipped(bag), "tgz": tarred(bag)} {
			j := d.send(fmt.Sprintf("%d.%s", len(d.files), kind), data)
			if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, says) ||
				!strings.Contains(j.Message, "submit it with the type file") {
				t.Errorf("%s: %s: %s; expected %q", kind, j.State, j.Message, says)
			}
		}
	}
}

// TestBagProfile: a bag must be as the profiles that it names say; one that is not there any more is a warning, and one
// that cannot be fetched now is fetched again.
func TestBagProfile(t *testing.T) {
	d, now := newDeposits(t), time.Now()
	d.clock(&now)
	at := d.Source.URL + "/profile.json"
	profile := func(more string) {
		d.files["/profile.json"] = []byte(`{"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "` + at +
			`"}, "Accept-BagIt-Version": ["1.0"]` + more + "}")
	}
	bag := func() []byte {
		files := bagged("delivery/", letters)
		info := files["delivery/bag-info.txt"] + "BagIt-Profile-Identifier: " + at + "\n"
		files["delivery/bag-info.txt"] = info
		files["delivery/tagmanifest-md5.txt"] = fmt.Sprintf("%x  bag-info.txt\n", md5.Sum([]byte(info)))
		return zipped(files)
	}

	profile(`, "Manifests-Required": ["sha512"], "Accept-Serialization": ["application/zip"]`)
	j := d.send("a.zip", bag())
	if j.State != ingest.Completed || !slices.Equal(j.Unpacked.Bag.Profiles, []string{at}) {
		t.Fatalf("%s: %s: %+v", j.State, j.Message, j.Unpacked)
	}
	if text := d.premis(j); !strings.Contains(text, "It conforms to the BagIt profile "+at) {
		t.Errorf("the PREMIS document does not name the profile: %s", text)
	}

	// All bags name the same one: it is fetched once an hour.
	asked := d.asked.Load()
	d.send("again.zip", bag())
	if n := d.asked.Load() - asked; n > 3 {
		t.Errorf("%d requests for a bag whose profile is known", n)
	}
	again := func() { now = now.Add(2 * time.Hour) }
	again()
	profile(`, "Bag-Info": {"Contact-Name": {"required": true}}, "Serialization": "forbidden"`)
	j = d.send("b.zip", bag())
	d.Refused(j.ID, "the bag does not conform to "+at+" (2 problems)")
	d.Refused(j.ID, "bag-info.txt: the profile requires the field Contact-Name")

	for path, says := range map[string]string{"": "404 Not Found", "<html>": "it is not a BagIt profile"} {
		again()
		delete(d.files, "/profile.json")
		if path != "" {
			d.files["/profile.json"] = []byte(path)
		}
		j := d.send("c.zip", bag())
		warned := strings.Join(j.FileWarnings, "; ")
		if j.State != ingest.Completed || len(j.Unpacked.Bag.Profiles) > 0 ||
			!strings.Contains(warned, "was not checked") || !strings.Contains(warned, says) {
			t.Errorf("%s: %s: %s", j.State, j.Message, warned)
		}
	}

	again()
	profile("")
	open, down := d.Source.Config.Handler, true
	d.Source.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down && r.URL.Path == "/profile.json" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		open.ServeHTTP(w, r)
	})
	id := d.send("d.zip", bag()).ID
	if is := d.Job(id); is.State != ingest.Downloading || !strings.Contains(is.Message, "503") {
		t.Errorf("%s: %s", is.State, is.Message)
	}
	down, now = false, now.Add(time.Hour)
	d.Drive()
	if is := d.Job(id); is.State != ingest.Completed || len(is.Unpacked.Bag.Profiles) != 1 {
		t.Errorf("%s: %s", is.State, is.Message)
	}
}
