package e2e

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/preservation"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
)

// TestPreservation: the components that ship identify the formats of a new version, check its files, and find
// a file that was damaged by hand. Nothing is changed.
func TestPreservation(t *testing.T) {
	begin(t)
	src := newSource(t)
	j := preserveFile(t, "preservation", src.put("/note.txt", []byte("plain text\n")))
	ark := j.Identifiers.Primary
	until(t, "the formats are known", soon, func() bool {
		files, err := client.Formats(t.Context(), ark, j.Version)
		if fault.Is(err, fault.NotFound) {
			return false
		}
		if err != nil || len(files) != 1 || files[0].Formats[0].ID != "x-fmt/111" {
			t.Fatalf("the formats are %+v, %v", files, err)
		}
		return true
	})
	checkFixity(t, ark, v1.InStorage, fixity.OK)

	o, err := client.Object(t.Context(), ark)
	if err != nil || o.FixityOutcome != fixity.OK {
		t.Fatalf("the object is %+v, %v", o, err)
	}
	key := o.Stored + "v1/inventory.json"
	whole := stored(t, key)
	put := func(text string) {
		_, err := buckets().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &out.StorageBucket, Key: aws.String(key),
			Body: strings.NewReader(text)})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("damaged")
	defer put(whole)
	checkAgain(t, ark, preservation.FixityChecked)
	last := checkFixity(t, ark, v1.InStorage, fixity.Damaged)
	if len(last.Problems) != 1 || last.Problems[0].Key != key {
		t.Errorf("found %+v", last)
	}
	// What it found is known before the run has noted that it ended.
	until(t, "it is checked again some days later, or after a change", soon, func() bool {
		x, err := client.ExplainWith(t.Context(), "object:"+ark, v1.ExplainOf{Component: preservation.FixityCheck})
		if err != nil {
			t.Fatal(err)
		}
		return x.WaitsFor != "turn" && x.WaitsFor != "worker"
	})
}

// checkAgain lets an object be checked although its content is as it was.
func checkAgain(t *testing.T, ark, event string) {
	t.Helper()
	again := v1.ItemAction{Action: "revoke", Events: []string{event}, Reason: "check it again"}
	if _, err := client.ActOnItem(t.Context(), "object:"+ark, again, ""); err != nil {
		t.Fatal(err)
	}
}

// checkFixity starts the check until the newest one of an object has an outcome.
func checkFixity(t *testing.T, ark, in, outcome string) (last v1.FixityCheck) {
	t.Helper()
	checks := map[string]string{v1.InStorage: preservation.FixityCheck, v1.InCopy: preservation.CopyCheck}
	until(t, "the check finds "+outcome, 2*soon, func() bool {
		_, err := client.StartRun(t.Context(), checks[in], v1.ComponentRunRequest{Reason: "now"}, "")
		if err != nil && !fault.Is(err, fault.Conflict) {
			t.Fatal(err)
		}
		last, err = client.Fixity(t.Context(), ark, in)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return last.Outcome == outcome
	})
	return last
}

// stored is the content of a key in the storage bucket.
func stored(t *testing.T, key string) string {
	t.Helper()
	return storedIn(t, out.StorageBucket, key)
}

func storedIn(t *testing.T, bucket, key string) string {
	t.Helper()
	got, err := buckets().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDepositHeals: a deposit that brings the bytes of a lost file puts them back, and the history of the object says
// so.
func TestDepositHeals(t *testing.T) {
	begin(t)
	src := newSource(t)
	first := preserve(t, "heals", src, "/lost.txt")
	o, err := client.Object(t.Context(), first.Identifiers.Primary)
	if err != nil {
		t.Fatal(err)
	}
	stored := &cell{T: t, prefix: o.Stored}
	key := o.Stored + stored.content(stored.keys(out.StorageBucket), "lost.txt")
	if _, err := buckets().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &out.StorageBucket,
		Key: &key}); err != nil {
		t.Fatal(err)
	}
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "heals", Payload: v1.Payload{
		URL: src.URL + "/lost.txt", Type: "file"}, Identifiers: &v1.Identifiers{Primary: o.ARK}}, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	j := ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	if !j.NoChange || storedIn(t, out.StorageBucket, key) != "content of /lost.txt" {
		t.Errorf("it made %+v", j)
	}
	told, err := client.ItemHistory(t.Context(), "object:"+o.ARK, 100)
	if err != nil || !slices.ContainsFunc(told, func(e v1.ItemEvent) bool { return e.Name == "object.repair" }) {
		t.Errorf("the history is %+v, %v", told, err)
	}
}
