package property

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/table/tabletest"
)

// preserved compares all answers about a completed job with what was served, and with what
// is stored.
func (w *world) preserved(ctx context.Context, j *job, made v1.Job, o *stored) {
	given := map[string][]byte{}
	for _, f := range j.object.files() {
		name := j.name(f)
		given[name] = w.source.given(j.paths[name])
		if given[name] == nil {
			w.fail("%s is completed, but %s was never fetched", made.ID, name)
		}
	}
	if o == nil {
		w.fail("%s is completed as %s, which is not in the storage root", made.ID, made.Identifiers.Primary)
		return
	}
	before := w.known.objects[o.ID]
	if j.primary != "" && j.primary != o.ID {
		w.fail("%s was submitted for %s, but is stored as %s", made.ID, j.primary, o.ID)
	}
	if target := w.known.target(j); target != before {
		w.fail("%s is stored as %s, but its identifiers belong to %+v", made.ID, o.ID, target)
	}
	v := j.version(before.head(), given)
	unchanged := before != nil && v.same(before.head())
	switch {
	case made.NoChange && !unchanged:
		w.fail("%s reports no change of %s, but it has %s; the head was %s", made.ID, o.ID, v, before.head())
		return
	case !made.NoChange && unchanged:
		w.fail("%s made a version %d of %s, but nothing changed: %s", made.ID, made.Version, o.ID, v)
		return
	case !made.NoChange:
		w.known.add(o.ID, j.submission.Collection, v)
	}
	if n := len(w.known.objects[o.ID].versions); made.Version != n || o.head() < n {
		w.fail("%s is version %d of %s, which should have %d, and has %d", made.ID, made.Version, o.ID, n, o.head())
		return
	}
	w.stored(made, o, v)
	if !made.NoChange {
		w.fixity(j, o)
	}
	w.answers(ctx, j, made, o, v)
}

// fixity checks that the depositor's digests are in the inventory, if OCFL has a name for
// the algorithm.
func (w *world) fixity(j *job, o *stored) {
	for _, f := range j.object.files() {
		a := f.Check.Algorithm
		if (a == "md5" || a == "sha1" || a == "sha256") && o.Fixity[a][f.Check.digest([]byte(f.Content))] == nil {
			w.fail("%s has no %s of %+q, which the depositor gave", o.ID, a, f.Name)
		}
	}
}

// String prints a version.
func (v version) String() string {
	var files []string
	for name, data := range v.files {
		files = append(files, fmt.Sprintf("%+q: %+q", short(name), short(string(data))))
	}
	slices.Sort(files)
	return fmt.Sprintf("{who %+q, what %+q, when %+q, ids %+q, %s}", short(v.who), short(v.what), short(v.when), v.ids,
		strings.Join(files, ", "))
}

// stored compares a version in the storage root with the expected one.
func (w *world) stored(made v1.Job, o *stored, v version) {
	if got := o.files(made.Version, "producer/"); !maps.EqualFunc(got, v.files,
		func(a, b []byte) bool { return string(a) == string(b) }) {
		w.fail("%s v%d has the files %s, not %s", o.ID, made.Version, version{files: got}, version{files: v.files})
	}
	system := o.files(made.Version, "system/")
	if got := elements(system["mrt-ingest.txt"])["job"]; !made.NoChange && !slices.Equal(got, []string{made.ID}) {
		w.fail("%s v%d names the job %q, not %s", o.ID, made.Version, got, made.ID)
	}
	or := func(s string) []string {
		if s == "" {
			return []string{"(:unas)"}
		}
		return []string{s}
	}
	w.equal(o.ID+" mrt-erc.txt", pickOf(elements(system["mrt-erc.txt"]), "who", "what", "when"),
		map[string][]string{"who": or(v.who), "what": or(v.what), "when": or(v.when)})
	w.equal(o.ID+" mrt-erc.txt", elements(system["mrt-erc.txt"])["where"], append([]string{o.ID}, v.ids...))
	mom := elements(system["mrt-mom.txt"])
	w.equal(o.ID+" mrt-mom.txt", mom["primaryIdentifier"], []string{o.ID})
	var listed []string
	for _, text := range mom["localIdentifier"] {
		listed = append(listed, strings.Split(text, "; ")...)
	}
	w.equal(o.ID+" mrt-mom.txt", listed, v.ids)
	var dc struct{ Creator, Title, Date, Identifier []string }
	if err := xml.Unmarshal(system["mrt-dc.xml"], (*struct {
		Creator    []string `xml:"http://purl.org/dc/elements/1.1/ creator"`
		Title      []string `xml:"http://purl.org/dc/elements/1.1/ title"`
		Date       []string `xml:"http://purl.org/dc/elements/1.1/ date"`
		Identifier []string `xml:"http://purl.org/dc/elements/1.1/ identifier"`
	})(&dc)); err != nil {
		w.fail("%s mrt-dc.xml: %v", o.ID, err)
	}
	w.equal(o.ID+" mrt-dc.xml", []string{strings.Join(dc.Creator, "; "), strings.Join(dc.Title, "; "),
		strings.Join(dc.Date, "; ")}, []string{v.who, v.what, v.when})
	w.equal(o.ID+" mrt-dc.xml", dc.Identifier, append([]string{o.ID}, v.ids...))
}

func pickOf(from map[string][]string, names ...string) map[string][]string {
	out := map[string][]string{}
	for _, n := range names {
		out[n] = []string{strings.Join(from[n], "; ")}
	}
	return out
}

// summarises reports a title that is neither the stored one nor its beginning.
func (w *world) summarises(where, title, stored string) {
	begins, cut := strings.CutSuffix(title, "…")
	if title != stored && (!cut || len(title) > 2000 || len(title) < 1900 || !strings.HasPrefix(stored, begins)) {
		w.fail("%s has the title %+q; stored is %+q", where, short(title), short(stored))
	}
}

// equal reports a value that is not as expected.
func (w *world) equal(where string, got, want any) {
	if g, v := reflect.ValueOf(got), reflect.ValueOf(want); g.Kind() == reflect.Slice && g.Len() == 0 && v.Len() == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		w.fail("%s is %s, want %s", where, short(fmt.Sprintf("%+v", got)), short(fmt.Sprintf("%+v", want)))
	}
}

// answers compares the API's answers about a completed job with its version.
func (w *world) answers(ctx context.Context, j *job, made v1.Job, o *stored, v version) {
	bytes := int64(0)
	for _, data := range v.files {
		bytes += int64(len(data))
	}
	inventory := o.inventory[made.Version]
	w.equal("the job", []any{made.Progress.Files, made.Progress.Bytes, made.InventoryDigest}, []any{len(v.files), bytes,
		inventory})
	receipt, err := w.api.Receipt(ctx, made.ID)
	w.equal("the receipt", []any{err, receipt.ARK, receipt.Version, receipt.NoChange}, []any{error(nil), o.ID,
		made.Version, made.NoChange})
	var files []v1.File
	for _, f := range receipt.Files {
		files = append(files, v1.File{Path: f.Path, Size: f.Size, Digests: f.Digests})
	}
	w.files("the receipt", files, v.files)
	w.given(j, receipt)
	at := v1.ObjectPath(o.ID)
	all, err := w.api.Files(ctx, o.ID, made.Version)
	if err != nil {
		w.fail("the files of %s: %v", o.ID, err)
	}
	isProducers := func(f v1.File) bool { return strings.HasPrefix(f.Path, "producer/") }
	w.files("the list of files", slices.DeleteFunc(slices.Clone(all), func(f v1.File) bool { return !isProducers(f) }),
		v.files)
	w.systemFiles(slices.DeleteFunc(all, isProducers), o.files(made.Version, "system/"))
	versions, err := w.api.Versions(ctx, o.ID)
	if err != nil || len(versions) != len(w.known.objects[o.ID].versions) && o.head() == made.Version {
		w.fail("%s has the versions %+v, %v", o.ID, versions, err)
		return
	}
	row := versions[made.Version-1]
	w.equal("the version", []any{row.Version, row.Files, row.Bytes, row.InventoryDigest}, []any{made.Version,
		len(v.files), bytes, inventory})
	if !made.NoChange {
		w.equal("the version", row.Job, made.ID)
	}
	if made.Version == o.head() {
		w.newest(ctx, at, o, v)
	}
	for name, data := range v.files {
		w.content(ctx, fmt.Sprintf("%s/versions/%d/content?path=%s", at, made.Version,
			url.QueryEscape("producer/"+name)), data)
		break // each takes a search
	}
}

// content compares what a reader gets with what was served.
func (w *world) content(ctx context.Context, at string, want []byte) {
	if got := w.follow(ctx, at); string(got) != string(want) {
		w.fail("%s returns %+q, want %+q", at, short(string(got)), short(string(want)))
	}
}

// follow reads what a route redirects to.
func (w *world) follow(ctx context.Context, at string) []byte {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.api.URL+at, nil)
	if err != nil {
		w.fail("%s: %v", at, err)
		return nil
	}
	resp, err := w.api.HTTP.Do(req)
	if err != nil || resp.StatusCode != http.StatusFound {
		w.fail("%s: %+v, %v", at, resp, err)
		return nil
	}
	return w.read(resp.Header.Get("Location"))
}

// newest compares the object's row with its head.
func (w *world) newest(ctx context.Context, at string, o *stored, v version) {
	row, err := w.api.Object(ctx, o.ID)
	w.equal("the object", []any{err, row.ARK, row.Version, row.InventoryDigest, row.Stored}, []any{error(nil), o.ID,
		o.head(), o.inventory[0], o.prefix})
	w.summarises("the object", row.Title, shown(v.what))
	w.equal("the object's ids", row.LocalIDs, v.ids)
	collection := w.known.objects[o.ID].collection
	w.equal("the object", row.Collection, collection)
	for _, id := range v.ids {
		found, err := w.api.Objects(ctx, v1.Filter{Collection: collection, LocalID: id})
		if err != nil || len(found) != 1 || found[0].ARK != o.ID {
			w.fail("the id %+q of %s finds %+v, %v", id, o.ID, found, err)
		}
	}
}

// files compares a list of files with what was served.
func (w *world) files(where string, got []v1.File, want map[string][]byte) {
	names := map[string]bool{}
	for _, f := range got {
		name := strings.TrimPrefix(f.Path, "producer/")
		data, there := want[name]
		if names[name] || !there || f.Size != int64(len(data)) {
			w.fail("%s has %+q of %d bytes; %v %v", where, f.Path, f.Size, names[name], there)
			return
		}
		names[name] = true
		w.digests(where, f, data)
	}
	if len(names) != len(want) {
		w.fail("%s has %d files of %d", where, len(names), len(want))
	}
}

func (w *world) digests(where string, f v1.File, data []byte) {
	if f.Digests["sha256"] == "" || f.Digests["sha512"] == "" {
		w.fail("%s has only the digests %v of %+q", where, f.Digests, f.Path)
	}
	for algorithm, value := range f.Digests {
		if algorithms[algorithm] == nil || digest(algorithm, data) != value {
			w.fail("%s has the %s %s of %+q", where, algorithm, value, f.Path)
		}
	}
}

// systemFiles compares the list of system files with what is stored.
func (w *world) systemFiles(got []v1.File, want map[string][]byte) {
	for _, f := range got {
		data, there := want[strings.TrimPrefix(f.Path, "system/")]
		if !there || f.Size != int64(len(data)) {
			w.fail("the list of files has %s of %d bytes; stored: %v, %d", f.Path, f.Size, there, len(data))
			return
		}
		w.digests("the list of files", f, data)
	}
	if len(got) != len(want) {
		w.fail("the list of files has %d system files of %d", len(got), len(want))
	}
}

// given compares the depositor's digests with the receipt.
func (w *world) given(j *job, r v1.Receipt) {
	for _, f := range j.object.files() {
		for _, line := range r.Files {
			if line.Path != "producer/"+j.name(f) || r.NoChange {
				continue
			}
			switch {
			case f.Check.Algorithm == "" && line.Given != nil, f.Check.Algorithm != "" && line.Given == nil:
				w.fail("the receipt has the depositor's digest %+v of %+q, who gave %q", line.Given, line.Path,
					f.Check.Algorithm)
			case line.Given != nil && (line.Given.Algorithm != f.Check.Algorithm ||
				line.Given.Value != f.Check.digest([]byte(f.Content))):
				w.fail("the receipt has the depositor's digest %+v of %+q", line.Given, line.Path)
			}
		}
	}
}

// report compares the stored report of a batch with its jobs.
func (w *world) report(ctx context.Context, batch string, made []v1.Job) {
	var report struct {
		Batch             string
		Completed, Failed []struct {
			Job, ARK, Title, Message string
			Version                  int
			NoChange                 bool
			LocalIDs                 []string
			Files                    int
			Bytes                    int64
			FileDetails              []v1.File
		}
	}
	data := w.follow(ctx, "/v1/batches/"+batch+"/report")
	if err := json.Unmarshal(data, &report); err != nil || report.Batch != batch {
		w.fail("the report of %s: %v", batch, err)
		return
	}
	b, err := w.api.Batch(ctx, batch)
	if err != nil || b.Counts.Expected != len(made) || len(report.Completed)+len(report.Failed) != len(made) {
		w.fail("batch %s has %+v, its report %d and %d jobs; %d were made, %v", batch, b.Counts, len(report.Completed),
			len(report.Failed), len(made), err)
		return
	}
	by := map[string]v1.Job{}
	for _, j := range made {
		by[j.ID] = j
	}
	for _, line := range report.Completed {
		j := by[line.Job]
		w.equal("the report", []any{line.ARK, line.Version, line.NoChange, line.Files, line.Bytes},
			[]any{j.Identifiers.Primary, j.Version, j.NoChange, j.Progress.Files, j.Progress.Bytes})
		if k := w.known.objects[line.ARK]; k != nil && line.Version > 0 && line.Version <= len(k.versions) {
			v := k.versions[line.Version-1]
			w.summarises("the report", line.Title, shown(v.what))
			w.files("the report", line.FileDetails, v.files)
			for _, id := range line.LocalIDs {
				if !slices.Contains(v.ids, id) {
					w.fail("the report has the id %+q of %s, which has %+q", id, line.ARK, v.ids)
				}
			}
		}
	}
	for _, line := range report.Failed {
		if line.Message == "" {
			w.fail("the report has no reason for the failure of %s", line.Job)
		}
	}
}

// rows are the inventory's rows without their bookkeeping.
func (w *world) rows() map[string]tabletest.Item {
	rows := map[string]tabletest.Item{}
	for _, item := range w.fake.All() {
		key := text(item, "pk") + "/" + text(item, "sk")
		if !strings.HasPrefix(key, "OBJECT#") && !strings.HasPrefix(key, "LOCAL#") && !strings.HasPrefix(key, "ARK#") ||
			strings.Contains(key, "/EV#") {
			continue
		}
		if ark, is := strings.CutPrefix(text(item, "pk"), "ARK#"); is && w.known.objects[ark] == nil {
			continue // no object has this ARK: it may be drawn again
		}
		item = maps.Clone(item)
		for _, name := range []string{"rev", "wid", "version"} {
			delete(item, name)
		}
		rows[key] = item
	}
	return rows
}

// rebuild first reindexes the present inventory, which must change nothing. Then it deletes
// every row of the inventory, and rebuilds them from the storage root.
func (w *world) rebuild(ctx context.Context) {
	before := w.rows()
	w.reindex(ctx, "with nothing missing", before, 0)
	for _, item := range w.fake.All() {
		if key := text(item, "pk") + "/" + text(item, "sk"); before[key] != nil {
			in := &dynamodb.DeleteItemInput{TableName: new(string), Key: tabletest.Item{"pk": item["pk"],
				"sk": item["sk"]}}
			if _, err := w.fake.DeleteItem(ctx, in); err != nil {
				w.fail("the row %s cannot be deleted: %v", key, err)
			}
		}
	}
	w.reindex(ctx, "after all rows were deleted", before, len(w.known.objects))
}

func (w *world) reindex(ctx context.Context, when string, want map[string]tabletest.Item, changed int) {
	sum := 0
	for cursor := ""; ; {
		out, err := w.api.Reindex(ctx, v1.ReindexRequest{Cursor: cursor})
		if err != nil {
			w.fail("reindex %s: %v", when, err)
			return
		}
		sum += out.Changed
		cursor = out.Cursor
		if cursor == "" {
			break
		}
	}
	got := w.rows()
	for key, row := range want {
		if !reflect.DeepEqual(got[key], row) {
			w.fail("reindex %s makes the row %s %s; it was %s", when, key, show(got[key]), show(row))
		}
	}
	for key := range got {
		if want[key] == nil {
			w.fail("reindex %s makes the row %s", when, key)
		}
	}
	if sum != changed {
		w.fail("reindex %s changed %d of %d objects", when, sum, changed)
	}
}

func show(row tabletest.Item) string {
	data, err := json.Marshal(row)
	return short(fmt.Sprint(string(data), err))
}
