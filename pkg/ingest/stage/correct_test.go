package stage_test

import (
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// correct submits a correction of an object, changed by how, and runs what can run.
func (w *twins) correct(ark string, how ...func(*ingest.Batch)) string {
	w.Helper()
	return w.Submit("", append([]func(*ingest.Batch){func(b *ingest.Batch) {
		b.Primary, b.LocalIDs, b.Payload = ark, nil, ingest.Payload{Type: ingest.TypeCorrection}
		b.Note, b.Submitter = "a typing error", "ada@example.org"
	}}, how...)...)
}

func withdrawing(ids ...string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Withdrawn = ids }
}

// namedBy is the object that a local id names, "" if none does.
func (w *twins) namedBy(id string) string {
	w.Helper()
	ark, err := w.Stages.Inventory.ByLocalID(w.Context(), "bench", id)
	if err != nil {
		w.Fatal(err)
	}
	return ark
}

// TestCorrection: a correction makes a version with the files of the one before and what it says. It says who made
// it and why, and takes nothing from the records among the stored files, which said what is wrong.
func TestCorrection(t *testing.T) {
	p := newPackages(t)
	first := p.pack(map[string]string{"a.txt": "a", "mrt-erc.txt": "who: Wrogn, A\nwhat: Notes\nrights: CC0\n"})
	ark := p.Ended(first, 1, false).Primary
	requests := len(p.files)
	p.server.Close() // nothing is downloaded
	id := p.correct(ark, func(b *ingest.Batch) { b.Who = "Wrong, A" })
	j := p.Ended(id, 2, false)
	before, err := p.Stages.Root.Head(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"producer/a.txt", "producer/mrt-erc.txt"} {
		for n := 1; n <= 2; n++ {
			key, err := aip.Of(p.Stages.Root, before, n).Content(t.Context(), name)
			if err != nil || !strings.Contains(key, "/v1/") {
				t.Errorf("%s of v%d is %s, %v", name, n, key, err)
			}
		}
	}
	if erc := p.system(id, "mrt-erc.txt"); !strings.HasPrefix(erc, "erc:\nwho: Wrong, A\nwhat: Notes\n") {
		t.Errorf("the record is %s", erc)
	}
	if dc := p.system(id, "mrt-dc.xml"); !strings.Contains(dc, "<dc:rights>CC0</dc:rights>") {
		t.Errorf("the Dublin Core is %s", dc)
	}
	premis := p.system(id, "premis.xml")
	if !strings.Contains(premis, ">metadata modification<") || !strings.Contains(premis, "Reason: a typing error") ||
		strings.Contains(premis, ">transfer<") || strings.Contains(premis, "message digest calculation") {
		t.Errorf("the provenance is %s", premis)
	}
	v := before.Versions[2]
	if v.Message != "a typing error" || v.User.Name != "ada@example.org" {
		t.Errorf("the version says %+v", v)
	}
	row, err := p.Stages.Inventory.Object(t.Context(), ark)
	if err != nil || row.Who != "Wrong, A" || row.Title != "Notes" {
		t.Errorf("the row is %+v, %v", row, err)
	}
	if j.Files != requests-1 || j.Bytes == 0 {
		t.Errorf("the job has %d files of %d bytes", j.Files, j.Bytes)
	}
	p.Ended(p.correct(ark, func(b *ingest.Batch) { b.Who = "Wrong, A" }), 2, true)
}

// TestCorrectionOfManyFiles: a list of files that is longer than a segment is read from the version before.
func TestCorrectionOfManyFiles(t *testing.T) {
	p := newPackages(t)
	files := map[string]string{}
	for i := range workspace.SegmentFiles + 1 {
		files[strings.Repeat("x", i/100+1)+string(rune('a'+i%26))+strings.Repeat("y", i%100)] = "same"
	}
	ark := p.Ended(p.pack(files), 1, false).Primary
	p.Ended(p.correct(ark, stagetest.Titled("Notes")), 2, false)
	stored, err := p.Stages.Root.Head(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if _, err := aip.Head(p.Stages.Root, stored).Content(t.Context(), "producer/"+name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedCorrections: what cannot be corrected is refused with the reason.
func TestRefusedCorrections(t *testing.T) {
	w := newTwins(t)
	w.Refused(w.correct(stagetest.OnShoulder("fk4none"), stagetest.Titled("x")), "there is nothing to correct")
	maps := w.Ended(w.Submit("a.txt", stagetest.In("maps")), 1, false).Primary
	w.Refused(w.correct(maps, stagetest.Titled("x")), "not an object that this submission may change")
	own := w.Ended(w.Submit("a.txt", stagetest.Of("", "A")), 1, false).Primary
	w.Ended(w.Submit("b.txt", stagetest.Of("", "B")), 1, false)
	w.Refused(w.correct(own, stagetest.Of(own, "B")), `the local id "B" belongs to another object`)
	expecting := func(b *ingest.Batch) { b.IfVersion = 2 }
	w.Refused(w.correct(own, stagetest.Titled("x"), expecting), "expects version 2")
}

// TestWithdrawnIDs: a local id that is withdrawn is free for another object. It stays in the history of the first,
// and the rows that are made from the storage are the same.
func TestWithdrawnIDs(t *testing.T) {
	w := newPackages(t)
	x := w.Ended(w.Submit("a.txt", stagetest.Of("", "A", "B")), 1, false).Primary
	w.Ended(w.correct(x, withdrawing("A")), 2, false)
	o, err := w.Stages.Inventory.Object(t.Context(), x)
	if err != nil || !slices.Equal(o.LocalIDs, []string{"B"}) || w.namedBy("A") != "" || w.namedBy("B") != x {
		t.Fatalf("%v, %v; A is %s, B is %s", o.LocalIDs, err, w.namedBy("A"), w.namedBy("B"))
	}
	found := w.Ended(w.pack(map[string]string{"mrt-erc.txt": "who: a\nwhere: A; C\n"}, stagetest.Of("", "B")), 3, false)
	if w.namedBy("A") != "" || w.namedBy("C") != x || len(found.FileWarnings) != 1 ||
		!strings.Contains(found.FileWarnings[0], `the local id "A", which was withdrawn`) {
		t.Errorf("a package that names A made it %s, C %s: %q", w.namedBy("A"), w.namedBy("C"), found.FileWarnings)
	}
	y := w.Ended(w.Submit("y.txt", stagetest.Of("", "A")), 1, false).Primary
	if y == x {
		t.Fatal("A is still the first object")
	}
	w.Forget()
	w.Reindexed(x)
	w.Reindexed(y)
	if w.namedBy("A") != y || w.namedBy("B") != x {
		t.Errorf("after a reindex A is %s, B is %s", w.namedBy("A"), w.namedBy("B"))
	}
	w.Ended(w.correct(y, withdrawing("A")), 2, false)
	w.Ended(w.correct(x, stagetest.Of(x, "A")), 4, false) // given back
	stored, err := w.Stages.Root.Head(t.Context(), x)
	if err != nil || w.namedBy("A") != x {
		t.Fatalf("A is %s, %v", w.namedBy("A"), err)
	}
	key, err := w.Stages.Root.Key(t.Context(), stored, 4, "system/mrt-mom.txt")
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := w.Stages.Root.Bucket.Read(t.Context(), key)
	if err != nil || strings.Contains(string(data), "withdrawn") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestWithdrawnWhileWaiting: a submission by a local id that a correction withdraws before it is processed makes
// another object, also if its object was looked up before. It gives back the lock of the first one.
func TestWithdrawnWhileWaiting(t *testing.T) {
	w := newTwins(t)
	x := w.Ended(w.Submit("a.txt", stagetest.Of("", "A")), 1, false).Primary
	stuck := true
	w.S3.Before = func(_, name string) int {
		if stuck && strings.HasSuffix(name, "/v2/inventory.json") {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	correction := w.correct(x, withdrawing("A"))
	waits := w.Submit("y.txt", stagetest.Of("", "A"))
	if c, j := w.Job(correction), w.Job(waits); c.State != ingest.Storing || j.State != ingest.Provisioning ||
		j.Primary != x {
		t.Fatalf("the correction is %s, the submission %s for %s", c.State, j.State, j.Primary)
	}
	stuck = false
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, correction, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, correction, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.Ended(correction, 2, false)
	if y := w.Ended(waits, 1, false); y.Primary == x || w.namedBy("A") != y.Primary {
		t.Errorf("the submission made %s, A is %s", y.Primary, w.namedBy("A"))
	}
	for _, row := range w.Rows.All() {
		if pk := row["pk"].(*types.AttributeValueMemberS).Value; strings.HasPrefix(pk, "LOCK#") {
			t.Errorf("the lock %s is held after all jobs have ended", pk)
		}
	}
}

// TestWithdrawnBeforeRequeue: a job that knows its object by a local id does not change it once the id is withdrawn.
func TestWithdrawnBeforeRequeue(t *testing.T) {
	w := newTwins(t)
	x := w.Ended(w.Submit("a.txt", stagetest.Of("", "A")), 1, false).Primary
	w.Refuse.Store(true)
	two := w.Submit("two.txt", stagetest.Of("", "A"))
	if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, two, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	w.Refuse.Store(false)
	w.Ended(w.correct(x, withdrawing("A")), 2, false)
	if _, err := queuetest.RequeueConfirmed(t.Context(), w.Machine.Queue, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.Refused(two, `the local id "A" was withdrawn from `+x)
}

// TestCorrectionOfDamage: a correction does not build on a missing file, and neither it nor a deposit takes one that
// is missing for one that the object never had. It can be requeued once that is restored.
func TestCorrectionOfDamage(t *testing.T) {
	for _, lost := range []string{"/producer/a.txt", "/" + aip.ListName, "/" + aip.OwnerName, "/" + aip.ERCName} {
		t.Run(path.Base(lost), func(t *testing.T) { testCorrectionOfDamage(t, lost) })
	}
}

func testCorrectionOfDamage(t *testing.T, lost string) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt"), 1, false).Primary
	o := object{w, ark, ocfl.Prefix(ark)}
	good, bad := o.keys(), o.keys()
	maps.DeleteFunc(bad, func(key, _ string) bool { return strings.HasSuffix(key, lost) })
	o.set(bad)
	id := w.correct(ark, stagetest.Titled("Notes"))
	for w.Job(id).State != ingest.Failed {
		if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, id, "it does not end", "me"); err != nil {
			t.Fatal(err)
		}
	}
	if j := w.Job(id); !strings.Contains(j.Message, "is damaged") {
		t.Errorf("%s: %q", j.State, j.Message)
	}
	if stored, err := w.Stages.Root.Head(t.Context(), ark); err != nil || stored.Head != 1 {
		t.Errorf("the object is at version %d, %v", stored.Head, err)
	}
	o.restored(good, id)
	w.Ended(id, 2, false)
}

// TestWithdrawal: a withdrawn object keeps its files and versions, and says why, by whom and when. It gets no other
// files before it is reinstated; its description can be corrected. The rows say what the storage says.
func TestWithdrawal(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt"), 1, false).Primary
	object := func() *inventory.Object {
		t.Helper()
		o, err := w.Stages.Inventory.Object(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	access := func(to ingest.Policy, reason string) func(*ingest.Batch) { return deciding(to, reason, "") }
	id := w.correct(ark, access(ingest.Withdraw, "the rights are disputed"))
	w.Ended(id, 2, false)
	is := object().Withdrawal
	if is == nil || is.Reason != "the rights are disputed" || is.By != "ada@example.org" || is.At == "" ||
		!fault.Is(object().Open(time.Now()), fault.Denied) {
		t.Fatalf("the withdrawal is %+v", is)
	}
	if premis := w.system(id, "premis.xml"); !strings.Contains(premis, ">policy assignment<") {
		t.Errorf("the provenance is %s", premis)
	}
	w.Ended(w.correct(ark, access(ingest.Withdraw, "again")), 2, true)
	w.Ended(w.correct(ark, stagetest.Titled("Notes")), 3, false)
	w.Forget()
	w.Reindexed(ark)
	if o := object(); o.Withdrawal == nil || *o.Withdrawal != *is || o.Title != "Notes" {
		t.Errorf("after a correction and a reindex it is %+v", o)
	}
	late := w.Submit("b.txt")
	if j := w.Job(late); j.State != ingest.Failed || j.NotRecoverable ||
		!strings.Contains(j.Message, "is withdrawn since") {
		t.Errorf("a deposit is %s: %s", j.State, j.Message)
	}
	w.Ended(w.correct(ark, access(ingest.Reinstate, "settled")), 4, false)
	if o := object(); o.Withdrawal != nil || o.Open(time.Now()) != nil {
		t.Errorf("reinstated, it is %+v", o)
	}
	stored, err := w.Stages.Root.Head(t.Context(), ark)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := aip.Head(w.Stages.Root, stored).Content(t.Context(), "producer/a.txt"); err != nil ||
		!strings.Contains(key, "/v1/") {
		t.Errorf("the file is %s, %v", key, err)
	}
	if _, err := queuetest.RequeueConfirmed(t.Context(), w.Machine.Queue, late, "it is reinstated", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.Ended(late, 5, false)
	w.Ended(w.correct(ark, access(ingest.Reinstate, "again")), 5, true)
}

// TestLegalHold: a legal hold and a retention are versions, and later versions repeat them. A held object takes
// deposits, corrections and a withdrawal. The rows say what the storage says.
func TestLegalHold(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt"), 1, false).Primary
	object := func() *inventory.Object {
		t.Helper()
		o, err := w.Stages.Inventory.Object(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	id := w.correct(ark, deciding(ingest.PlaceHold, "case 17", ""))
	w.Ended(id, 2, false)
	hold := object().LegalHold
	if hold == nil || hold.Reason != "case 17" || hold.By != "ada@example.org" || hold.At == "" || hold.Until != "" {
		t.Fatalf("the hold is %+v", hold)
	}
	if premis := w.system(id, "premis.xml"); !strings.Contains(premis, ">policy assignment<") ||
		!strings.Contains(premis, "Legal hold on the object: placed") {
		t.Errorf("the provenance is %s", premis)
	}
	w.Ended(w.correct(ark, deciding(ingest.PlaceHold, "case 17", "")), 2, true)
	w.Refused(w.correct(ark, deciding(ingest.PlaceHold, "case 18", "")), "under a legal hold already")
	w.Ended(w.correct(ark, deciding(ingest.Retain, "the law", "2036-12-31")), 3, false)
	w.Ended(w.Submit("b.txt"), 4, false)
	w.Ended(w.correct(ark, stagetest.Titled("Notes")), 5, false)
	w.Ended(w.correct(ark, deciding(ingest.Withdraw, "rights", "")), 6, false)
	is := object().Policies
	if is.Withdrawal == nil || is.LegalHold == nil || *is.LegalHold != *hold || is.Retention == nil ||
		is.Retention.Until != "2036-12-31" {
		t.Fatalf("after versions of all kinds it is %+v", is)
	}
	w.Forget()
	w.Reindexed(ark)
	if again := object().Policies; !reflect.DeepEqual(again, is) {
		t.Errorf("after a reindex it is %+v", again)
	}
	w.Refused(w.correct(ark, deciding(ingest.Retain, "a mistake", "2036-12-30")), "retained until 2036-12-31")
	w.Ended(w.correct(ark, deciding(ingest.Retain, "the same", "2036-12-31")), 6, true)
	w.Ended(w.correct(ark, deciding(ingest.Retain, "longer", "2040-01-01")), 7, false)
	w.Ended(w.correct(ark, deciding(ingest.LiftHold, "settled", "")), 8, false)
	w.Ended(w.correct(ark, deciding(ingest.LiftHold, "again", "")), 8, true)
	if o := object(); o.LegalHold != nil || o.Withdrawal == nil || o.Retention.Until != "2040-01-01" ||
		o.Retention.Reason != "longer" {
		t.Errorf("lifted, it is %+v", o.Policies)
	}
}

func deciding(p ingest.Policy, reason, until string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Policy, b.Note, b.LastDay = p, reason, until }
}
