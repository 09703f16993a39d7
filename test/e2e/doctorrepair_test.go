package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/objects/ocfl"
)

// findings runs the doctor and returns what it finds about these jobs, batches and objects;
// without any, all that it finds. The tests share the table: others may break things on
// purpose.
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
		return len(about) > 0 && !slices.ContainsFunc(about, isAbout)
	})
}

// TestDoctorRepairs: the doctor finds nothing about what the system has done; then it finds what
// somebody has changed in the storage root, and repairs it.
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
	var found []v1.Finding
	until(t, "no worker of the job can be late", 3*soon, func() bool {
		found = findings(t, false, ark, prefix)
		return len(found) == 2
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
