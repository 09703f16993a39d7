package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
)

// introduction is the text at the beginning of the document, in CommonMark. It is published, as all
// texts in this file are.
const introduction = `Archivist preserves the content that depositors submit, and reports on it.

**Submit** a batch by the URL of a file, or of a manifest of files or of objects. The archive creates a **job** for
each object, downloads and verifies its files, and stores them as the next **version** of the **object**. When all
jobs have ended, the batch has a **report**, and each successful job has a **receipt** with the digests of every file.

Lists are ` + "`{\"items\": […], \"cursor\": \"…\"}`" + `: pass ` + "`cursor`" +
	` to get the next page. The last page has none.
Times are ISO 8601 in UTC, sizes are bytes, digests are hexadecimal.

An error response is a problem document (RFC 9457). Programs should decide by its ` + "`type`" + `:
the types do not change.`

// tags group the operations.
var tags = []*huma.Tag{
	{Name: "Uploads", Description: "Files that are sent before a submission."},
	{Name: "Tokens", Description: "Tokens of the deployment itself, for hooks and small programs."},
	{Name: "Batches", Description: "Submissions and their results."},
	{Name: "Merritt", Description: "Submissions by the clients of Merritt."},
	{Name: "Jobs", Description: "The ingest of one object each."},
	{Name: "Objects", Description: "Preserved objects with their versions, files and events."},
	{Name: "Collections", Description: "The settings for submissions to a collection."},
	{Name: "Events", Description: "What has happened, as the log of events has it."},
	{Name: "Consumers", Description: "What reacts to events."},
	{Name: "Components",
		Description: "What works on items, by the events that have happened to them."},
	{Name: "Items", Description: "What components work on: objects, versions, batches, and items made by hand."},
	{Name: "Explanations", Description: "What anything waits for, and what can be done about it."},
	{Name: "Research", Description: "Which clip is looked for in which recording, by whom, and what was found."},
	{Name: "Archives", Description: "What has revisions, and which of them are planned."},
	{Name: "Tasks", Description: "What runs when a revision was committed, by hand, or by schedule."},
	{Name: "Operation", Description: "For the operators of the archive."},
}

// configuration returns the settings of the framework and the general parts of the document.
func configuration() huma.Config {
	c := huma.DefaultConfig("Archivist", "1.0.0")
	c.Info.Description = introduction
	c.Info.License = &huma.License{Name: "Apache 2.0", Identifier: "Apache-2.0"}
	c.Tags = tags
	// Relative to the URL of the document, so it is right in every deployment: the API does
	// not know under which path a gateway serves it.
	c.Servers = []*huma.Server{{URL: ".", Description: "The deployment that serves this document"}}
	c.Security = []map[string][]string{{bearerScheme: {string(administrator)}}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		bearerScheme: {
			Type:         "http",
			Scheme:       "bearer",
			BearerFormat: "JWT",
			Description: "A token of the issuer of the deployment, for a person or a machine, " +
				"whose roles are in one of its claims; or a token that the deployment itself has " +
				"given to a program. A deployment on AWS requires one, a local stack without an " +
				"issuer does not. Each operation names the roles that can call it; one of them is " +
				"enough. The role depositor is for one collection, researcher for one project, " +
				"notifier for one archive.",
		},
	}

	c.DocsPath = ""     // our own page loads nothing from elsewhere
	c.CreateHooks = nil // no $schema fields: responses have exactly the fields of the types
	c.Transformers = append(c.Transformers, bounded)
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return c
}

// everywhere are the error responses that any operation can have.
var everywhere = []problemType{unauthenticated, notAuthorized, invalidRequest, tooManyRequests,
	internalError,
	unavailable,
	gatewayTimeout}

// withBody are those of operations with a request body.
var withBody = []problemType{malformedRequest, tooLarge, unsupportedMedia}

// complete adds what the framework does not know: descriptions, examples, and the error responses of
// each operation. It runs once, when the handler is made, after all routes are registered. An operation
// that has no entry in operations is an error, so that no route is without a description.
func complete(h huma.API) error {
	doc := h.OpenAPI()
	for path, item := range doc.Paths { // in the document, a parameter that is the rest of the path has its name alone
		if whole := strings.Replace(path, "...}", "}", 1); whole != path {
			delete(doc.Paths, path)
			doc.Paths[whole] = item
		}
	}

	schema := doc.Components.Schemas
	problem := schema.Schema(reflect.TypeFor[v1.Problem](), true, "Problem")
	doc.Components.Responses = refusals(problem)
	for _, op := range operationsOf(doc) {
		about, known := operations[op.OperationID]
		if !known {
			return fmt.Errorf("api: the operation %s has no description", op.OperationID)
		}
		about.fill(op, schema, doc.Components.Responses)
	}

	detail := schema.Schema(reflect.TypeFor[v1.Event](), false, "Event").Properties["detail"]
	for _, t := range []reflect.Type{reflect.TypeFor[v1.StateChange](),
		reflect.TypeFor[v1.MailOutcome](),
		reflect.TypeFor[v1.ObjectRecord](), reflect.TypeFor[v1.Profile](),
		reflect.TypeFor[v1.HoldChange](),
		reflect.TypeFor[v1.OperationChange]()} {
		detail.OneOf = append(detail.OneOf, schema.Schema(t, true, ""))
	}

	anything(schema.Schema(reflect.TypeFor[v1.LogEvent](), false, "LogEvent"), "detail", "before",
		"after")
	anything(schema.Schema(reflect.TypeFor[v1.ItemEvent](), false, "ItemEvent"), "detail", "before",
		"after")
	anything(schema.Schema(reflect.TypeFor[v1.ResearchAnalysis](), false, "ResearchAnalysis"),
		"settings")
	anything(schema.Schema(reflect.TypeFor[v1.HistoryEvent](), false, "HistoryEvent"), "detail",
		"before", "after")
	return describe(schema)
}

// anything makes properties of a schema objects of whatever they have. They are JSON as it was stored,
// of which the types say nothing.
func anything(s *huma.Schema, names ...string) {
	value := &huma.Schema{}
	for _, t := range []string{huma.TypeString, huma.TypeNumber, huma.TypeBoolean, huma.TypeObject,
		huma.TypeArray} {
		one := &huma.Schema{Type: t}
		if t == huma.TypeArray {
			one.Items = &huma.Schema{}
		}
		value.OneOf = append(value.OneOf, one)
	}

	for _, name := range names {
		s.Properties[name].Type, s.Properties[name].AdditionalProperties = huma.TypeObject, value
	}
}

// refusalOf is the name of the error responses with a status in the document.
func refusalOf(status int) string { return "Refusal" + strconv.Itoa(status) }

// refusals are the error responses that operations share, one for each status. An operation refers to
// them by their status; the examples tell the types of one status apart.
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

		r.Content[problemMedia].Examples[p.name] = &huma.Example{
			Summary:     p.title,
			Description: p.advice,
			Value:       newRefusal(p, p.example).Problem,
		}
	}
	return all
}

// operationsOf are the operations of a document. They are in the order of their paths. Routes have
// these three methods only.
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

// fill puts what about says into the document's operation. The framework's default response is removed:
// all error responses are listed by their statuses. A parameter is copied before its values are listed,
// because the framework validates by its own.
func (a about) fill(op *huma.Operation, schema huma.Registry, shared map[string]*huma.Response) {
	op.Tags, op.Description = []string{a.tag}, a.description
	a.secure(op)
	refusals := append(slices.Clone(everywhere), a.refusals...)
	if op.RequestBody != nil && !a.form {
		refusals = append(refusals, withBody...)
		op.RequestBody.Content["application/json"].Example = a.request
	}

	delete(op.Responses, "default")
	for _, p := range refusals {
		status := strconv.Itoa(p.status)
		op.Responses[status] = &huma.Response{Ref: "#/components/responses/" + refusalOf(p.status)}
	}

	if a.form {
		a.fillForm(op, shared)
	}

	for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted} {
		if r := op.Responses[strconv.Itoa(status)]; r != nil && a.answer != nil {
			r.Content["application/json"].Example = a.answer
		}
	}

	if a.redirect != "" {
		a.fillRedirect(op, schema)
	}

	for i, p := range op.Parameters {
		described := cmp.Or(parameters[op.OperationID+" "+p.Name], parameters[p.Name])
		p.Description = described.description
		if described.example != "" {
			p.Example = described.example
		}

		if p.Name == "state" {
			listed, values := *p, *p.Schema // the framework's own stay as they are: it ignores case
			for _, s := range a.states {
				values.Enum = append(values.Enum, s)
			}
			listed.Schema = &values
			op.Parameters[i] = &listed
		}
	}
}

// fillRedirect describes the response to a client that follows the redirect.
func (a about) fillRedirect(op *huma.Operation, schema huma.Registry) {
	what := &huma.MediaType{Schema: &huma.Schema{
		Type:        huma.TypeString,
		Format:      "binary",
		Description: "The bytes of the file.",
	}}

	if a.document != nil {
		what = &huma.MediaType{Schema: schema.Schema(reflect.TypeOf(a.document), true, ""),
			Example: a.document}
	}

	op.Responses["302"].Description = "Location is the URL of the content, valid for at most 15 " +
		"minutes without a token."
	op.Responses["200"] = &huma.Response{Description: "The content, for a client that follows redirects.",
		Content: map[string]*huma.MediaType{a.redirect: what}}
	if a.table != "" {
		withCSV(op.Responses["200"], a.table)
	}
}
