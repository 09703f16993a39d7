package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// soon is how long a test waits for what normally takes less than half a minute: longer, it hangs. It is longer than
// the product's own recovery: on a busy machine a function can reach its time-out, and the consumers of what a relay
// had placed before it was ended are woken after five minutes, and then by the next minute's rule.
const soon = 15 * time.Minute

// TestSampleIsPreserved: the sample's real files become preserved, verified objects with
// the digests that their depositor gave. It needs no minute: wake-ups cause all of it, and nothing is repaired.
func TestSampleIsPreserved(t *testing.T) {
	begin(t)
	defer stopMinutes(t)()
	handler, err := localstack.SampleHandler()
	if err != nil {
		t.Fatal(err)
	}
	src := newSource(t)
	src.Config.Handler = handler
	objects, err := localstack.SampleObjects()
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]string{}
	files := 0
	for _, o := range objects {
		_, jobs[o.LocalID] = submit(t, src.URL+"/manifests/"+o.LocalID+".checkm?round=1", "", o.LocalID)
		files += len(o.Files)
	}
	if len(objects) < 6 || files < 15 {
		t.Fatalf("the sample has %d objects of %d files", len(objects), files)
	}
	var done []v1.Job
	for _, o := range objects {
		j := ends(t, jobs[o.LocalID], "Completed", 2*soon)
		done = append(done, j)
		if j.Version != 1 || j.Progress.Files != len(o.Files)+1 {
			t.Errorf("%s: %+v", o.LocalID, j)
		}
		for _, f := range o.Files {
			want, err := os.ReadFile(filepath.Join(stack.Root, "localstack", "sample", "files", f))
			if err != nil {
				t.Fatal(err)
			}
			if got := content(t, j, "producer/"+f); !bytes.Equal(got, want) {
				t.Errorf("%s: %s came back with %d bytes, %d were deposited", o.LocalID, f, len(got), len(want))
			}
		}
		ark := j.Identifiers.Primary // its slashes are those of the path, through every gateway
		if x, err := client.Explain(t.Context(), ark); err != nil || x.Kind != "Object" || x.ID != ark {
			t.Errorf("explained: %+v, %v", x, err)
		}
		if n := repairsOf(t, j.ID); n != 0 {
			t.Errorf("%s: the job needed %d repairs in a run without faults", o.LocalID, n)
		}
		left, err := buckets().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &out.WorkBucket,
			Prefix: aws.String("jobs/" + j.ID + "/")})
		if err != nil || len(left.Contents) > 0 {
			t.Errorf("%s: %d work files are left, %v", o.LocalID, len(left.Contents), err)
		}
	}
	validObjects(t, done...)
}

// TestWrongSubmissionsSayWhatIsWrong: each wrong submission fails with a message that says
// what is wrong, and only a job whose source can be corrected can be requeued.
func TestWrongSubmissionsSayWhatIsWrong(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/good.txt", []byte("good content"))
	wrong := src.row("/good.txt")
	wrong.Digest = strings.Repeat("0", 32)
	missing := src.row("/good.txt")
	missing.URL, missing.Name = src.URL+"/late.txt", "late.txt"
	cut := src.manifest(t, "/cut.checkm", src.row("/good.txt"))
	src.put("/cut.checkm", bytes.Replace(src.files["/cut.checkm"], []byte("#%eof\n"), nil, 1))

	_, digest := submit(t, src.manifest(t, "/wrong.checkm", wrong), "object-manifest")
	batch404, notFound := submit(t, src.manifest(t, "/missing.checkm", src.row("/good.txt"), missing),
		"object-manifest")
	_, noEOF := submit(t, cut, "object-manifest")
	for job, says := range map[string]string{digest: "the depositor's md5 is 0000", notFound: "404", noEOF: "#%eof"} {
		j := ends(t, job, "Failed", soon)
		if !strings.Contains(j.Message, says) {
			t.Errorf("job %s says %q, not %q", job, j.Message, says)
		}
	}
	for _, job := range []string{digest, noEOF} {
		err := requeue(t, job)
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "new submission") {
			t.Errorf("requeue of %s: %v", job, err)
		}
	}
	until(t, "the batch reports", soon, func() bool { return batchOf(t, batch404).State == "Failed" })
	if b, report := batchOf(t, batch404), reportOf(t, batch404); b.Counts.Failed != 1 ||
		!strings.Contains(report, "404") {
		t.Errorf("the batch is %+v with report %s", b, report)
	}
	src.put("/late.txt", []byte("good content"))
	if err := requeue(t, notFound); err != nil {
		t.Fatal(err)
	}
	j := ends(t, notFound, "Completed", soon)
	if j.RetryCount != 1 || string(content(t, j, "producer/late.txt")) != "good content" {
		t.Errorf("after the requeue: %+v", j)
	}
	if b := batchOf(t, batch404); b.Counts.Failed != 0 || b.Counts.Completed != 1 {
		t.Errorf("the counts are %+v", b.Counts)
	}
}

// TestRepeatedSubmissionIsOneBatch: a submission that is sent again with its key is the
// same batch; another one with this key is refused.
func TestRepeatedSubmissionIsOneBatch(t *testing.T) {
	begin(t)
	src := newSource(t)
	in := v1.BatchRequest{Collection: "e2e", Payload: v1.Payload{URL: src.put("/a.txt", []byte("first")), Type: "file"},
		Identifiers: &v1.Identifiers{Local: []string{"repeats"}}}
	one, err := client.Submit(t.Context(), in, "the same key")
	if err != nil {
		t.Fatal(err)
	}
	two, err := client.Submit(t.Context(), in, "the same key")
	if err != nil || one.ID != two.ID {
		t.Errorf("the same key gave %s and %s, %v", one.ID, two.ID, err)
	}
	in.Note = "another body"
	if _, err := client.Submit(t.Context(), in, "the same key"); !fault.Is(err, fault.Conflict) {
		t.Errorf("another body gave %v", err)
	}
	ends(t, ingest.JobID(one.ID, 1), "Completed", soon)
}

// TestJobsOfOneObjectRunInOrder: two jobs for one local id make two versions of one
// object, one after the other.
func TestJobsOfOneObjectRunInOrder(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/b.txt", []byte("second content, held back"))
	src.put("/c.txt", []byte("third content"))
	release := src.hold("/b.txt")
	_, first := submit(t, src.URL+"/b.txt", "file", "chain")
	until(t, "the first downloads", soon, func() bool { return jobOf(t, first).State == "Downloading" })
	_, second := submit(t, src.URL+"/c.txt", "file", "chain")
	until(t, "the second waits for the first", soon, func() bool {
		x, err := client.Explain(t.Context(), second)
		return err == nil && x.WaitsFor == "lock" && x.Root().ID == first
	})
	release()
	a, b := ends(t, first, "Completed", soon), ends(t, second, "Completed", soon)
	if a.Identifiers.Primary != b.Identifiers.Primary || a.Version != 1 || b.Version != 2 {
		t.Errorf("the jobs made %s v%d and %s v%d", a.Identifiers.Primary, a.Version, b.Identifiers.Primary, b.Version)
	}
	if got := string(content(t, a, "producer/b.txt")); got != "second content, held back" {
		t.Errorf("version 1 has %q", got)
	}
	if got := string(content(t, b, "producer/c.txt")); got != "third content" {
		t.Errorf("version 2 has %q", got)
	}
}

// TestReindexRestoresRows: the rows of objects follow from the storage root. When they are
// deleted, a reindex makes the same ones again.
func TestReindexRestoresRows(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("first"))
	src.put("/b.txt", []byte("second"))
	_, one := submit(t, src.manifest(t, "/a.checkm", src.row("/a.txt")), "object-manifest", "reindex", "another name")
	j := ends(t, one, "Completed", soon)
	_, two := submit(t, src.manifest(t, "/b.checkm", src.row("/a.txt"), src.row("/b.txt")), "object-manifest",
		"reindex", "another name")
	ends(t, two, "Completed", soon)
	receipt, err := client.Receipt(t.Context(), two)
	if err != nil || receipt.Version != 2 || len(receipt.Files) != 2 || receipt.Files[1].Given == nil ||
		receipt.Files[1].Given.Value != src.row("/b.txt").Digest ||
		receipt.Files[1].Digests["md5"] != src.row("/b.txt").Digest {
		t.Errorf("the receipt is %+v, %v", receipt, err)
	}
	look := func() string {
		o, err := client.Object(t.Context(), j.Identifiers.Primary)
		if err != nil {
			return err.Error()
		}
		v, err := client.Versions(t.Context(), o.ARK)
		if err != nil {
			t.Fatal(err)
		}
		l, err := client.Objects(t.Context(), v1.Filter{Collection: "e2e", LocalID: "another name"})
		if err != nil {
			t.Fatal(err)
		}
		objects := append(l, o)
		for i := range objects { // a component may check them meanwhile
			objects[i].Fixity, objects[i].Copy = v1.Fixity{}, nil
		}
		return fmt.Sprintf("%+v %+v", objects, v)
	}
	before := look()
	forget(t, "OBJECT#"+j.Identifiers.Primary, "LOCAL#e2e#reindex", "LOCAL#e2e#another name")
	if gone := look(); !strings.Contains(gone, "there is no object") {
		t.Fatalf("not forgotten: %s", gone)
	}
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		did, err := client.Reindex(t.Context(), v1.ReindexRequest{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		cursor = did.Cursor
		if pages > 100 {
			t.Fatal("the pages do not end")
		}
	}
	if after := look(); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// forget deletes the rows of partitions, but not their events, nor what was counted of an object: it is in the sum of
// its collection, too, which only the doctor could correct then.
func forget(t *testing.T, partitions ...string) {
	t.Helper()
	db := dynamodb.NewFromConfig(cfg)
	for _, pk := range partitions {
		rows, err := db.Query(t.Context(), &dynamodb.QueryInput{TableName: &out.TableName,
			KeyConditions: map[string]types.Condition{"pk": {ComparisonOperator: types.ComparisonOperatorEq,
				AttributeValueList: []types.AttributeValue{&types.AttributeValueMemberS{Value: pk}}}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(rows.Items) == 0 {
			t.Fatalf("there is no row %s", pk)
		}
		for _, row := range rows.Items {
			if sk := row["sk"].(*types.AttributeValueMemberS).Value; strings.HasPrefix(sk, "EV#") ||
				sk == "FORMATCOUNTS" {
				continue
			}
			if _, err := db.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &out.TableName,
				Key: map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]}}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCorrections: the title and the local id of an object are corrected without its content. The id that it had by
// mistake names another object from then on.
func TestCorrections(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("content"))
	src.put("/b.txt", []byte("other content"))
	_, first := submit(t, src.URL+"/a.txt", "file", "correct-wrong")
	ark := ends(t, first, "Completed", soon).Identifiers.Primary
	accepted, err := client.Correct(t.Context(), ark, v1.CorrectionRequest{What: "Corrected", Reason: "a typing error",
		AddLocal: []string{"correct-right"}, WithdrawLocal: []string{"correct-wrong"}}, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	_, other := submit(t, src.URL+"/b.txt", "file", "correct-wrong") // while the correction is in progress
	j := ends(t, ingest.JobID(accepted.ID, 1), "Completed", soon)
	if j.Version != 2 || j.Progress.Files != 1 {
		t.Errorf("the correction is %+v", j)
	}
	if text := string(content(t, j, "producer/a.txt")); text != "content" {
		t.Errorf("the file has %q", text)
	}
	if second := ends(t, other, "Completed", soon); second.Identifiers.Primary == ark || second.Version != 1 {
		t.Errorf("the submission with the withdrawn id is %+v", second)
	}
	o, err := client.Object(t.Context(), ark)
	if err != nil || o.Title != "Corrected" || !slices.Equal(o.LocalIDs, []string{"correct-right"}) {
		t.Errorf("the object is %+v, %v", o, err)
	}
	if says := string(content(t, j, "system/mrt-mom.txt")); !strings.Contains(says,
		"withdrawnLocalIdentifier: correct-wrong") {
		t.Errorf("the identifiers are %s", says)
	}
	validPremis(t, content(t, j, "system/premis.xml"), ark, ">metadata modification<", "Reason: a typing error")
}

// TestWithdrawal: no file of a withdrawn object is given out, in no version; whoever asks is told the reason. It is
// listed and found as withdrawn, its description is readable, and once reinstated it is as before.
func TestWithdrawal(t *testing.T) {
	begin(t)
	j := preserve(t, "withdrawn", newSource(t), "/disputed.txt")
	ark := j.Identifiers.Primary
	tombstone := decided(t, ark, v1.CorrectionRequest{Access: "withdraw", Reason: "the rights are disputed"}, 2)
	validPremis(t, content(t, tombstone, "system/premis.xml"), ark, ">policy assignment<", "the rights are disputed")
	for n := 1; n <= 2; n++ {
		body, err := client.Content(t.Context(), ark, n, "producer/disputed.txt")
		if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), "the rights are disputed") {
			t.Errorf("v%d: %v, %v", n, body, err)
		}
	}
	if says := string(content(t, tombstone, "system/archivist-withdrawal.txt")); !strings.Contains(says, "disputed") {
		t.Errorf("the version says %s", says)
	}
	list, err := client.Objects(t.Context(), v1.Filter{Collection: "withdrawn"})
	if err != nil || len(list) != 1 || list[0].Withdrawn == nil || list[0].Withdrawn.By == "" {
		t.Errorf("listed is %+v, %v", list, err)
	}
	until(t, "it is found as withdrawn", soon, func() bool {
		found, err := client.Search(t.Context(), "collection:withdrawn", search.ByTitle, 10)
		return err == nil && len(found.Items) == 1 && found.Items[0].Withdrawn != nil
	})
	decided(t, ark, v1.CorrectionRequest{Access: "reinstate", Reason: "the rights are settled"}, 3)
	if text := string(content(t, j, "producer/disputed.txt")); text != "content of /disputed.txt" {
		t.Errorf("reinstated, the file has %q", text)
	}

	closed := decided(t, ark, v1.CorrectionRequest{EmbargoUntil: "2099-12-31", Reason: "the author's wish"}, 4)
	validPremis(t, content(t, closed, "system/premis.xml"), ark, "until 2099-12-31")
	if body, err := client.Content(t.Context(), ark, 1, "producer/disputed.txt"); !fault.Is(err, fault.Denied) ||
		!strings.Contains(err.Error(), "under an embargo until 2099-12-31: the author's wish") {
		t.Errorf("under the embargo: %v, %v", body, err)
	}
	if o, err := client.Object(t.Context(), ark); err != nil || o.Embargo == nil || o.Embargo.Until != "2099-12-31" {
		t.Errorf("the object is %+v, %v", o, err)
	}
	decided(t, ark, v1.CorrectionRequest{EmbargoUntil: "none", Reason: "the author agrees"}, 5)
	if text := string(content(t, j, "producer/disputed.txt")); text != "content of /disputed.txt" {
		t.Errorf("without the embargo, the file has %q", text)
	}
}

// TestDescriptionPrecedence: the package's description takes precedence over the form's,
// and what neither has is taken from the version before.
func TestDescriptionPrecedence(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("content"))
	src.put("/mrt-erc.txt", []byte("erc:\nwho: (:unas)\nwhat: From the package\nwhere: from-the-package\n"))
	src.put("/mrt-dc.xml", []byte(`<dc xmlns="http://purl.org/dc/elements/1.1/">
		<creator>From Dublin Core</creator><title>Not this</title></dc>`))
	_, one := submit(t, src.manifest(t, "/one.checkm", src.row("/a.txt"), src.row("/mrt-erc.txt"),
		src.row("/mrt-dc.xml")), "object-manifest", "description")
	j := ends(t, one, "Completed", soon)
	says := string(content(t, j, "system/mrt-erc.txt"))
	for _, want := range []string{"who: From Dublin Core", "what: From the package", "when: (:unas)",
		"where: " + j.Identifiers.Primary, "where: description", "where: from-the-package"} {
		if !strings.Contains(says, want) {
			t.Errorf("no %q in %s", want, says)
		}
	}
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "e2e", Payload: v1.Payload{URL: src.URL + "/a.txt",
		Type: "file"}, Identifiers: &v1.Identifiers{Local: []string{"from-the-package"}},
		Metadata: &v1.Metadata{When: "1843"}}, "described")
	if err != nil {
		t.Fatal(err)
	}
	again := ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	says = string(content(t, again, "system/mrt-erc.txt"))
	if again.Identifiers.Primary != j.Identifiers.Primary || again.Version != 2 ||
		!strings.Contains(says, "what: From the package") || !strings.Contains(says, "when: 1843") {
		t.Errorf("%+v: %s", again, says)
	}
}
