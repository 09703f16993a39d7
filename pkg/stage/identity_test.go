package stage_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/table"
)

// inventoryKeys begin the keys of the inventory's rows.
var inventoryKeys = []string{"OBJECT#", "LOCAL#", "ARK#"}

// forget deletes the inventory's rows whose key begins with one of these; with
// none, all of them: objects, versions, local ids, reservations. Events stay.
func (w *twins) forget(keys ...string) (gone int) {
	w.Helper()
	if len(keys) == 0 {
		keys = inventoryKeys
	}
	for _, row := range w.rows.All() {
		k := table.Key{PK: row["pk"].(*types.AttributeValueMemberS).Value,
			SK: row["sk"].(*types.AttributeValueMemberS).Value}
		if strings.HasPrefix(k.SK, "EV#") || !slices.ContainsFunc(keys,
			func(begin string) bool { return strings.HasPrefix(k.String(), begin) }) {
			continue
		}
		if err := w.s.Queue.Table.Rows.Delete("pk", k.PK).Range("sk", k.SK).Run(w.Context()); err != nil {
			w.Fatal(err)
		}
		gone++
	}
	return gone
}

// reindexed brings back the rows of an object.
func (w *twins) reindexed(ark string) {
	w.Helper()
	changed, done, err := w.s.Reindexer().Object(w.Context(), ark, "me", time.Now().Add(time.Hour))
	if err != nil || !changed || !done {
		w.Fatalf("changed %v, done %v, %v", changed, done, err)
	}
}

// of makes a submission with these identifiers.
func of(ark string, local ...string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Primary, b.LocalIDs = ark, local }
}

func in(collection string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Collection = collection }
}

// TestRowsLostBeforeSubmission: an object whose rows are lost is still nobody
// else's, and its own collection goes on with it.
func TestRowsLostBeforeSubmission(t *testing.T) {
	w := newTwins(t)
	ark := w.ended(w.submit("a.txt", of("", "A")), 1, false).Primary
	w.forget()
	foreign := w.submit("b.txt", of(ark), in("maps"))
	w.refused(foreign, "not an object that this submission may change")
	if says := w.job(foreign).Message; strings.Contains(says, "bench") || strings.Contains(says, "maps") {
		t.Errorf("the refusal names an owner: %s", says)
	}
	if stored, err := w.s.Root.Head(t.Context(), ark); err != nil || stored.Head != 1 {
		t.Fatalf("the object has %d versions, %v", stored.Head, err)
	}
	own := w.ended(w.submit("b.txt", of(ark)), 2, false)
	if again := w.ended(w.submit("c.txt", of("", "A")), 3, false); again.Primary != own.Primary {
		t.Errorf("by its local id it is %s, by its ark %s", again.Primary, own.Primary)
	}
}

// TestStoredOwnerCounts: a row that says another owner than the storage root does
// not open the object.
func TestStoredOwnerCounts(t *testing.T) {
	w := newTwins(t)
	j := w.ended(w.submit("a.txt"), 1, false)
	row := w.rows.Row(table.Key{PK: "OBJECT#" + j.Primary, SK: "OBJECT"})
	row["coll"] = &types.AttributeValueMemberS{Value: "maps"}
	if err := w.s.Queue.Table.Rows.Put(row).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.refused(w.submit("b.txt", of(j.Primary), in("maps")), "not an object that this submission may change")
}

// TestIdentityAccumulates: every version lists all local ids that the object ever
// had, so that the newest alone brings them back.
func TestIdentityAccumulates(t *testing.T) {
	w := newTwins(t)
	ark := w.ended(w.submit("a.txt", of("", "A", "B")), 1, false).Primary
	w.ended(w.submit("b.txt", of("", "A")), 2, false)
	w.ended(w.submit("c.txt", of(ark)), 3, false)
	w.ended(w.submit("d.txt", of(ark, "C")), 4, false)
	w.forget()
	w.reindexed(ark)
	o, err := w.s.Inventory.Object(t.Context(), ark)
	if err != nil || !slices.Equal(o.LocalIDs, []string{"A", "B", "C"}) {
		t.Errorf("it has %v, %v", o.LocalIDs, err)
	}
	for n, id := range []string{"A", "B", "C"} {
		if j := w.ended(w.submit(id+".txt", of("", id)), 5+n, false); j.Primary != ark {
			t.Errorf("%s is %s now, it was %s", id, j.Primary, ark)
		}
	}
}

// TestIdentityFollowsHead: a version that was prepared for another one than the
// object is at now is described again, with what the object has now.
func TestIdentityFollowsHead(t *testing.T) {
	w, ctx := newTwins(t), t.Context()
	w.refuse.Store(true)
	two := w.submit("two.txt", of("", "A", "B"))
	if _, err := w.m.Queue.ForceFail(ctx, two, "it does not come to an end", "me"); err != nil {
		t.Fatal(err)
	}
	ark := w.job(two).Primary
	w.ended(w.submit("three.txt", of(ark, "A", "C"), titled("Three")), 1, false)
	w.refuse.Store(false)
	if _, err := w.m.Queue.RequeueConfirmed(ctx, two, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.ended(two, 2, false)
	o, err := w.s.Inventory.Object(ctx, ark)
	if err != nil || !slices.Equal(o.LocalIDs, []string{"A", "C", "B"}) || o.Title != "Three" {
		t.Errorf("it has %v, %q, %v", o.LocalIDs, o.Title, err)
	}
}

func titled(what string) func(*ingest.Batch) { return func(b *ingest.Batch) { b.What = what } }

// onShoulder is an ark with its check character.
func onShoulder(name string) string {
	return "ark:/99999/" + name + string(ark.CheckCharacter("99999/"+name))
}

// TestSuppliedARKs: an ark is its collection's from the first submission that uses
// it on, and one that cannot be right is refused.
func TestSuppliedARKs(t *testing.T) {
	w := newTwins(t)
	w.refuse.Store(true) // to store two.txt
	fails := func(how ...func(*ingest.Batch)) string {
		id := w.submit("two.txt", how...)
		if _, err := w.m.Queue.ForceFail(t.Context(), id, "it does not come to an end", "me"); err != nil {
			t.Fatal(err)
		}
		return id
	}
	given := onShoulder("fk4given")
	minted, first := w.job(fails(of(""))).Primary, fails(of(given))
	for _, ark := range []string{minted, given} {
		w.refused(w.submit("b.txt", of(ark), in("maps")), "not an object that this submission may change")
	}
	w.ended(w.submit("b.txt", of(minted)), 1, false)
	w.refuse.Store(false)
	if _, err := w.m.Queue.Requeue(t.Context(), first, "the store is back", "me"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.ended(first, 1, false)
	if row, err := w.s.Inventory.Reserved(t.Context(), given); err != nil || row == nil || row.Job != first ||
		row.Collection != "bench" {
		t.Errorf("the reservation is %+v, %v", row, err)
	}
	wrong := given[:len(given)-1] + "0"
	if wrong == given {
		wrong = given[:len(given)-1] + "1"
	}
	w.refused(w.submit("b.txt", of(wrong)), "the check character of "+wrong+" is wrong")
	w.refused(w.submit("b.txt", of("ark:/99999/fk4")), "is the shoulder of this collection")
	w.refused(w.submit("b.txt", of("ark:/12345/fk4abc")), "is not on the shoulder ark:/99999/fk4")
}

// TestMintedOnce: an ark whose rows are lost is not minted again.
func TestMintedOnce(t *testing.T) {
	w := newTwins(t)
	w.s.Draw = func(_ string, try int) func(int) int { // the first name is 000000000, the second 111111111
		return func(int) int { return try }
	}
	one := w.ended(w.submit("a.txt", of("")), 1, false).Primary
	w.forget()
	if two := w.ended(w.submit("a.txt", of("")), 1, false).Primary; one == two {
		t.Errorf("%s was minted twice", one)
	}
	w.refuse.Store(true)
	if three := w.job(w.submit("two.txt", of(""))).Primary; three == one || three == "" {
		t.Errorf("minted %q", three)
	}
}

// described lets the source give these descriptions by the names of the files.
func (w *twins) described(files map[string]string) {
	base := w.source.Config.Handler
	w.source.Config.Handler = http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if text, has := files[r.URL.Query().Get("of")]; has {
			_, _ = out.Write([]byte(text))
			return
		}
		base.ServeHTTP(out, r)
	})
}

// saying submits an ERC as the package.
func (w *twins) saying(of string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.URL, b.Filename = w.source.URL+"/mrt-erc.txt?of="+of, "mrt-erc.txt" }
}

// TestFoundIDs: identifiers in a package add to an object, and never make the
// submission one for another object.
func TestFoundIDs(t *testing.T) {
	w := newTwins(t)
	w.described(map[string]string{"B": "who: a\nwhere: B\n", "C": "who: a\nwhere: C; D\n"})
	a := w.ended(w.submit("a.txt", of("", "A")), 1, false).Primary
	b := w.ended(w.submit("b.txt", of("", "B")), 1, false).Primary
	for name, ids := range map[string]func(*ingest.Batch){
		"none": of(""), "a local id": of("", "A"), "an ark": of(a), "a new local id": of("", "new"),
	} {
		id := w.submit("", w.saying("B"), ids)
		w.refused(id, `names the local id "B", which belongs to another object (`+b+`)`)
		if j := w.job(id); j.ObjectVersion != 0 {
			t.Errorf("%s: it was stored as %s v%d", name, j.Primary, j.ObjectVersion)
		}
	}
	w.ended(w.submit("", w.saying("C"), of("", "A")), 2, false)
	for n, id := range []string{"C", "D"} {
		if j := w.ended(w.submit(id, of("", id)), 3+n, false); j.Primary != a {
			t.Errorf("%s is %s, not %s", id, j.Primary, a)
		}
	}
	w.ended(w.submit("", w.saying("B"), of("", "B")), 2, false)
	w.ended(w.submit("", w.saying("B"), of(b)), 2, true)
}

// TestFoundIDsAgain: an id that was found stays a found one when the job runs again,
// and one that only a failed job had is free for the same package submitted anew.
func TestFoundIDsAgain(t *testing.T) {
	w := newTwins(t)
	w.described(map[string]string{"X": "who: a\nwhere: X\n"})
	ended := w.failing("store", "mrt-erc.txt")
	first := w.submit("", w.saying("X"), of(""))
	if j := w.job(first); j.State != ingest.Failed || j.Found != 1 || !slices.Equal(j.LocalIDs, []string{"X"}) {
		t.Fatalf("the first is %s with %v, %d found: %s", j.State, j.LocalIDs, j.Found, j.Message)
	}
	ended()
	if second := w.ended(w.submit("", w.saying("X"), of("")), 1, false); second.Primary != w.job(first).Primary {
		t.Errorf("X is %s and %s", w.job(first).Primary, second.Primary)
	}
	w.refused(w.submit("", w.saying("X"), of("")), `names the local id "X"`)
}
