package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
)

// introduction is what a reader of the document sees first. It is CommonMark.
const introduction = `Archivist preserves what depositors submit, and reports on it.

**Submit** a batch: a file, or a manifest of files or of objects, by its URL. The archive makes a **job** of each object,
downloads and verifies its files, and stores them as the next **version** of the **object**. When all jobs have ended,
the batch has a **report**, and each job that succeeded a **receipt** with the digests of every file.

Lists are ` + "`{\"items\": […], \"cursor\": \"…\"}`" + `: pass ` + "`cursor`" + ` to get the next page, until there is none.
Times are ISO 8601 in UTC, sizes are bytes, digests are hexadecimal.

A refusal is a problem document (RFC 9457). Decide by its ` + "`type`" + `: the types do not change.`

// tags group the operations, in the order of a reader's questions.
var tags = []*huma.Tag{
	{Name: "Batches", Description: "What depositors submit, and how it ended."},
	{Name: "Jobs", Description: "One object each, on its way into the archive."},
	{Name: "Objects", Description: "What is preserved, with its versions, files and history."},
	{Name: "Collections", Description: "How what is submitted to a collection is treated."},
	{Name: "Operation", Description: "For those who run the archive."},
}

// enums are the values of fields that are made in more places than one.
var enums = map[string][]string{
	"Accepted.state": v1.BatchStates, "Batch.state": v1.BatchStates,
	"Job.state": v1.JobStates, "Job.lastSuccessfulState": v1.JobStates, "ReportJob.state": v1.JobStates,
	"Explanation.state":    append(slices.Clone(v1.JobStates), v1.Reporting, v1.UpdateReporting),
	"Event.type":           v1.EventTypes,
	"Explanation.waitsFor": v1.Waits,
	"Problem.type":         problemURIs(),
}

func problemURIs() (all []string) {
	for _, p := range problemTypes {
		all = append(all, p.URI())
	}
	return all
}

// parameter is what the document says of one.
type parameter struct{ description, example string }

// parameters are those of all operations by name, or by operation and name.
var parameters = map[string]parameter{
	"id":         {"The id of the batch or the job.", batchID},
	"collection": {"The name of the collection.", "maps"},
	"state":      {"Only those in this state, in any case of its letters.", v1.Failed},
	"cursor":     {"The cursor of the page before. Leave it out to begin.", ""},
	"localId":    {"The depositor's id of the object, with its collection.", "map-1851"},
	"ark":        {"The ARK of the object.", arkExample},
	"naan":       {"The first part of the ARK: who assigned it.", "99999"},
	"name":       {"The second part of the ARK.", "fk4tq65d6k"},
	"n":          {"The number of the version, from 1.", ""},
	"path":       {"The path of the file in the version.", "producer/map.tif"},

	"getCollection name":        {"The name of the collection.", "maps"},
	"putCollection name":        {"The name of the collection.", "maps"},
	"listCollectionEvents name": {"The name of the collection.", "maps"},

	"reindex ark":    {"Only the object with this ARK.", arkExample},
	"reindex cursor": {"The cursor of the answer before; or where to begin, the beginning of a key in the root.", "a0"},
	"reindex to":     {"Where to end, the beginning of a key in the root. So several can share the work.", "b"},

	"Idempotency-Key": {"A name of your own for this submission, so that it can be repeated.", "maps-2026-11-22"},
}

// configuration of the framework, with what the document says as a whole.
func configuration() huma.Config {
	c := huma.DefaultConfig("Archivist", "1.0.0")
	c.Info.Description = introduction
	c.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	c.Tags = tags
	// Relative to where the document is served: the API does not know under which path a
	// gateway serves it, and that is the server in every deployment.
	c.Servers = []*huma.Server{{URL: ".", Description: "The deployment that serves this document"}}
	c.Security = []map[string][]string{{"apiKey": {}}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"apiKey": {Type: "apiKey", In: "header",
		Name:        "x-api-key",
		Description: "The API key of the deployment. Every deployment on AWS asks for it, a local stack does not."}}
	c.DocsPath = ""     // ours needs nothing from elsewhere
	c.CreateHooks = nil // no $schema fields: answers are what the types say
	c.Transformers = append(c.Transformers, bounded)
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return c
}

// everywhere are the refusals that any operation can have.
var everywhere = []problemType{notAuthorized, invalidRequest, tooManyRequests, internalError, unavailable,
	gatewayTimeout}

// withBody are those of operations that take a body.
var withBody = []problemType{malformedRequest, tooLarge, unsupportedMedia}

// complete fills in what the framework does not know: descriptions, examples, and the
// refusals of each operation.
func complete(h huma.API) error {
	doc := h.OpenAPI()
	schema := doc.Components.Schemas
	problem := schema.Schema(reflect.TypeFor[v1.Problem](), true, "Problem")
	doc.Components.Responses = refusals(problem)
	for _, op := range operationsOf(doc) {
		about, known := operations[op.OperationID]
		if !known {
			return fmt.Errorf("api: the operation %s has no description", op.OperationID)
		}
		about.fill(op, schema)
	}
	detail := schema.Schema(reflect.TypeFor[v1.Event](), false, "Event").Properties["detail"]
	for _, t := range []reflect.Type{reflect.TypeFor[v1.StateChange](), reflect.TypeFor[v1.MailOutcome](),
		reflect.TypeFor[v1.ObjectRecord](), reflect.TypeFor[v1.Profile]()} {
		detail.OneOf = append(detail.OneOf, schema.Schema(t, true, ""))
	}
	return describe(schema)
}

// refusalOf is the name, in the document, of the answers with a status.
func refusalOf(status int) string { return "Refusal" + strconv.Itoa(status) }

// refusals are the answers that operations share, one for each status.
func refusals(problem *huma.Schema) map[string]*huma.Response {
	all := map[string]*huma.Response{}
	for _, p := range problemTypes {
		if p.status == methodNotAllowed.status {
			continue // no operation has it
		}
		r := all[refusalOf(p.status)]
		if r == nil {
			r = &huma.Response{Description: p.title + ".", Content: map[string]*huma.MediaType{
				problemMedia: {Schema: problem, Examples: map[string]*huma.Example{}}}}
			all[refusalOf(p.status)] = r
		}
		r.Content[problemMedia].Examples[p.name] = &huma.Example{Summary: p.title, Description: p.advice,
			Value: newRefusal(p, p.example).Problem}
	}
	return all
}

// operationsOf are the operations of a document.
func operationsOf(doc *huma.OpenAPI) (all []*huma.Operation) {
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		item := doc.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put} {
			if op != nil {
				all = append(all, op)
			}
		}
	}
	return all
}

// about is what the document says of an operation beyond its types.
type about struct {
	tag         string
	description string
	request     any // an example of the body
	answer      any // an example
	refusals    []problemType
	states      []string // that its parameter "state" can have
	redirect    string   // the media type of what it redirects to
	document    any      // an example of that
}

func (a about) fill(op *huma.Operation, schema huma.Registry) {
	op.Tags, op.Description = []string{a.tag}, a.description
	refusals := append(slices.Clone(everywhere), a.refusals...)
	if op.RequestBody != nil {
		refusals = append(refusals, withBody...)
		op.RequestBody.Content["application/json"].Example = a.request
	}
	delete(op.Responses, "default")
	for _, p := range refusals {
		status := strconv.Itoa(p.status)
		op.Responses[status] = &huma.Response{Ref: "#/components/responses/" + refusalOf(p.status)}
	}
	for _, status := range []int{http.StatusOK, http.StatusAccepted} {
		if r := op.Responses[strconv.Itoa(status)]; r != nil && a.answer != nil {
			r.Content["application/json"].Example = a.answer
		}
	}
	if a.redirect != "" {
		a.fillRedirect(op, schema)
	}
	for i, p := range op.Parameters {
		told := cmp.Or(parameters[op.OperationID+" "+p.Name], parameters[p.Name])
		p.Description = told.description
		if told.example != "" {
			p.Example = told.example
		}
		if p.Name == "state" {
			listed, values := *p, *p.Schema // those of the framework stay: it takes any case of the letters
			for _, s := range a.states {
				values.Enum = append(values.Enum, s)
			}
			listed.Schema = &values
			op.Parameters[i] = &listed
		}
	}
}

// fillRedirect says what a client gets that follows the redirect.
func (a about) fillRedirect(op *huma.Operation, schema huma.Registry) {
	what := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary",
		Description: "The bytes of the file."}}
	if a.document != nil {
		what = &huma.MediaType{Schema: schema.Schema(reflect.TypeOf(a.document), true, ""), Example: a.document}
	}
	op.Responses["302"].Description = "The URL in Location has it, for 15 minutes at most. It needs no key."
	op.Responses["200"] = &huma.Response{Description: "What that URL answers, for a client that follows redirects.",
		Content: map[string]*huma.MediaType{a.redirect: what}}
}
