package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/source"
)

// upload is the id of one that is open.
const upload = "01M7ZBMEYHBB62YP6RY21T1GQ7"

// file is a file whose content is a digit.
func file(name string, content int) *File {
	return &File{Name: name, Path: "here/" + name, SHA256: strings.Repeat(fmt.Sprint(content), 64), Size: 1}
}

// planned plans files that can be stored.
func planned(t *testing.T, f Files, id string) Plan {
	t.Helper()
	f.Check(func(format string, args ...any) { t.Errorf(format, args...) }, func(name string) { t.Error(name) })
	p, err := f.Plan(id, "")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlan: each content is sent once, the manifest that is submitted last; the manifests name the upload, and their
// sizes do not depend on it. The key depends on contents and names, and on nothing that the upload changes.
func TestPlan(t *testing.T) {
	a, b, same := file("a.txt", 1), file("b.txt", 2), file("same.txt", 1)
	folder := Object{ID: "folder", Files: []*File{a, same}}
	keys := map[string]bool{}
	for name, is := range map[string]struct {
		Files
		kind  string
		texts []string
	}{
		"a file": {Files{Objects: []Object{{IsFile: true, Files: []*File{a}}}}, "", nil},
		"a list": {Files{Listed: true, Objects: []Object{{Files: []*File{a, b, same}}}}, ingest.TypeObjectManifest,
			[]string{"| a.txt |", "| b.txt |", "| same.txt |"}},
		"each": {Files{Each: true, Objects: []Object{{ID: "a.txt", IsFile: true, Files: []*File{a}},
			{ID: "b.txt", IsFile: true, Files: []*File{b}}}}, ingest.TypeSingleFileBatch,
			[]string{"| a.txt |", "| b.txt |"}},
		"folders": {Files{Each: true, Objects: []Object{folder, {ID: "b.txt", IsFile: true, Files: []*File{b}}}},
			ingest.TypeBatchManifest, []string{"| a.txt |", "| same.txt |", "| folder.checkm |", "| b.txt.checkm |"}},
	} {
		before, p := planned(t, is.Files, source.NoUpload), planned(t, is.Files, upload)
		if before.Bytes() != p.Bytes() || len(before.Contents) != len(p.Contents) || p.Payload.Type != is.kind {
			t.Errorf("%s: %+v\n%+v", name, before, p)
		}
		sums := map[string]bool{}
		var out strings.Builder
		for _, c := range p.Contents {
			sums[c.SHA256] = true
		}
		last := p.Contents[len(p.Contents)-1]
		if len(sums) != len(p.Contents) || p.Payload.File != last.SHA256 || (last.Text == nil) != (is.texts == nil) {
			t.Errorf("%s: %+v", name, p)
		}
		if err := p.WriteManifests(&out); err != nil {
			t.Fatal(err)
		}
		for _, text := range is.texts {
			if !strings.Contains(out.String(), text) || !strings.Contains(out.String(), source.UploadURL(upload, "")) {
				t.Errorf("%s: no %q in\n%s", name, text, &out)
			}
		}
		if request := p.Request("maps", true); request.Files != len(sums) || !request.Again {
			t.Errorf("%s: %+v", name, request)
		}
		if before.Key("maps", "") != planned(t, is.Files, source.NoUpload).Key("maps", "") {
			t.Errorf("%s: another key", name)
		}
		for _, key := range []string{before.Key("maps", ""), before.Key("maps", "own"), before.Key("letters", "")} {
			if keys[key] {
				t.Errorf("%s: the key is that of something else", name)
			}
			keys[key] = true
		}
	}
	renamed := planned(t, Files{Objects: []Object{{IsFile: true, Files: []*File{file("c.txt", 1)}}}}, source.NoUpload)
	if keys[renamed.Key("maps", "")] {
		t.Error("a file has the key of another name")
	}
}

// TestCheck: what the archive cannot store is said before anything is sent.
func TestCheck(t *testing.T) {
	bad := Files{Each: true, Objects: []Object{
		{ID: "a;b", IsFile: true, Files: []*File{file("a;b", 1)}},
		{ID: "x", IsFile: true, Files: []*File{file("../x", 1)}},
		{ID: "x", Files: []*File{file("y", 1), file("y", 2), file("Y", 3)}},
		{ID: "z%20", Files: []*File{file("z%20", 1)}}}}
	var wrong, alike []string
	bad.Check(func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) },
		func(name string) { alike = append(alike, name) })
	for _, says := range []string{`the local id "a;b" has a ";"`, `"here/../x": the name `,
		`two objects would have the local id "x"`, `"here/y": another file is named "y"`, `"z%20": a manifest cannot have`,
		`"here/z%20": a manifest cannot have`} {
		if !slices.ContainsFunc(wrong, func(w string) bool { return strings.Contains(w, says) }) {
			t.Errorf("nothing says %s: %q", says, wrong)
		}
	}
	if !slices.Equal(alike, []string{"Y"}) {
		t.Errorf("alike: %q", alike)
	}
	if _, err := bad.Plan("short", ""); err == nil {
		t.Error("an upload with another kind of id")
	}
}
