package api

import (
	"context"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/statistics"
)

// formatCounts registers the route of what is stored in each format, with the same as a table.
func (a *API) formatCounts(h huma.API) {
	op := operationAt(http.MethodGet, "/v1/formats", "getFormatCounts",
		"Get files and bytes by format")
	op.Middlewares = huma.Middlewares{a.orCSV(a.formatsCSV)}
	answer := &huma.Response{Description: "OK",
		Content: map[string]*huma.MediaType{"application/json": {}}}
	withCSV(answer, "The formats")
	op.Responses = map[string]*huma.Response{"200": answer}
	register(a, h, op, a.countedFormats)
}

// FormatsInput selects what is counted by format: of a collection, or of all.
type FormatsInput struct {
	Format
	Collection string `query:"collection" maxLength:"100"`
}

// countedFormats are the files and bytes by format, and whether each object that was added is
// counted.
func (a *API) countedFormats(ctx context.Context, in *FormatsInput) (out v1.FormatCounts,
	err error) {
	if in.Collection == "" {
		return a.allFormats(ctx)
	}

	// What was added is read first: so an object that is added meanwhile is not missing.
	added, err := a.Statistics.Total(ctx, in.Collection)
	if err != nil {
		return out, err
	}
	counted, err := a.Formats.Total(ctx, in.Collection)
	out = wireFormats(counted.Counts, added.Counts)
	out.Collection = in.Collection
	return out, err
}

// allFormats is countedFormats of all collections. They are whole only if all were read.
func (a *API) allFormats(ctx context.Context) (out v1.FormatCounts, err error) {
	added, cutAdded, err := a.Statistics.All(ctx)
	if err != nil {
		return out, err
	}
	counted, cut, err := a.Formats.All(ctx)
	out = wireFormats(counted, added)
	out.Cut = cut || cutAdded
	out.Whole = out.Whole && !out.Cut
	return out, err
}

func wireFormats(is formatcounts.Counts, added statistics.Counts) v1.FormatCounts {
	out := v1.FormatCounts{
		Objects:    is.Objects,
		Identified: is.Identified,
		Added:      added[statistics.Objects],
		Whole:      is.Objects >= added[statistics.Objects],
		Files:      is.Files,
		Bytes:      is.Bytes,
		Formats:    []v1.FormatUse{},
	}
	for _, f := range is.Sorted() {
		out.Formats = append(out.Formats, v1.FormatUse{MediaType: f.MediaType, Format: f.ID, Name: f.Name,
			Files: f.Files, Bytes: f.Bytes})
	}
	return out
}

// formatsCSV are the formats as a table.
func (a *API) formatsCSV(c huma.Context) (*csvPage, error) {
	in := &FormatsInput{Collection: c.Query("collection")}
	if len(in.Collection) > maxCollection {
		return nil, fault.New(fault.Invalid, "collection: it has more than %d characters", maxCollection)
	}
	is, err := a.countedFormats(c.Context(), in)
	if err != nil {
		return nil, err
	}
	page := &csvPage{name: "formats"}
	return page, v1.WriteFormats(page, is)
}

// maxCollection is the longest name of a collection.
const maxCollection = 100

// formatOperations describes the operation.
var formatOperations = map[string]about{
	"getFormatCounts": {tag: "Collections", role: viewer, scope: ofList,
		answer: v1.FormatCounts{Collection: "maps", Objects: 120, Added: 120, Whole: true,
			Identified: 118, Files: 2970, Bytes: 71200444032, Formats: []v1.FormatUse{
				{MediaType: "image/tiff", Format: "fmt/353", Name: "Tagged Image File Format",
					Files: 2950, Bytes: 71200000000},
				{MediaType: "text/plain", Files: 20, Bytes: 444032}}},
		description: "The files and bytes that are stored, by format: of the newest version of each " +
			"object, also of one that is withdrawn. With `collection`, of that one; else of all, the " +
			"first 300. `whole` says whether each object is counted."},
}

func init() { maps.Copy(operations, formatOperations) }
