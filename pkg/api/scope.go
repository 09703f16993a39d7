package api

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// scope finds the collection of what a call is about. mine are the collections of a depositor who calls, at least
// one. An operation without a scope is not for depositors.
type scope func(a *API, c huma.Context, mine []string) (collection string, err error)

// errElsewhere is what a depositor hears of a thing in another collection, and of one that does not exist.
var errElsewhere = fault.New(fault.NotFound,
	"there is no such thing in the collections of the caller")

// inside returns errElsewhere if what a call is about is not in one of the collections.
func (a *API) inside(c huma.Context, of scope, mine []string) error {
	collection, err := of(a, c, mine)
	if fault.Is(err, fault.NotFound) || err == nil && !slices.Contains(mine, collection) {
		return errElsewhere
	}
	return err
}

// inHandler is the scope of operations whose handlers limit them: by mayDeposit or limits.
func inHandler(_ *API, _ huma.Context, mine []string) (string, error) { return mine[0], nil }

// ofBatch finds the collection of the batch in the path, ofJob of the job, ofObject of the object.
func ofBatch(a *API, c huma.Context, _ []string) (string, error) {
	return a.collectionOf(c.Context(), explain.Batch, c.Param("id"))
}

func ofJob(a *API, c huma.Context, _ []string) (string, error) {
	return a.collectionOf(c.Context(), explain.Job, c.Param("id"))
}

func ofUpload(a *API, c huma.Context, _ []string) (string, error) {
	return a.collectionOf(c.Context(), explain.Upload, c.Param("id"))
}

func ofObject(a *API, c huma.Context, _ []string) (string, error) {
	in := ARKInput{c.Param("naan"), c.Param("name")}
	return a.collectionOf(c.Context(), explain.Object, in.ark())
}

// ofList is the scope of lists: the collection in the query. The only one of a depositor is put there if it is not
// given, so that it is the one that the handler reads.
func ofList(_ *API, c huma.Context, mine []string) (string, error) {
	given := c.Query("collection")
	switch {
	case given != "":
		return given, nil
	case len(mine) > 1:
		return "", fault.New(fault.Invalid, "collection: it is missing; expected one of %s",
			strings.Join(mine, ", "))
	}
	r, _ := humago.Unwrap(c)
	q := r.URL.Query()
	if len(q["collection"]) > 1 {
		return "", errElsewhere
	}
	q.Set("collection", mine[0])
	r.URL.RawQuery = q.Encode()
	return mine[0], nil
}

// ofFound is the scope of a search for objects by their names: an ARK, or else a collection.
func ofFound(a *API, c huma.Context, mine []string) (string, error) {
	text := c.Query("ark")
	if text == "" {
		return ofList(a, c, mine)
	}
	return a.collectionOf(c.Context(), explain.Object, text)
}

// ofExplained is the scope of an explanation: of a batch, a job, an object or a collection.
func ofExplained(a *API, c huma.Context, _ []string) (string, error) {
	for _, other := range []string{"component", "consumer", "event", "clip"} {
		if c.Query(other) != "" {
			return "", errElsewhere
		}
	}

	id := c.Param("id")
	if local := c.Query("collection"); local != "" {
		return local, nil
	}
	kind, rest, typed := strings.Cut(id, ":")
	switch {
	case strings.HasPrefix(id, "ark:"):
		return a.collectionOf(c.Context(), explain.Object, id)
	case typed:
		return a.collectionOf(c.Context(), kind, rest)
	case v1.KindOf(id) == v1.KindJob:
		return a.collectionOf(c.Context(), explain.Job, id)
	}
	collection, err := a.collectionOf(c.Context(), explain.Batch, id)
	if fault.Is(err, fault.NotFound) {
		return a.collectionOf(c.Context(), explain.Upload, id)
	}
	return collection, err
}

// longestID bounds the ids that are looked up before the request is checked: they are in keys of the table.
const longestID = 300

// collectionOf finds the collection of a thing by its kind, whose case does not count. What is of another kind, or
// does not exist, is in none: errElsewhere.
func (a *API) collectionOf(ctx context.Context, kind, id string) (string, error) {
	switch {
	case id == "" || len(id) > longestID:
		return "", errElsewhere
	case strings.EqualFold(kind, explain.Collection):
		return id, nil
	case strings.EqualFold(kind, explain.Batch):
		return collectionIn(a.Queue.Batch(ctx, id))(func(b *queue.Batch) string { return b.Collection })
	case strings.EqualFold(kind, explain.Job):
		return collectionIn(a.Queue.Job(ctx, id))(func(j *queue.Job) string { return j.Collection })
	case strings.EqualFold(kind, explain.Upload):
		return collectionIn(a.Uploads.Upload(ctx, id))(func(u *upload.Upload) string { return u.Collection })
	case strings.EqualFold(kind, explain.Object):
		given, err := ark.Parse(id)
		if err != nil {
			return "", errElsewhere
		}
		return collectionIn(a.Inventory.Object(ctx, given.String()))(
			func(o *inventory.Object) string { return o.Collection })
	}
	return "", errElsewhere
}

// collectionIn is the collection of a row that was read, if it was.
func collectionIn[T any](row *T, err error) func(of func(*T) string) (string, error) {
	return func(of func(*T) string) (string, error) {
		if err != nil {
			return "", err
		}
		return of(row), nil
	}
}

// limits are the collections to which a caller is limited, nil if to none. It is for operations that are in the scope
// inHandler.
func limits(ctx context.Context) []string {
	x := identityOf(ctx)
	if x.Is(viewer) {
		return nil
	}
	return x.Of(access.Depositor)
}

// mayDeposit returns a Denied if a caller may not submit to a collection.
func mayDeposit(ctx context.Context, collection string) error {
	x := identityOf(ctx)
	mine := x.Of(access.Depositor)
	if x.Is(operator) || slices.Contains(mine, collection) {
		return nil
	}
	return fault.New(fault.Denied, "collection: the caller may submit to %s only",
		strings.Join(mine, ", "))
}

// ofOthers is what a caller with limits is told in place of what names, or counts, the work of others.
var ofOthers = map[explain.Wait]string{
	explain.Limit: "As many jobs run as may run at once. It goes on by itself when others have ended.",
	explain.Turn:  "Nothing is missing: it goes on by itself in its turn, within minutes.",
	explain.Space: "It waits for work space, which other work of the archive has. It goes on by " +
		"itself when that ends.",
	"": "It waits for other work of the archive, and goes on by itself when that has ended.",
}

// withinLimits takes from an explanation what it says of things that the caller may not see: the first of another
// collection in the chain and all behind it, and a line in which anything of another collection stands: its length
// would count that.
func (a *API) withinLimits(ctx context.Context, x explain.Explanation) (explain.Explanation,
	error) {
	mine := limits(ctx)
	if mine == nil {
		return x, nil
	}

	own, err := a.ownLinks(ctx, x.Chain, mine)
	if err != nil {
		return x, err
	}

	// Behind the last link is something that is not in the chain, or was there only until it was explained.
	hidden := own < len(x.Chain) || x.Cut || own == 1 && x.On != ""
	x.Chain = slices.Clone(x.Chain[:own])
	if err := a.hideAddresses(ctx, x.Chain); err != nil {
		return x, err
	}
	for i := range x.Chain {
		link := &x.Chain[i]
		text := ofOthers[link.Waits]
		if hidden && i == own-1 {
			text = cmp.Or(text, ofOthers[""])
		}
		link.Why = cmp.Or(text, link.Why)
	}
	x.Link, x.Ahead = x.Chain[0], aheadWithin(x.Ahead, mine)
	if hidden {
		x.Since, x.Until, x.Do, x.Facts, x.Cut = x.Waited, 0, nil, nil, false
	}
	if hidden && own == 1 {
		x.On = ""
	}
	return x, nil
}

// aheadWithin is a line, if all that stands in it is named, and of these collections; else nil.
func aheadWithin(a *explain.Ahead, mine []string) *explain.Ahead {
	foreign := func(b explain.Before) bool { return !slices.Contains(mine, b.Collection) }
	if a == nil || a.N == 0 || a.More || a.N > len(a.First) || slices.ContainsFunc(a.First, foreign) {
		return nil
	}
	return a
}

// ownLinks is how many links of a chain are in the collections, up to the first that is not. The first was asked for.
func (a *API) ownLinks(ctx context.Context, chain []explain.Link, mine []string) (int, error) {
	for n, link := range chain[1:] {
		collection, err := a.collectionOf(ctx, link.Kind, link.ID)
		switch {
		case fault.Is(err, fault.NotFound), err == nil && !slices.Contains(mine, collection):
			return n + 1, nil
		case err != nil:
			return 0, err
		}
	}
	return len(chain), nil
}
