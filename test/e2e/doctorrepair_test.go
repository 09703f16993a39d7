package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/guregu/dynamo/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// findings runs the doctor and returns what it finds about these jobs, batches and objects;
// without any, all that it finds. The tests share the table: others may break things on
// purpose. One loses the search index, and rebuilds it: what it lacks meanwhile is left out.
func findings(t *testing.T, repair bool, about ...string) []v1.Finding {
	t.Helper()
	in := v1.OperationRequest{Action: v1.Doctor, Repair: repair, ActionOptions: v1.ActionOptions{Reason: t.Name()}}
	o, err := client.Start(t.Context(), in, "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the doctor is done", 3*soon, func() bool {
		o, err = client.Operation(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		return o.State != "Running"
	})
	all, err := client.Findings(t.Context(), o.ID, 10_000)
	if err != nil || o.State != "Done" {
		t.Fatalf("the doctor is %s: %v", o.State, err)
	}
	return slices.DeleteFunc(all, func(f v1.Finding) bool {
		isAbout := func(what string) bool { return strings.Contains(f.Subject+f.Evidence, what) }
		return f.Invariant == "search-document" || len(about) > 0 && !slices.ContainsFunc(about, isAbout)
	})
}

// hidden takes an object out of a list, and makes the search index have it as it was: its row is changed later
// then.
func hidden(t *testing.T, ark string) {
	t.Helper()
	tb := rows()
	var o inventory.Object
	k := table.Key{PK: "OBJECT#" + ark, SK: "OBJECT"}
	err := tb.Get(t.Context(), k, &o)
	if err != nil {
		t.Fatal(err)
	}
	o.Modified++
	o.Place()
	err = tb.Change(t.Context(), k, t.Name(), func(u *dynamo.Update) {
		u.Set("modified", o.Modified).Set("since", o.ListSK)
	}, &o)
	if err != nil {
		t.Fatal(err)
	}

	var p struct {
		table.Head
		Entries []struct {
			By    string `dynamo:"list_by"`
			Order string `dynamo:"list_order"`
		} `dynamo:"entries"`
	}
	until(t, "the object is listed", soon, func() bool {
		err := tb.Get(t.Context(), table.Key{PK: k.PK, SK: "BROWSE"}, &p)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		return len(p.Entries) > 0
	})
	lost := p.Entries[0]
	err = tb.Rows.Delete("pk", "BROWSE#"+lost.By).Range("sk", lost.Order).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
}

// TestDoctorRepairs: the doctor finds nothing about what the system has done; then it finds what
// somebody has changed in the storage root and in the table, and repairs it.
func TestDoctorRepairs(t *testing.T) {
	begin(t)
	src := newSource(t)
	batch, job := submit(t, src.put("/doctor.txt", []byte("content for the doctor")), "file", "doctor")
	ark := ends(t, job, "Completed", soon).Identifiers.Primary
	until(t, "the batch ends", soon, func() bool { return batchOf(t, batch).State == "Completed" })
	prefix := ocfl.Prefix(ark)
	if found := findings(t, false, batch, ark, prefix); len(found) > 0 {
		t.Errorf("the doctor finds %+v", found)
	}

	orphan := prefix + "v1/content/" + job + ".late/producer/late.txt"
	for key, text := range map[string]string{prefix + "inventory.json.sha512": "stale", orphan: "by a late worker"} {
		in := &s3.PutObjectInput{Bucket: &out.StorageBucket, Key: aws.String(key), Body: strings.NewReader(text)}
		if _, err := buckets().PutObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	hidden(t, ark)
	until(t, "no worker of the job can be late, and the consumers have passed the object", 3*soon, func() bool {
		return len(findings(t, false, ark, prefix)) == 3
	})
	for _, f := range findings(t, true, ark, prefix) {
		if !f.Repaired {
			t.Errorf("it was not repaired: %+v", f)
		}
	}
	if found := findings(t, false, batch, ark, prefix); len(found) > 0 {
		t.Errorf("the doctor finds %+v", found)
	}
	_, err := buckets().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &out.StorageBucket, Key: &orphan})
	if err == nil {
		t.Error("what a late worker has left is still there")
	}
}
