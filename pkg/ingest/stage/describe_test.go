package stage_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/ocfl"
)

// packages are sources of object manifests, each with files of its own.
type packages struct {
	*twins
	server *httptest.Server
	files  map[string][]byte
	row    func(*checkm.Row) // changes rows of manifests; nil: none
}

func newPackages(t *testing.T) *packages {
	p := &packages{twins: newTwins(t), files: map[string][]byte{}}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, has := p.files[strings.TrimPrefix(r.URL.Path, "/")]
		if !has {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// pack submits files as one object, changed by how, and runs what can run.
func (p *packages) pack(files map[string]string, how ...func(*ingest.Batch)) string {
	p.Helper()
	var rows []checkm.Row
	for name, content := range files {
		d := fetch.NewDigester()
		_, _ = d.Write([]byte(content))
		p.files[name] = []byte(content)
		rows = append(rows, checkm.Row{URL: p.server.URL + "/" + name, Algorithm: "sha256", Digest: d.Sums()["sha256"],
			Size: d.Size, Name: name})
	}
	for i := range rows {
		if p.row != nil {
			p.row(&rows[i])
		}
	}
	var manifest bytes.Buffer
	if err := checkm.Write(&manifest, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest",
		rows); err != nil {
		p.Fatal(err)
	}
	p.files["object.checkm"] = manifest.Bytes()
	return p.Submit("object.checkm", append([]func(*ingest.Batch){func(b *ingest.Batch) {
		b.URL, b.Type = p.server.URL+"/object.checkm", ingest.TypeObjectManifest
	}}, how...)...)
}

// system is a system file of a stored version.
func (w *twins) system(id, name string) string {
	w.Helper()
	j := w.Job(id)
	stored, err := w.Stages.Root.Head(w.Context(), j.Primary)
	if err != nil {
		w.Fatal(err)
	}
	key, err := w.Stages.Root.Key(w.Context(), stored, j.ObjectVersion, "system/"+name)
	if err != nil {
		w.Fatal(err)
	}
	data, _, err := w.Stages.Root.Bucket.Read(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return string(data)
}

func withMetadata(m ingest.Metadata) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Metadata = m }
}

// TestManyCreators: a description of very many values is preserved whole and
// recorded; the rows have a summary.
func TestManyCreators(t *testing.T) {
	p := newPackages(t)
	var cite strings.Builder
	cite.WriteString(`<resource xmlns="http://datacite.org/schema/kernel-4"><titles><title>` + strings.Repeat("ü",
		200_000) + `</title></titles>`)
	for i := range 5154 {
		fmt.Fprintf(&cite, "<creator><creatorName>Creator %d</creatorName></creator>", i)
	}
	id := p.pack(map[string]string{"mrt-datacite.xml": cite.String() + "</resource>"})
	j := p.Ended(id, 1, false)
	if erc := p.system(id, "mrt-erc.txt"); strings.Count(erc, "\nwho: ") != 5154 ||
		!strings.Contains(erc, strings.Repeat("ü", 200_000)) {
		t.Errorf("the stored description has %d bytes, %d creators", len(erc), strings.Count(erc, "\nwho: "))
	}
	o, err := p.Stages.Inventory.Object(t.Context(), j.Primary)
	if err != nil || len(o.Title) > 2000 || len(o.Who) > 2000 || !strings.HasPrefix(o.Who, "Creator 0; Creator 1; ") ||
		!strings.HasSuffix(o.Title, "ü…") || j.What != o.Title {
		t.Errorf("the row has %d and %d bytes, %v", len(o.Who), len(o.Title), err)
	}
	next := p.Ended(p.pack(map[string]string{"other.txt": "other"}), 2, false)
	if erc := p.system(next.Job.ID, "mrt-erc.txt"); strings.Count(erc, "\nwho: ") != 5154 {
		t.Error("the next version, submitted without a description, does not have the one of the version before")
	}
}

// TestDescription: where a description comes from, and what is refused.
func TestDescription(t *testing.T) {
	form := withMetadata(ingest.Metadata{Who: "form who", What: "form what", When: "(:unkn)",
		Where: "doi:10.5072/x; other"})
	p := newPackages(t)
	id := p.pack(map[string]string{"mrt-erc.txt": "\ufeffwho: A\nwho: B\nwhat: (:unkn)\nrights: CC0\n",
		"mrt-dc.xml": `<?xml version="1.0" encoding="ISO-8859-1"?><dc xmlns="http://purl.org/dc/elements/1.1/"><date>` +
			"1843\xb1" + `</date><subject>maths</subject></dc>`}, form)
	p.Ended(id, 1, false)
	if erc := p.system(id, "mrt-erc.txt"); !strings.HasPrefix(erc,
		"erc:\nwho: A\nwho: B\nwhat: form what\nwhen: 1843±\nwhere: ark:/") ||
		!strings.HasSuffix(erc, "\nwhere: one object\nwhere: doi:10.5072/x\nwhere: other\n") {
		t.Errorf("the description is %s", erc)
	}
	if dc := p.system(id, "mrt-dc.xml"); !strings.Contains(dc, "<dc:rights>CC0</dc:rights>") ||
		!strings.Contains(dc, "<dc:subject>maths</dc:subject>") || strings.Count(dc, "<dc:creator>") != 2 {
		t.Errorf("the Dublin Core is %s", dc)
	}
	none := p.pack(map[string]string{"a.txt": "a"}, func(b *ingest.Batch) { b.LocalIDs = []string{"another"} })
	if o, err := p.Stages.Inventory.Object(t.Context(), p.Ended(none, 1, false).Primary); err != nil || o.Title != "" {
		t.Errorf("the title of an object without a title is %q, %v", o.Title, err)
	}
	for says, file := range map[string]string{"save the file as UTF-8": "what: caf\xe9\n",
		"may have 1048576": "what: " + strings.Repeat("x", 1<<20),
		"two arks":         "where: ark:/99999/fk4a; ark:/99999/fk4b\n"} {
		p.Refused(p.pack(map[string]string{"mrt-erc.txt": file}), says)
	}
}

// TestWithdrawnValue: a code that says something, e.g. that the creator is not known, withdraws the value of the
// version before, wherever it is given; one that says that there is no value yet does not. A value of the same
// submission wins.
func TestWithdrawnValue(t *testing.T) {
	p := newPackages(t)
	files := map[string]string{"a.txt": "a"}
	said := func(who string) func(*ingest.Batch) { return withMetadata(ingest.Metadata{Who: who, What: "Notes"}) }
	wrong := p.Ended(p.pack(files, said("Wrong, Person")), 1, false)
	for _, code := range []string{"(:unas)", "(:TBA)", "(:unav)", ""} {
		p.Ended(p.pack(files, said(code)), 1, true)
	}
	is := func(id string, version int, who, row string) {
		t.Helper()
		j := p.Ended(id, version, false)
		o, err := p.Stages.Inventory.Object(t.Context(), wrong.Primary)
		if erc := p.system(id, "mrt-erc.txt"); err != nil || o.Who != row || o.Title != "Notes" || j.Who != row ||
			!strings.HasPrefix(erc, "erc:\nwho: "+who+"\nwhat: Notes\n") {
			t.Errorf("the row has %q and %q, %v; the record is %s", o.Who, o.Title, err, erc)
		}
	}
	is(p.pack(files, said("(:UNKN)")), 2, "(:unkn)", "")
	p.Ended(p.pack(files), 2, true) // what was withdrawn stays so
	is(p.pack(files, said("Lovelace, Ada")), 3, "Lovelace, Ada", "Lovelace, Ada")
	files["mrt-erc.txt"] = "who: (:none)\n"
	is(p.pack(files, said("Lovelace, Ada")), 4, "Lovelace, Ada", "Lovelace, Ada") // the form has a value
	is(p.pack(files), 5, "(:none)", "")
}

// TestCorrectedDescription: another title or another local id makes a new version of
// the same content; without a change there is no new version.
func TestCorrectedDescription(t *testing.T) {
	p := newPackages(t)
	files := map[string]string{"a.txt": "a", "b.txt": "b"}
	title := func(what string) func(*ingest.Batch) { return withMetadata(ingest.Metadata{What: what}) }
	first := p.Ended(p.pack(files, title("Notse")), 1, false)
	p.Ended(p.pack(files, title("Notse")), 1, true)
	copied := []string{}
	p.S3.Before = func(op, name string) int {
		if op == "Copy" && strings.Contains(name, "/producer/") {
			copied = append(copied, name)
		}
		return 0
	}
	corrected := p.pack(files, title("Notes"))
	p.Ended(corrected, 2, false)
	if erc := p.system(corrected, "mrt-erc.txt"); !strings.Contains(erc, "\nwhat: Notes\n") {
		t.Errorf("the new version says %s", erc)
	}
	p.Ended(p.pack(files, title("Notes")), 2, true)
	p.Ended(p.pack(files), 2, true) // no title given: the one before stays
	p.Ended(p.pack(files, func(b *ingest.Batch) { b.LocalIDs = append(b.LocalIDs, "a new id") }), 3, false)
	known, err := p.Stages.Inventory.ByLocalID(t.Context(), "bench", "a new id")
	if err != nil || known != first.Primary {
		t.Errorf("the new id is that of %q, %v", known, err)
	}
	if len(copied) > 0 {
		t.Errorf("%v were copied again", copied)
	}
}

// TestInvalidCharacters: what the system files cannot represent is refused with the
// reason, before anything is stored.
func TestInvalidCharacters(t *testing.T) {
	p := newPackages(t)
	for says, file := range map[string]string{"title (what) \"a\\x01b\" has the character U+0001": "what: a\x01b\n",
		"U+FFFE": "rights: \ufffe\n", "a character was lost": "who: \ufffd\n",
		"local id \"x\\uffff\"": "where: x\uffff\n"} {
		p.Refused(p.pack(map[string]string{"mrt-erc.txt": file}), says)
	}
	err := p.Stages.Root.Bucket.List(t.Context(), "", func(o bucket.Listed) error {
		t.Errorf("%s was stored", o.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVersionMetadata: a version names its submitter and the reason. Two submissions with
// the same note are still two versions.
func TestVersionMetadata(t *testing.T) {
	w := newTwins(t)
	by := func(who, note string) func(*ingest.Batch) {
		return func(b *ingest.Batch) { b.Submitter, b.Note = who, note }
	}
	j := w.Ended(w.Submit("a.txt", by("ada@example.org", "as agreed")), 1, false)
	w.Ended(w.Submit("b.txt", by("Ada", "as agreed")), 2, false)
	last := w.Ended(w.Submit("c.txt"), 3, false)
	stored, err := w.Stages.Root.Head(t.Context(), j.Primary)
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]ocfl.Version{
		1: {Message: "as agreed", User: &ocfl.User{Name: "ada@example.org", Address: "mailto:ada@example.org"}},
		2: {Message: "as agreed", User: &ocfl.User{Name: "Ada", Address: "urn:uuid:"}},
		3: {Message: "ingest of job " + last.Job.ID, User: &ocfl.User{Name: "unknown submitter", Address: "urn:uuid:"}},
	} {
		got := stored.Versions[n]
		if !strings.HasPrefix(got.Message, want.Message) || got.User.Name != want.User.Name ||
			!strings.HasPrefix(got.User.Address, want.User.Address) {
			t.Errorf("v%d says %q by %+v, expected %q by %+v", n, got.Message, got.User, want.Message, want.User)
		}
	}
}

// TestStoredManifests: the manifests that are kept with a version begin with their
// declaration, have every name exactly, and contain no credentials.
func TestStoredManifests(t *testing.T) {
	p := newPackages(t)
	names := []string{"a|b.txt", "blank at the end ", "plain.txt"}
	var rows strings.Builder
	for i, name := range names {
		p.files[fmt.Sprint(i)] = []byte(name)
		fmt.Fprintf(&rows, "http://user:secret@%s/%d | | | | 2026%%7c11 | %s | text/plain%%7cx\n",
			strings.TrimPrefix(p.server.URL, "http://"), i,
			strings.NewReplacer("|", "%7c", " ", "%20").Replace(name))
	}
	p.files["signed.checkm"] = []byte("#%checkm_0.7\n#%profile | " +
		"http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n" + rows.String() + "#%eof\n")
	id := p.Submit("signed.checkm", func(b *ingest.Batch) {
		b.URL, b.Type = p.server.URL+"/signed.checkm", ingest.TypeObjectManifest
	})
	p.Ended(id, 1, false)
	_, read, problems, err := checkm.ReadAll(strings.NewReader(p.system(id, "mrt-manifest.checkm")),
		checkm.Options{Stored: true})
	if err != nil || len(checkm.Rejected(problems)) > 0 || len(read) != len(names) {
		t.Fatalf("%d rows, %v, %v", len(read), problems, err)
	}
	for i, row := range read {
		if row.Name != "producer/"+names[i] || row.Modified != "2026|11" || row.MediaType != "text/plain|x" {
			t.Errorf("%+v", row)
		}
	}
	if kept := p.system(id, "mrt-submission-manifest.checkm"); !strings.HasPrefix(kept,
		"#%checkm_0.7\n# redacted; the submitted manifest had sha256 ") || strings.Contains(kept, "secret") {
		t.Errorf("the submission manifest is kept as\n%s", kept)
	}
}

// TestPreservationMetadata: each version is a representation of its own, of the one
// object; its files have fixity, size and format; agents are linked to what they did.
func TestPreservationMetadata(t *testing.T) {
	p := newPackages(t)
	p.Stages.Version = "v1.2.3"
	by := func(b *ingest.Batch) { b.Submitter = "ada@example.org" }
	first := p.pack(map[string]string{"a & b.txt": "a"}, by)
	second := p.pack(map[string]string{"a & b.txt": "a", "c.txt": "c"}, by)
	ark := p.Ended(first, 1, false).Primary
	for n, id := range map[int]string{1: first, 2: second} {
		text := strings.ReplaceAll(p.system(id, "premis.xml"), "\n", "")
		for _, want := range []string{
			`<object xsi:type="intellectualEntity"><objectIdentifier><objectIdentifierType>ARK</objectIdentifierType><objectIdentifierValue>` + ark + "<",
			`<object xsi:type="representation"><objectIdentifier><objectIdentifierType>archivist</objectIdentifierType><objectIdentifierValue>` + fmt.Sprintf("%s/v%d<", ark, n),
			fmt.Sprintf("<linkingObjectIdentifierValue>%s/v%d<", ark, n), "<originalName>a &amp; b.txt</originalName>",
			"all of these were verified", "<agentVersion>v1.2.3</agentVersion>",
			"<messageDigestOriginator>depositor</messageDigestOriginator>", "<formatName>text/plain</formatName>",
			"validated against the rules of its profile", "GET /v1/objects/{naan}/{name}/events",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("v%d: %s is not in\n%s", n, want, text)
			}
		}
		if files := strings.Count(text, `<object xsi:type="file">`); files != n {
			t.Errorf("v%d has %d files", n, files)
		}
		if strings.Count(text, ">authorizer<") != 1 || strings.Contains(text, ">person<") {
			t.Errorf("v%d: the submitter authorizes the transfer only, and is not known to be a person:\n%s", n, text)
		}
	}
}

// TestHostileDescriptions: any description of a package is refused before anything is
// stored, or it is stored and recorded without a change.
func TestHostileDescriptions(t *testing.T) {
	p, rng := newPackages(t), rand.New(rand.NewPCG(3, 3))
	parts := []string{"\n", "\r", "\r\n ", "\t", "\v", "\x00", "\u0085", "\u2028", " ", "\u00a0", ":", "#", ";", "%0a",
		"|", "]]>", "&", "<", `"`, "…", "e\u0301", "\u202e", "\U0010ffff",
		"\ufdd0", "\ufffe", "\ufffd", "\ufeff", strings.Repeat("long ", 20_000), "(:unas)", "ark:/99999/fk4x"}
	value := func() string {
		var b strings.Builder
		for range rng.IntN(5) {
			b.WriteString(parts[rng.IntN(len(parts))] + string(rune('a'+rng.IntN(26))))
		}
		return b.String()
	}
	refused, kept := 0, 0
	for i := range 30 {
		var dc bytes.Buffer
		dc.WriteString(`<dc xmlns="http://purl.org/dc/elements/1.1/">`)
		for _, name := range []string{"creator", "creator", "title", "date", "rights", "description"} {
			dc.WriteString("<" + name + ">")
			_ = xml.EscapeText(&dc, []byte(value()))
			dc.WriteString("</" + name + ">")
		}
		files := map[string]string{"mrt-dc.xml": dc.String() + "</dc>"}
		if i%2 == 0 {
			files = map[string]string{"mrt-erc.txt": "who: " + value() + "\nwhat: " + value() + "\nrights: " +
				value() + "\n"}
		}
		id := p.pack(files, func(b *ingest.Batch) { b.LocalIDs = []string{fmt.Sprint("object ", i)} })
		j := p.Job(id)
		if j.State == ingest.Failed {
			refused++
			if _, err := p.Stages.Root.Head(t.Context(), j.Primary); j.Primary != "" &&
				!fault.Is(err, fault.NotFound) ||
				!j.NotRecoverable || j.LastSuccessful != ingest.Downloading {
				t.Errorf("%q was refused with %q at %s, %v", files, j.Message, j.LastSuccessful, err)
			}
			continue
		}
		kept++
		p.Ended(id, 1, false)
		o, err := p.Stages.Inventory.Object(t.Context(), j.Primary)
		k, readErr := erc.ReadERC(strings.NewReader(p.system(id, "mrt-erc.txt")))
		all, xmlErr := erc.ReadDC(strings.NewReader(p.system(id, "mrt-dc.xml")))
		if err := errors.Join(err, readErr, xmlErr); err != nil {
			t.Fatalf("%q: %v", files, err)
		}
		if !slices.Equal(k.Who, all.Who) || !slices.Equal(k.What, all.What) || len(o.Title) > 2000 ||
			len(k.What) > 0 && !strings.HasPrefix(k.What[0], strings.TrimSuffix(o.Title, "…")) && len(k.What) == 1 {
			t.Errorf("%q: the ERC has %q, %q, the Dublin Core %q, %q, the row %q", files, k.Who, k.What, all.Who,
				all.What, o.Title)
		}
	}
	if refused < 5 || kept < 5 {
		t.Errorf("%d refused, %d kept: the values do not test much", refused, kept)
	}
}

// TestWhereOfList: identifiers of one object do not become those of each row.
func TestWhereOfList(t *testing.T) {
	p := newPackages(t)
	p.files["list.checkm"] = []byte("#%checkm_0.7\n#%profile | " +
		"http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest\n" + p.Source.URL +
		"/a | | | | | a |\n#%eof\n")
	for _, how := range []func(*ingest.Batch){
		func(b *ingest.Batch) { b.Where = "doi:10.5072/x" },
		func(b *ingest.Batch) { b.LocalIDs = []string{"one"} },
	} {
		b, err := p.Machine.Queue.Submit(t.Context(), func() ingest.Batch {
			b := ingest.Batch{Collection: "bench", Mode: "add",
				Payload: ingest.Payload{URL: p.server.URL + "/list.checkm", Type: ingest.TypeSingleFileBatch}}
			how(&b)
			return b
		}(), "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		p.Drive()
		row, err := p.Machine.Queue.Batch(t.Context(), b.ID)
		if err != nil || row.State != ingest.BatchFailed || !strings.Contains(row.Message, "name one object") {
			t.Errorf("the batch is %s: %q, %v", row.State, row.Message, err)
		}
	}
}
