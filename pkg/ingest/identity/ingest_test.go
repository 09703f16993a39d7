package identity_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/table"
)

// twins are the stages of one deployment on twins in this process.
type twins struct{ *stagetest.World }

func newTwins(t *testing.T) *twins { return &twins{stagetest.NewWorld(t)} }

// TestRowsLostBeforeSubmission: an object whose rows are lost stays closed to other
// collections, and its own collection can add versions.
func TestRowsLostBeforeSubmission(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt", stagetest.Of("", "A")), 1, false).Primary
	w.Forget()
	foreign := w.Submit("b.txt", stagetest.Of(ark), stagetest.In("maps"))
	w.Refused(foreign, "not an object that this submission may change")
	if says := w.Job(foreign).Message; strings.Contains(says, "bench") || strings.Contains(says, "maps") {
		t.Errorf("the refusal names an owner: %s", says)
	}
	if stored, err := w.Stages.Root.Head(t.Context(), ark); err != nil || stored.Head != 1 {
		t.Fatalf("the object has %d versions, %v", stored.Head, err)
	}
	own := w.Ended(w.Submit("b.txt", stagetest.Of(ark)), 2, false)
	if again := w.Ended(w.Submit("c.txt", stagetest.Of("", "A")), 3, false); again.Primary != own.Primary {
		t.Errorf("by its local id it is %s, by its ark %s", again.Primary, own.Primary)
	}
}

// TestStoredOwnerCounts: a row that names another owner than the storage root does not
// give access to the object.
func TestStoredOwnerCounts(t *testing.T) {
	w := newTwins(t)
	j := w.Ended(w.Submit("a.txt"), 1, false)
	row := w.Rows.Row(table.Key{PK: "OBJECT#" + j.Primary, SK: "OBJECT"})
	row["coll"] = &types.AttributeValueMemberS{Value: "maps"}
	if err := w.Stages.Queue.Table.Rows.Put(row).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Refused(w.Submit("b.txt", stagetest.Of(j.Primary), stagetest.In("maps")),
		"not an object that this submission may change")
}

// TestIdentityAccumulates: every version lists all local ids that the object ever had, so
// that they can be restored from the newest alone.
func TestIdentityAccumulates(t *testing.T) {
	w := newTwins(t)
	ark := w.Ended(w.Submit("a.txt", stagetest.Of("", "A", "B")), 1, false).Primary
	w.Ended(w.Submit("b.txt", stagetest.Of("", "A")), 2, false)
	w.Ended(w.Submit("c.txt", stagetest.Of(ark)), 3, false)
	w.Ended(w.Submit("d.txt", stagetest.Of(ark, "C")), 4, false)
	w.Forget()
	w.Reindexed(ark)
	o, err := w.Stages.Inventory.Object(t.Context(), ark)
	if err != nil || !slices.Equal(o.LocalIDs, []string{"A", "B", "C"}) {
		t.Errorf("it has %v, %v", o.LocalIDs, err)
	}
	for n, id := range []string{"A", "B", "C"} {
		if j := w.Ended(w.Submit(id+".txt", stagetest.Of("", id)), 5+n, false); j.Primary != ark {
			t.Errorf("%s is %s now, it was %s", id, j.Primary, ark)
		}
	}
}

// TestIdentityFollowsHead: if the object got a version after a job prepared the next one,
// the job prepares again, with the object's present identifiers and description.
func TestIdentityFollowsHead(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	w.Refuse.Store(true)
	two := w.Submit("two.txt", stagetest.Of("", "A", "B"))
	if _, err := queuetest.ForceFail(ctx, w.Machine.Queue, two, "it does not end", "me"); err != nil {
		t.Fatal(err)
	}
	ark := w.Job(two).Primary
	w.Ended(w.Submit("three.txt", stagetest.Of(ark, "A", "C"), stagetest.Titled("Three")), 1, false)
	w.Refuse.Store(false)
	if _, err := queuetest.RequeueConfirmed(ctx, w.Machine.Queue, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.Ended(two, 2, false)
	o, err := w.Stages.Inventory.Object(ctx, ark)
	if err != nil || !slices.Equal(o.LocalIDs, []string{"A", "C", "B"}) || o.Title != "Three" {
		t.Errorf("it has %v, %q, %v", o.LocalIDs, o.Title, err)
	}
}

// TestSuppliedARKs: an ark belongs to the collection of the first submission that uses it,
// and an invalid one is refused.
func TestSuppliedARKs(t *testing.T) {
	w := newTwins(t)
	w.Refuse.Store(true) // to store two.txt
	fails := func(how ...func(*ingest.Batch)) string {
		id := w.Submit("two.txt", how...)
		if _, err := queuetest.ForceFail(t.Context(), w.Machine.Queue, id, "it does not end", "me"); err != nil {
			t.Fatal(err)
		}
		return id
	}
	given := stagetest.OnShoulder("fk4given")
	minted, first := w.Job(fails(stagetest.Of(""))).Primary, fails(stagetest.Of(given))
	for _, ark := range []string{minted, given} {
		w.Refused(w.Submit("b.txt", stagetest.Of(ark), stagetest.In("maps")),
			"not an object that this submission may change")
	}
	w.Ended(w.Submit("b.txt", stagetest.Of(minted)), 1, false)
	w.Refuse.Store(false)
	if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, first, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.Drive()
	w.Ended(first, 1, false)
	if row, err := w.Stages.Inventory.Reserved(t.Context(), given); err != nil || row == nil || row.Job != first ||
		row.Collection != "bench" {
		t.Errorf("the reservation is %+v, %v", row, err)
	}
	wrong := given[:len(given)-1] + "0"
	if wrong == given {
		wrong = given[:len(given)-1] + "1"
	}
	w.Refused(w.Submit("b.txt", stagetest.Of(wrong)), "the check character of "+wrong+" is wrong")
	w.Refused(w.Submit("b.txt", stagetest.Of("ark:/99999/fk4")), "is the shoulder of this collection")
	w.Refused(w.Submit("b.txt", stagetest.Of("ark:/12345/fk4abc")), "it is not on the shoulder ark:/99999/fk4")
}

// TestMintedOnce: an ark whose rows are lost is not minted again.
func TestMintedOnce(t *testing.T) {
	w := newTwins(t)
	w.Stages.Draw = func(_ string, try int) func(int) int { // the first name is 000000000, the second 111111111
		return func(int) int { return try }
	}
	one := w.Ended(w.Submit("a.txt", stagetest.Of("")), 1, false).Primary
	w.Forget()
	if two := w.Ended(w.Submit("a.txt", stagetest.Of("")), 1, false).Primary; one == two {
		t.Errorf("%s was minted twice", one)
	}
	w.Refuse.Store(true)
	if three := w.Job(w.Submit("two.txt", stagetest.Of(""))).Primary; three == one || three == "" {
		t.Errorf("minted %q", three)
	}
}

// described makes the source serve these descriptions, by the names of the files.
func (w *twins) described(files map[string]string) {
	base := w.Source.Config.Handler
	w.Source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if text, has := files[r.URL.Query().Get("of")]; has {
			_, _ = out.Write([]byte(text))
			return
		}
		base.ServeHTTP(out, r)
	})
}

// saying submits an ERC as the package.
func (w *twins) saying(of string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.URL, b.Filename = w.Source.URL+"/mrt-erc.txt?of="+of, "mrt-erc.txt" }
}

// TestFoundIDs: identifiers in a package are added to the object's, and never select
// another object.
func TestFoundIDs(t *testing.T) {
	w := newTwins(t)
	w.described(map[string]string{"B": "who: a\nwhere: B\n", "C": "who: a\nwhere: C; D\n"})
	a := w.Ended(w.Submit("a.txt", stagetest.Of("", "A")), 1, false).Primary
	b := w.Ended(w.Submit("b.txt", stagetest.Of("", "B")), 1, false).Primary
	for name, ids := range map[string]func(*ingest.Batch){
		"none": stagetest.Of(""), "a local id": stagetest.Of("", "A"), "an ark": stagetest.Of(a),
		"a new local id": stagetest.Of("", "new"),
	} {
		id := w.Submit("", w.saying("B"), ids)
		w.Refused(id, `names the local id "B", which belongs to another object (`+b+`)`)
		if j := w.Job(id); j.ObjectVersion != 0 {
			t.Errorf("%s: it was stored as %s v%d", name, j.Primary, j.ObjectVersion)
		}
	}
	w.Ended(w.Submit("", w.saying("C"), stagetest.Of("", "A")), 2, false)
	for n, id := range []string{"C", "D"} {
		if j := w.Ended(w.Submit(id, stagetest.Of("", id)), 3+n, false); j.Primary != a {
			t.Errorf("%s is %s, not %s", id, j.Primary, a)
		}
	}
	w.Ended(w.Submit("", w.saying("B"), stagetest.Of("", "B")), 2, false)
	w.Ended(w.Submit("", w.saying("B"), stagetest.Of(b)), 2, true)
}

// TestFoundIDsAgain: an id that was found in a package is still one when the job runs
// again. If only a failed job had it, the same package can be submitted again with it.
func TestFoundIDsAgain(t *testing.T) {
	w := newTwins(t)
	w.described(map[string]string{"X": "who: a\nwhere: X\n"})
	ended := w.failing("store", "mrt-erc.txt")
	first := w.Submit("", w.saying("X"), stagetest.Of(""))
	if j := w.Job(first); j.State != ingest.Failed || j.Found != 1 || !slices.Equal(j.LocalIDs, []string{"X"}) {
		t.Fatalf("the first is %s with %v, %d found: %s", j.State, j.LocalIDs, j.Found, j.Message)
	}
	ended()
	if second := w.Ended(w.Submit("", w.saying("X"), stagetest.Of("")), 1,
		false); second.Primary != w.Job(first).Primary {
		t.Errorf("X is %s and %s", w.Job(first).Primary, second.Primary)
	}
	w.Refused(w.Submit("", w.saying("X"), stagetest.Of("")), `names the local id "X"`)
}
