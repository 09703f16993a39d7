package api

import (
	"cmp"
	"embed"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/definition"
)

// The wire types are described once, by their comments: in go doc and in the OpenAPI
// document.
//
//go:embed v1/types.go v1/jobs.go v1/details.go v1/actions.go v1/operations.go v1/search.go
//go:embed v1/events.go v1/verify.go v1/filterwords.go
//go:embed v1/records.go v1/premis.go v1/preservation.go v1/corrections.go v1/collections.go
//go:embed v1/consumers.go v1/eventaction.go v1/replays.go v1/components.go v1/runs.go v1/items.go
//go:embed v1/research.go v1/researchers.go v1/researchfeeds.go v1/archives.go v1/tasks.go v1/explain.go v1/callers.go
//go:embed v1/uploads.go v1/check.go v1/notices.go
//go:embed v1/signin.go v1/status.go v1/settings.go v1/reindexruns.go v1/restores.go v1/activity.go
//go:embed v1/jobcounts.go v1/tokens.go v1/formats.go
var sources embed.FS

// comments are the comments of the wire types ("Job") and of their fields ("Job.state"). Parts of definitions are in
// package definition, which is read last: in v1 are other names for them.
var comments = sync.OnceValues(func() (map[string]string, error) {
	texts := [][]byte{}
	files, err := sources.ReadDir("v1")
	for _, file := range files {
		text, failed := sources.ReadFile("v1/" + file.Name())
		texts, err = append(texts, text), cmp.Or(err, failed)
	}

	out := map[string]string{}
	for _, text := range append(texts, definition.Parts) {
		file, failed := parser.ParseFile(token.NewFileSet(), "", text,
			parser.ParseComments|parser.SkipObjectResolution)
		err = cmp.Or(err, failed)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if types, ok := decl.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				commented(types, out)
			}
		}
	}
	return out, nil
})

// commented adds the comments of a type and of its fields to out. The key of a field is its name in
// JSON. Each declaration of a struct has one type.
func commented(decl *ast.GenDecl, out map[string]string) {
	spec := decl.Specs[0].(*ast.TypeSpec)
	out[spec.Name.Name] = sentence(decl.Doc)
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}

	for _, f := range fields.Fields.List {
		if f.Tag == nil {
			continue // an embedded struct: its fields have their own comments
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, _, _ := strings.Cut(tag, ",")
		out[spec.Name.Name+"."+name] = sentence(f.Doc)
	}
}

// sentence returns a comment as one line.
func sentence(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// describe puts the comments of the wire types, and the values that their fields can have, into the
// schemas of the document. It fails only if a source cannot be parsed. A schema without a comment gets
// an empty description, which a test finds. An example of an enumeration is its first value.
func describe(r huma.Registry) error {
	texts, err := comments()
	if err != nil {
		return err
	}

	for name, s := range r.Map() {
		t := r.TypeFromRef("#/components/schemas/" + name)
		s.Description = texts[nameOf(t)]
		for field, p := range s.Properties {
			key := declaring(t, field) + "." + field
			p.Description = texts[key]
			for _, value := range enums[key] {
				p.Enum = append(p.Enum, value)
			}
			if len(p.Enum) > 0 && len(p.Examples) == 0 {
				p.Examples = []any{p.Enum[0]}
			}
		}
	}
	return nil
}

// nameOf is the name of a type; List[Job] is a List.
func nameOf(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

// declaring is the name of the struct that declares a field with a JSON name: a struct, or one that is
// embedded in it. The comment is there, once for all structs that embed it.
func declaring(t reflect.Type, field string) string {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != field || f.Anonymous {
			continue
		}
		for _, i := range f.Index[:len(f.Index)-1] {
			t = t.Field(i).Type
		}
		break
	}
	return nameOf(t)
}

// enums are the values of fields whose values are defined elsewhere.
var enums = map[string][]string{
	"Upload.state": v1.UploadStates, "Accepted.state": v1.BatchStates, "Batch.state": v1.BatchStates,
	"Job.state": v1.JobStates, "Job.lastSuccessfulState": v1.JobStates,
	"ReportJob.state":        v1.JobStates,
	"StateBatches.state":     v1.CountedBatchStates,
	"Event.type":             v1.EventTypes,
	"ObjectRecord.change":    v1.Changes,
	"ExplainedLink.waitsFor": v1.Waits,
	"Task.state":             v1.TaskStates,
	"Problem.type":           problemURIs(),
	"Payload.type":           v1.PayloadTypes,
}

// problemURIs are the values of "type" in problem documents, ordered by status.
func problemURIs() (all []string) {
	for _, p := range problemTypes {
		all = append(all, p.URI())
	}
	return all
}
