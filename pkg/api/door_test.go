package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/ocfl"
)

const (
	manifestStart = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/"
	prefixes      = "\n#%prefix | mrt: | http://uc3.cdlib.org/ontology/mom#\n" +
		"#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n#%fields | nfo:fileUrl | " +
		"nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | mrt:"
	objectManifest = manifestStart + "mrt-ingest-manifest" + prefixes + "mimeType\n" +
		"https://example.org/a.txt | md5 | 900150983cd24fb0d6963f7d28e17f72 | 3 | | a.txt | text/plain\n#%eof\n"
	ofBatch = prefixes + "primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n" +
		"https://example.org/a.zip | md5 | 900150983cd24fb0d6963f7d28e17f72 | 3 | | a.zip | | one | Ann | A | 1851\n" +
		"#%eof\n"
	containerBatch = manifestStart + "mrt-container-batch-manifest" + ofBatch
	fileBatch      = manifestStart + "mrt-single-file-batch-manifest" + ofBatch
	batchManifest  = manifestStart + "mrt-batch-manifest" + ofBatch
	emptyZip       = "PK\x05\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// documented are the forms that Merritt's documentation and clients describe, and the submission of the API that each
// of them is.
var documented = map[string]struct {
	path, filename, content string
	fields                  []string
	is                      v1.BatchRequest
	jobs                    int
}{
	"a file": {"/poster/submit", "a.txt", "abc", []string{"profile", "maps", "submitter", "ann/Ann", "type", "file",
		"responseForm", "xml", "localIdentifier", "one; two", "title", "A", "creator", "Ann", "date", "1851",
		"note", "n", "digestType", "MD5", "digestValue", "900150983CD24FB0D6963F7D28E17F72", "size", "3",
		"notification", "a@example.org; b@example.org"},
		v1.BatchRequest{Submitter: "ann/Ann", Note: "n", Payload: v1.Payload{Type: "file", Digest: &v1.Digest{
			Algorithm: "md5", Value: "900150983cd24fb0d6963f7d28e17f72"}},
			Identifiers:  &v1.Identifiers{Local: []string{"one", "two"}},
			Metadata:     &v1.Metadata{Who: "Ann", What: "A", When: "1851"},
			Notification: []string{"a@example.org", "b@example.org"}}, 1},
	"a file of the Ruby client": {"/object/ingest", "x", "abc", []string{"filename", "é b.txt", "profile", "maps",
		"submitter", "s", "type", "file", "primaryIdentifier", "ark:/99999/fk4tq65d6k"},
		v1.BatchRequest{Submitter: "s", Payload: v1.Payload{Type: "file", Filename: "é b.txt"},
			Identifiers: &v1.Identifiers{Primary: "ark:/99999/fk4tq65d6k"}}, 1},
	"a container": {"/poster/add", "a.zip", emptyZip, []string{"profile", "maps", "type", "Container"},
		v1.BatchRequest{Payload: v1.Payload{Type: "container"}}, 1},
	"an object manifest": {"/poster/submit/", "a.checkm", objectManifest, []string{"profile", "maps", "type",
		"object-manifest"}, v1.BatchRequest{Payload: v1.Payload{Type: "object-manifest"}}, 1},
	"manifest": {"/poster/submit", "a.checkm", objectManifest, []string{"profile", "maps", "type", "manifest"},
		v1.BatchRequest{Payload: v1.Payload{Type: "object-manifest"}}, 1},
	"a batch manifest": {"/poster/submit", "b.checkm", batchManifest, []string{"profile", "maps", "type",
		"batch-manifest"}, v1.BatchRequest{Payload: v1.Payload{Type: "batch-manifest"}}, 0},
	"a batch of files": {"/poster/submit", "b.checkm", fileBatch, []string{"profile", "maps", "type",
		"single-file-batch-manifest"}, v1.BatchRequest{Payload: v1.Payload{Type: "single-file-batch-manifest"}}, 0},
	"a batch of containers": {"/poster/submit", "example.checkm", containerBatch, []string{"profile", "maps", "type",
		"container-batch-manifest", "submitter", "sample-user"}, v1.BatchRequest{Submitter: "sample-user",
		Payload: v1.Payload{Type: "container-batch-manifest"}}, 0},
	"batchManifestContainer": {"/poster/submit", "b.checkm", containerBatch, []string{"profile", "maps", "type",
		"batchManifestContainer"}, v1.BatchRequest{Payload: v1.Payload{Type: "container-batch-manifest"}}, 0},
	"no type": {"/poster/submit", "b.checkm", fileBatch, []string{"profile", "maps"}, v1.BatchRequest{}, 0},
	"an update": {"/poster/update", "a.txt", "abc", []string{"profile", "maps", "type", "file",
		"localIdentifier", "one"}, v1.BatchRequest{Mode: "update", Payload: v1.Payload{Type: "file"},
		Identifiers: &v1.Identifiers{Local: []string{"one"}}}, 1},
	"an object in the path": {"/poster/update/ark:/99999/fk4tq65d6k", "a.txt", "abc", []string{"profile", "maps"},
		v1.BatchRequest{Mode: "update", Identifiers: &v1.Identifiers{Primary: "ark:/99999/fk4tq65d6k"}}, 1},
	"a submission to an object": {"/poster/submit/ark/99999/fk4tq65d6k", "a.txt", "abc", []string{"profile", "maps"},
		v1.BatchRequest{Identifiers: &v1.Identifiers{Primary: "ark:/99999/fk4tq65d6k"}}, 1},
	"an update of the interface": {"/object/update", "a.txt", "abc", []string{"profile", "maps", "localIdentifier", "o",
		"title", " "}, v1.BatchRequest{Mode: "update", Identifiers: &v1.Identifiers{Local: []string{"o"}}}, 1},
}

// TestMerrittForms: each form that Merritt documents makes the batch that the same submission through the API makes,
// and is answered with Merritt's fields.
func TestMerrittForms(t *testing.T) {
	for name, d := range documented {
		t.Run(name, func(t *testing.T) {
			c, q := serve(t, through)
			resp, out := knock(t, c, d.path, d.filename, d.content, d.fields...)
			if resp.StatusCode != 200 || out.XMLName.Local != "batchState" || resp.Header.Get("BID") != out.BatchID ||
				out.Status != "QUEUED" {
				t.Fatalf("%d %+v", resp.StatusCode, out)
			}
			got := stored(t, q, out.BatchID)
			d.is.Collection = "maps"
			if d.is.Payload.Filename == "" {
				d.is.Payload.Filename = d.filename
			}
			d.is.Payload.Upload = uploaded(t, c, d.content).ID
			other, err := c.Submit(t.Context(), d.is, "")
			if err != nil {
				t.Fatal(err)
			}
			want := stored(t, q, other.ID)
			got.URL = strings.Replace(got.URL, got.Upload, want.Upload, 1)
			got.Upload, want.Upload = "", ""
			if !reflect.DeepEqual(got, want) {
				t.Errorf("by the form:\n%+v\nby the API:\n%+v", got, want)
			}
			if out.Package != want.Filename || out.User != want.Submitter || out.At == "" || len(out.Jobs) != d.jobs {
				t.Errorf("%+v", out)
			}
			if d.jobs == 1 && out.Jobs[0] != ingest.JobID(out.BatchID, 1) {
				t.Errorf("jobs %q", out.Jobs)
			}
		})
	}
}

// TestMerrittJSON: an answer in JSON is what Merritt makes of its XML, as its Ruby client reads it; the form is said in
// the form, or in the header.
func TestMerrittJSON(t *testing.T) {
	c, _ := serve(t, through)
	for _, asked := range [][2]string{{"JSON", ""}, {"", "application/json"}, {"json", "text/xml"}} {
		media, body := form(t, "a.txt", "abc"+asked[0], "profile", "maps", "responseForm", asked[0],
			"notificationFormat", "csv")
		resp, text := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media, "Accept", asked[1])
		var out map[string]map[string]any
		err := json.Unmarshal([]byte(text), &out)
		is := out["bat:batchState"]
		if err != nil || resp.StatusCode != 200 ||
			resp.Header.Get("Content-Type") != "application/json; charset=utf-8" ||
			is["bat:batchID"] != resp.Header.Get("BID") || is["bat:packageName"] != "a.txt" ||
			is["bat:batchStatus"] != "QUEUED" ||
			!strings.Contains(fmt.Sprint(is["bat:jobStates"]), fmt.Sprint(is["bat:batchID"])+"-00001") ||
			!strings.Contains(fmt.Sprint(is["bat:batchStatusMessage"]), "notificationFormat is ignored") {
			t.Errorf("%q: %d %s, %v", asked, resp.StatusCode, text, err)
		}
		if _, err := time.Parse(time.RFC3339, fmt.Sprint(is["bat:submissionDate"])); err != nil {
			t.Error(err)
		}

		media, body = form(t, "a.txt", "abc", "responseForm", asked[0])
		resp, text = ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media, "Accept", asked[1])
		if err := json.Unmarshal([]byte(text), &out); err != nil || resp.StatusCode != 400 ||
			!strings.HasPrefix(fmt.Sprint(out["exc:tException.REQUEST_INVALID"]["exc:error"]), "profile: it is") {
			t.Errorf("%q: %d %s, %v", asked, resp.StatusCode, text, err)
		}
	}
}

// TestMerrittRefusals: a form that cannot be done as it is asked is refused with Merritt's fields, before anything is
// stored, and the refusal names the field of the form.
func TestMerrittRefusals(t *testing.T) {
	c, q := serve(t, through)
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	if err := profiles.Put(t.Context(), "strict", collection.Profile{RequireDigest: true},
		collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	before := rowsOf(t, q)
	const digest = "profile|maps|digestType|md5|digestValue|"
	const two = "profile|maps|primaryIdentifier|" + arkOf + "|object|"
	for says, pairs := range map[string]string{
		"profile: it is missing":                               "note|n",
		"profile: expected string to match pattern":            "profile|a b",
		"type: found \"zip\"; expected one of file,":           "profile|maps|type|zip",
		"digestValue: the file: the depositor's md5":           digest + strings.Repeat("0", 32),
		"digestValue: \"x\" is not a digest":                   "profile|maps|digestType|md5|digestValue|x",
		"digestValue: \"00\" is not a digest":                  "profile|maps|digestType|md2|digestValue|00",
		"digestType: it is missing":                            "profile|maps|digestValue|00",
		"digestValue: it is missing":                           "profile|maps|digestType|md5",
		"digestValue: the collection strict requires a digest": "profile|strict|type|file",
		"size: found 4; the file that arrived has 3 bytes":     "profile|maps|size|4",
		"size: found \"-1\"":                                   "profile|maps|size|-1",
		"primaryIdentifier: ":                                  "profile|maps|primaryIdentifier|doi:10.5072/x",
		"name two objects":                                     two + "ark:/13030/xf93gt2q",
		"primaryIdentifier: ark:/13030/xf93gt2q is not an obj": "profile|maps|object|ark:/13030/xf93gt2q",
		"localIdentifier: the local id":                        "profile|maps|localIdentifier|a\x01b",
		"title: expected length <= 4000":                       "profile|maps|title|" + strings.Repeat("x", 4001),
		"notification: ":                                       "profile|maps|notification|me",
		"responseForm: found \"anvl\"; expected xml":           "profile|maps|responseForm|anvl",
		"retainTargetURL: found \"true\"":                      "profile|maps|retainTargetURL|true",
		"DC.creator: a submission has no place for it":         "profile|maps|DC.creator|Ann",
		"erc: a submission has no place for it here":           "profile|maps|erc|erc: a",
		"DataCite.resourceType: a submission has no":           "profile|maps|DataCite.resourceType|x",
		"did you mean localIdentifier?":                        "profile|maps|localIdentifer|one",
		"title: it is there 2 times":                           "profile|maps|title|a|title|b",
		"filename: \"../a\"":                                   "profile|maps|filename|../a",
		"filename: \"a\\x00b\"":                                "profile|maps|filename|a\x00b",
		"file: it is no zip, tar":                              "profile|maps|type|container",
		"file: the manifest is rejected":                       "profile|maps|type|object-manifest",
		"note: the value is not UTF-8":                         "profile|maps|note|\xff",
		"note: the value has more than 16384 bytes":            "profile|maps|note|" + strings.Repeat("x", 16385),
	} {
		fields := strings.Split(pairs, "|")
		resp, out := knock(t, c, "/poster/submit", "a.txt", "abc", fields...)
		if resp.StatusCode != 400 || out.XMLName.Local != "tException.REQUEST_INVALID" ||
			out.StatusName != "REQUEST_INVALID" || out.HTTP != 400 || out.Description == "" ||
			!strings.Contains(out.Error, says) {
			t.Errorf("%q: %d %+v", fields, resp.StatusCode, out)
		}
	}
	for says, content := range map[string]string{
		"primaryIdentifier: an update needs the ARK or a local id": "abc",
		"line 6 of the manifest has no primaryIdentifier and no":   strings.Replace(fileBatch, "| one |", "| |", 1),
		"file: the manifest is rejected: line 5": strings.Replace(fileBatch,
			"mrt:localIdentifier | mrt:creator", "mrt:creator | mrt:localIdentifier", 1),
	} {
		resp, out := knock(t, c, "/poster/update", "a.txt", content, "profile", "maps")
		if resp.StatusCode != 400 || !strings.Contains(out.Error, says) {
			t.Errorf("%s: %d %+v", says, resp.StatusCode, out)
		}
	}
	resp, out := knock(t, c, "/poster/submit", "b.checkm", fileBatch, "profile", "maps", "localIdentifier", "one")
	if resp.StatusCode != 400 || !strings.Contains(out.Error, "localIdentifier name one object, but the payload") {
		t.Errorf("%+v", out)
	}
	if after := rowsOf(t, q); after != before {
		t.Errorf("something was stored:\n%s\nbefore:\n%s", after, before)
	}
}

// TestMerrittBodies: what is no form, or not a whole one, is refused in XML.
func TestMerrittBodies(t *testing.T) {
	c, q := serve(t, through)
	before := rowsOf(t, q)
	media, whole := form(t, "a.txt", "abc", "profile", "maps")
	_, large := form(t, "a.txt", strings.Repeat("x", 4<<20), "profile", "maps")
	part := func(head string) []byte { return []byte("--b\r\n" + head + "\r\n\r\nx\r\n--b--\r\n") }
	const (
		of       = "multipart/form-data; boundary=b"
		named    = "Content-Disposition: form-data; name="
		file     = named + `"file"; filename="a"`
		attached = "Content-Disposition: attachment; name=x"
		field    = "--b\r\n" + named + "note\r\n\r\n\r\n"
		hidden   = "\r\nContent-Transfer-Encoding: base64"
		mixed    = "\r\nContent-Type: multipart/mixed; boundary=c"
	)
	two := append(part(file)[:len(part(file))-7], part(file)...)
	for says, in := range map[string]struct {
		media  string
		body   []byte
		status int
	}{
		"Content-Type: found \"application/json\"":              {"application/json", []byte("{}"), 415},
		"Content-Type: found \"multipart/form-data\"":           {"multipart/form-data", whole, 415},
		"Content-Type: found \"\"":                              {"", whole, 415},
		"the body is no complete form: ":                        {media, whole[:len(whole)-4], 400},
		"no complete form: unexpected EOF":                      {media, whole[:len(whole)/2], 400},
		"request body is required":                              {of, nil, 400},
		"a form has at most 4 MiB":                              {media, large, 413},
		"file: it is missing":                                   {of, []byte("--b--\r\n"), 400},
		"file: it is a field without the name of a file":        {of, part(named + "file"), 400},
		"a part of the form has no name":                        {of, part("Content-Type: text/plain"), 400},
		"no name; ":                                             {of, part(attached), 400},
		"file: the part has the Content-Transfer-Encoding":      {of, part(file + hidden), 400},
		"file: the part has parts itself":                       {of, part(file + mixed), 400},
		"other: a submission has one file, in the part":         {of, part(named + `other; filename="a"`), 400},
		"the name of a field has at most 100 bytes of UTF-8":    {of, part(named + strings.Repeat("x", 101)), 400},
		"the form has more than 100 parts":                      {of, bytes.Repeat([]byte(field), 101), 400},
		"file: a submission has one file, in the part \"file\"": {of, two, 400},
	} {
		resp, out := send(t, c, "/poster/submit", in.media, in.body)
		if resp.StatusCode != in.status || out.HTTP != in.status || !strings.Contains(out.Error, says) {
			t.Errorf("%q: %d %+v", says, resp.StatusCode, out)
		}
	}
	for path, status := range map[string]int{"/poster/other": 404, "/poster/submit/ark:/99999": 404,
		"/poster/submit/doi:/99999/fk4tq65d6k": 400} {
		if resp, out := send(t, c, path, media, whole); resp.StatusCode != status || out.HTTP != status {
			t.Errorf("%s: %d %+v", path, resp.StatusCode, out)
		}
	}
	resp, text := ask(t, "GET", c.URL+"/poster/submit", "")
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" ||
		!strings.Contains(text, "exc:tException.REQUEST_ELEMENT_UNSUPPORTED") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	if after := rowsOf(t, q); after != before {
		t.Errorf("something was stored:\n%s", after)
	}
}

// TestMerrittNames: the name of a file is what the client means, in each way in which clients write it.
func TestMerrittNames(t *testing.T) {
	c, q := serve(t, through)
	for i, row := range [][2]string{
		{`filename="ü é.txt"`, "ü é.txt"},
		{`filename*=UTF-8''%C3%A9.txt`, "é.txt"},
		{`filename="a\"b.txt"`, `a"b.txt`},
		{`filename="/tmp/dir/a.txt"`, "a.txt"},
		{`filename="a;b.txt"`, "a;b.txt"},
		{`filename="100%.txt"`, "100%.txt"},
	} {
		head := `Content-Disposition: form-data; name="file"; ` + row[0]
		body := fmt.Sprintf("--b\r\n%s\r\n\r\n%d\r\n--b\r\nContent-Disposition: form-data; name=profile\r\n\r\n"+
			"maps\r\n--b--\r\n", head, i)
		resp, out := send(t, c, "/poster/submit", "multipart/form-data; boundary=b", []byte(body))
		if resp.StatusCode != 200 || out.Package != row[1] || stored(t, q, out.BatchID).Filename != row[1] {
			t.Errorf("%s: %d %+v", row[0], resp.StatusCode, out)
		}
	}
}

// TestMerrittRepeats: the same form is the same submission, also when an answer was lost; one that failed, or that is
// older than a day, is submitted again, and so is what another caller sends.
func TestMerrittRepeats(t *testing.T) {
	c, q := serve(t, through)
	now := time.Now()
	q.Now = func() time.Time { return now }
	again := func(fields ...string) string {
		t.Helper()
		resp, out := knock(t, c, "/poster/submit", "a.txt", "abc", append(fields, "profile", "maps")...)
		if resp.StatusCode != 200 {
			t.Fatalf("%d %+v", resp.StatusCode, out)
		}
		return out.BatchID
	}
	first := again()
	if got := again("responseForm", "xml"); got != first {
		t.Errorf("the same form made %s, not %s", got, first)
	}
	if got := again("title", "T"); got == first {
		t.Error("another title made the same batch")
	}

	ended := func(id string, state ingest.BatchState) {
		t.Helper()
		row, err := q.Batch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		row.State = state
		tx := q.Table.Begin(q.NewID())
		tx.Save(row)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended(first, ingest.BatchFailed)
	second := again()
	if second == first || again() != second {
		t.Error("a failed submission was not made again, once")
	}
	ended(second, ingest.BatchCompleted)
	if again() != second {
		t.Error("a submission that was just completed was made again")
	}
	now = now.Add(25 * time.Hour)
	third := again()
	if third == second {
		t.Error("a day later, nothing was submitted")
	}

	media, body := form(t, "a.txt", "abc", "profile", "maps")
	key := func(key string, body []byte) (int, string) {
		resp, _ := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media, "Idempotency-Key", key)
		return resp.StatusCode, resp.Header.Get("BID")
	}
	_, fourth := key("k", body)
	if status, got := key("k", body); status != 200 || got != fourth || fourth == third {
		t.Errorf("%d %s, not %s", status, got, fourth)
	}
	if status, _ := key("k", bytes.Replace(body, []byte("abc"), []byte("abd"), 1)); status != http.StatusConflict {
		t.Errorf("another form with the same key: %d", status)
	}
	if status, _ := key(" ", body); status != http.StatusBadRequest {
		t.Errorf("a blank key: %d", status)
	}
}

// TestMerrittCrash: whatever call fails, the form that is sent again makes one batch, with its file.
func TestMerrittCrash(t *testing.T) {
	for at := 1; ; at++ {
		n := 0
		c, q := serve(t, func(_ string, call func() error) error {
			err := call()
			n++
			if n == at { // it is done, and its answer is lost
				return fault.New(fault.Unavailable, "the answer is lost")
			}
			return err
		})
		media, body := form(t, "a.txt", "abc", "profile", "maps")
		resp, _ := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media)
		if n < at {
			break
		}
		first := resp.Header.Get("BID")
		resp, text := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media)
		if resp.StatusCode != 200 || first != "" && resp.Header.Get("BID") != first {
			t.Fatalf("call %d: %d %s", at, resp.StatusCode, text)
		}
		all, err := c.Batches(t.Context(), v1.Filter{Collection: "maps"})
		if err != nil || len(all) != 1 || stored(t, q, all[0].ID).Size != 3 {
			t.Fatalf("call %d: %+v, %v", at, all, err)
		}
	}
}

// TestMerrittProfiles: the profile of a form is a collection, with the ending of Merritt's profiles or without.
func TestMerrittProfiles(t *testing.T) {
	c, q := serve(t, through)
	for _, name := range []string{"demo", "both", "both_content"} {
		if _, err := c.PutCollection(t.Context(), name, v1.Profile{}); err != nil {
			t.Fatal(err)
		}
	}
	for profile, want := range map[string]string{"demo": "demo", "demo_content": "demo", "both_content": "both_content",
		"none_content": "none_content"} {
		_, out := knock(t, c, "/poster/submit", "a.txt", "abc", "profile", profile)
		if got := stored(t, q, out.BatchID).Collection; got != want {
			t.Errorf("%s is %s, not %s", profile, got, want)
		}
	}
}

// TestMerrittUploads: a row of a manifest that names an upload is refused at once, whatever its id: the upload of the
// form has the manifest only.
func TestMerrittUploads(t *testing.T) {
	c, q := serve(t, through)
	before := rowsOf(t, q)
	for _, id := range []string{source.NoUpload, "01M7ZBMEYHBB62YP6RY21T1GQ6"} {
		for _, manifest := range []string{objectManifest, containerBatch} {
			url := source.UploadURL(id, strings.Repeat("0", 64))
			manifest = strings.NewReplacer("https://example.org/a.txt", url, "https://example.org/a.zip", url).
				Replace(manifest)
			resp, out := knock(t, c, "/poster/submit", "a.checkm", manifest, "profile", "maps")
			if resp.StatusCode != 400 || !strings.Contains(out.Error, "has no upload") || rowsOf(t, q) != before {
				t.Errorf("%s: %d %q", id, resp.StatusCode, out.Error)
			}
		}
	}
}

// TestMerrittNewCollection: the first form for a collection warns that it begins it, as a submission through the API
// does: the name of a profile may be misspelt.
func TestMerrittNewCollection(t *testing.T) {
	c, q := serve(t, through)
	for n, want := range []bool{true, false} {
		_, out := knock(t, c, "/poster/submit", "a.txt", fmt.Sprint(n), "profile", "mapps")
		row, err := q.Batch(t.Context(), out.BatchID)
		if err != nil {
			t.Fatal(err)
		}
		const says = "the collection mapps has never been used"
		if strings.Contains(out.Message, says) != want || strings.Contains(row.Begins, says) != want {
			t.Errorf("form %d: %q, %q", n, out.Message, row.Begins)
		}
	}
}

// TestMerrittRoles: a depositor submits to its own collection only, and the refusal is in the form that was asked for.
func TestMerrittRoles(t *testing.T) {
	c, q := tokened(t)
	media, body := form(t, "a.txt", "abc", "profile", "letters", "responseForm", "json")
	for token, says := range map[string]string{
		"maps": `"exc:error":"profile: the caller may submit to maps only"`,
		"none": `"exc:tException.USER_NOT_AUTHORIZED"`,
		"old":  `"exc:tException.USER_NOT_AUTHENTICATED"`,
	} {
		resp, text := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media, "Authorization",
			"Bearer "+token)
		if resp.StatusCode != 403 && resp.StatusCode != 401 || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s", token, resp.StatusCode, text)
		}
	}
	for user, want := range map[string]int{`Ada "L":ada`: 415, "ada:ada": 401, ":ada": 401, `Ada "L":old`: 401,
		"ada": 401} {
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
		resp, text := ask(t, "POST", c.URL+"/poster/submit", "{}", "Authorization", basic)
		if resp.StatusCode != want {
			t.Errorf("%s: %d %s", user, resp.StatusCode, text)
		}
		if resp, text := ask(t, "GET", c.URL+"/v1/whoami", "", "Authorization", basic); resp.StatusCode != 401 {
			t.Errorf("%s elsewhere: %d %s", user, resp.StatusCode, text)
		}
	}
	if rows := rowsOf(t, q); rows != "" {
		t.Errorf("something was stored:\n%s", rows)
	}
}

// TestMerrittCallers: the same form by another caller is another submission.
func TestMerrittCallers(t *testing.T) {
	a, _ := service(through)
	_, buckets := buckettest.Open(t, "storage", "work")
	a.Identity.Root, a.Uploads.Work, a.Open = ocfl.Root{Bucket: buckets[0]}, buckets[1], false
	a.Authenticator = tokens{"ada": ada, "admin": {Subject: "1", Grants: granted("administrator").Grants},
		"maps": {Subject: "2", Grants: granted("depositor:maps").Grants},
		"both": {Subject: "3", Grants: granted("depositor:maps", "depositor:letters").Grants}}
	c := httptest.NewServer(a.Handler())
	t.Cleanup(c.Close)
	media, body := form(t, "a.txt", "abc", "profile", "maps")
	seen := map[string]bool{}
	for _, token := range []string{"ada", "admin", "maps", "both", "ada"} {
		resp, text := ask(t, "POST", c.URL+"/poster/submit", string(body), "Content-Type", media, "Authorization",
			"Bearer "+token)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", token, resp.StatusCode, text)
		}
		seen[resp.Header.Get("BID")] = true
	}
	if len(seen) != 4 {
		t.Errorf("four callers have the batches %v", seen)
	}
}
