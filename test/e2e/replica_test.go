package e2e

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/components/preservation"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
)

// replica is the name of the second bucket, if there is one. Every version is copied to it, so a run of all tests on an
// emulator has none.
var replica = flag.String("replica", "", "name of a second bucket on an emulator, for TestRepairFromCopy")

// TestRepairFromCopy: a stored file is damaged by hand, and then its copy. A check finds it within one run, with its
// metric; a person has it restored from the other bucket; the next check finds it right. The history has it all.
func TestRepairFromCopy(t *testing.T) {
	begin(t)
	if *replica == "" {
		t.Skip("a second bucket is needed: -replica NAME")
	}
	src := newSource(t)
	j := preserveFile(t, "copies", src.put("/copied.txt", bytes.Repeat([]byte("preserved for ever\n"), 1000)))
	ark := j.Identifiers.Primary
	o, err := client.Object(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	key := copied(t, ark, o.Stored)
	whole := stored(t, key)
	damageAndRepair(t, ark, key, v1.InStorage)
	historyHas(t, "object:"+ark, "object.create success", preservation.FixityChecked+" failure",
		"object.repair success", preservation.FixityChecked+" success")
	damageAndRepair(t, ark, key, v1.InCopy)
	historyHas(t, "object:"+ark, preservation.CopyChecked+" failure", preservation.CopyChecked+" success")
	if stored(t, key) != whole {
		t.Error("the stored file is not as it was")
	}
}

// damageAndRepair damages a file in one of the buckets, and has it repaired from the other one.
func damageAndRepair(t *testing.T, ark, key, in string) {
	t.Helper()
	bucket, checked := out.StorageBucket, preservation.FixityChecked
	if in == v1.InCopy {
		bucket, checked = *replica, preservation.CopyChecked
	}
	whole := storedIn(t, bucket, key)
	before := sumOf(t, cloudwatch.Namespace, preservation.PreservationFailures)
	if _, err := buckets().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
		Body: strings.NewReader("damaged" + whole[7:])}); err != nil {
		t.Fatal(err)
	}
	if has(t, ark, checked) {
		checkAgain(t, ark, checked)
	}
	last := checkFixity(t, ark, in, fixity.Damaged)
	if len(last.Problems) != 1 || last.Problems[0].Key != key || last.In != in {
		t.Errorf("found %+v", last)
	}
	rises(t, preservation.PreservationFailures, before)

	r, err := client.ProposeRepair(t.Context(), ark, v1.RepairRequest{In: in, File: key, Reason: "It is damaged."})
	if err != nil {
		t.Fatal(err)
	}
	r = comesTo(t, ark, r.ID, "planned")
	_, err = client.ConfirmRepair(t.Context(), ark, r.ID,
		v1.RepairConfirmation{Token: r.Token + "x", Reason: "The plan is right."})
	if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Invalid) {
		t.Errorf("confirmed with the token of another plan: %v", err)
	}
	if _, err = client.ConfirmRepair(t.Context(), ark, r.ID,
		v1.RepairConfirmation{Token: r.Token, Reason: "The plan is right."}); err != nil {
		t.Fatal(err)
	}
	comesTo(t, ark, r.ID, "done")
	if storedIn(t, bucket, key) != whole {
		t.Error("the file is not as it was")
	}
	checkFixity(t, ark, in, fixity.OK)
}

// copied waits until an object is in the second bucket, and returns the key of its file.
func copied(t *testing.T, ark, prefix string) (key string) {
	t.Helper()
	until(t, "the copy has the file", 2*soon, func() bool {
		all, err := buckets().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: replica, Prefix: &prefix})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Contents {
			if strings.HasSuffix(aws.ToString(c.Key), "/copied.txt") {
				key = *c.Key
			}
		}
		return key != "" && has(t, ark, preservation.Replicated)
	})
	return key
}

// historyHas compares the history of an item with what must be in it.
func historyHas(t *testing.T, id string, events ...string) {
	t.Helper()
	happened, err := client.ItemHistory(t.Context(), id, 100)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range happened {
		all = append(all, h.Name+" "+h.Outcome)
	}
	t.Logf("the history of %s: %s", id, strings.Join(all, ", "))
	for _, want := range events {
		if !slices.Contains(all, want) {
			t.Errorf("the history has no %s", want)
		}
	}
}

// has reports whether a version or its object has an event of a component.
func has(t *testing.T, ark, name string) bool {
	for _, id := range []string{"object:" + ark, "version:" + ark + "/v1"} {
		all, err := client.ItemHistory(t.Context(), id, 100)
		for _, h := range all {
			if err == nil && h.Name == name {
				return true
			}
		}
	}
	return false
}

// comesTo waits until a repair is in a state.
func comesTo(t *testing.T, ark, id, state string) (r v1.Repair) {
	t.Helper()
	until(t, "the repair is "+state, 2*soon, func() bool {
		all, err := client.Repairs(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		for _, r = range all {
			if r.ID == id && (r.State == "failed" || r.State == "refused") {
				t.Fatalf("the repair: %+v", r)
			}
			if r.ID == id && r.State == state {
				return true
			}
		}
		return false
	})
	return r
}
