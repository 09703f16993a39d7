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

// introduction is the text at the beginning of the document, in CommonMark.
const introduction = `Archivist preserves the content that depositors submit, and reports on it.

**Submit** a batch by the URL of a file, or of a manifest of files or of objects. The archive creates a **job** for
each object, downloads and verifies its files, and stores them as the next **version** of the **object**. When all
jobs have ended, the batch has a **report**, and each successful job has a **receipt** with the digests of every file.

Lists are ` + "`{\"items\": […], \"cursor\": \"…\"}`" + `: pass ` + "`cursor`" + ` to get the next page. The last page has none.
Times are ISO 8601 in UTC, sizes are bytes, digests are hexadecimal.

An error response is a problem document (RFC 9457). Programs should decide by its ` + "`type`" + `:
the types do not change.`

// tags group the operations.
var tags = []*huma.Tag{
	{Name: "Batches", Description: "Submissions and their results."},
	{Name: "Jobs", Description: "The ingest of one object each."},
	{Name: "Objects", Description: "Preserved objects with their versions, files and events."},
	{Name: "Collections", Description: "The settings for submissions to a collection."},
	{Name: "Events", Description: "What has happened, as the log of events has it."},
	{Name: "Consumers", Description: "What reacts to events."},
	{Name: "Components", Description: "What works on items, by the events that have happened to them."},
	{Name: "Items", Description: "What components work on: objects, versions, batches, and items made by hand."},
	{Name: "Research", Description: "Which clip is looked for in which recording, by whom, and what was found."},
	{Name: "Archives", Description: "What has revisions, and which of them are planned."},
	{Name: "Tasks", Description: "What runs when a revision was committed, by hand, or by schedule."},
	{Name: "Operation", Description: "For the operators of the archive."},
}

// enums are the values of fields whose values are defined elsewhere.
var enums = map[string][]string{
	"Accepted.state": v1.BatchStates, "Batch.state": v1.BatchStates,
	"Job.state": v1.JobStates, "Job.lastSuccessfulState": v1.JobStates, "ReportJob.state": v1.JobStates,
	"Explanation.state":    append(slices.Clone(v1.JobStates), v1.Reporting, v1.UpdateReporting),
	"Event.type":           v1.EventTypes,
	"Explanation.waitsFor": v1.Waits,
	"Task.state":           v1.TaskStates,
	"WaitLink.waitsFor":    v1.TaskWaits,
	"Problem.type":         problemURIs(),
}

func problemURIs() (all []string) {
	for _, p := range problemTypes {
		all = append(all, p.URI())
	}
	return all
}

// parameter describes a parameter in the document.
type parameter struct{ description, example string }

// parameters describes parameters by name or, for one operation, by operation and name.
var parameters = map[string]parameter{
	"id":         {"The id of the batch or the job.", batchID},
	"collection": {"The name of the collection.", "maps"},
	"state":      {"Only items in this state. Case is ignored.", v1.Failed},
	"number":     {"The number of the report, from 1. Omit it for the newest.", ""},
	"cursor":     {"The cursor of the previous page. Omit it for the first page.", ""},
	"localId":    {"The depositor's own id of the object. Requires collection.", "map-1851"},
	"ark":        {"The ARK of the object.", arkExample},
	"naan":       {"The first part of the ARK: the number of the organization that assigned it (NAAN).", "99999"},
	"name":       {"The second part of the ARK.", "fk4tq65d6k"},
	"n":          {"The number of the version, from 1.", ""},
	"path":       {"The path of the file in the version.", "producer/map.tif"},

	"query": {"What to search for: words, \"several words\" that follow each other, beginnings of words with a *, " +
		"and fields, all of which must be found; with a - in front, must not be found. The fields are title, " +
		"creator, collection, date, id, ark and file. A date can be a range.",
		"harbour creator:blunt date:1800..1899"},
	"sort": {"The order: by relevance, the best first; by title; by date, the earliest first; by modified, the " +
		"last changed first.", "relevance"},
	"limit": {"How many objects a page has at most.", ""},
	"by":    {"Which list: by title, by date, by creator or by collection.", "title"},
	"from":  {"Begin at this title, date, creator or collection.", "harb"},

	"browseObjects collection": {"Only this collection. Requires the list by collection.", "maps"},

	"reason":               {"The reason. It is kept in the events.", "A new version of the function."},
	"listParked partition": {"Only this partition of the log.", "maps"},

	"getConsumer name":          {"The name of the consumer.", "search"},
	"putConsumer name":          {"The name of the consumer.", "search"},
	"actOnConsumer name":        {"The name of the consumer.", "search"},
	"listReplays name":          {"The name of the consumer.", "search"},
	"startReplay name":          {"The name of the consumer.", "search"},
	"getReplay id":              {"The id of the replay.", operationID},
	"actOnReplay id":            {"The id of the replay.", operationID},
	"listParked name":           {"The name of the consumer.", "search"},
	"listConsumerEvents name":   {"The name of the consumer.", "search"},
	"getCollection name":        {"The name of the collection.", "maps"},
	"putCollection name":        {"The name of the collection.", "maps"},
	"listCollectionEvents name": {"The name of the collection.", "maps"},
	"actOnCollection name":      {"The name of the collection.", "maps"},

	"getComponent name":        {"The name of the component.", "count-words"},
	"putComponent name":        {"The name of the component.", "count-words"},
	"actOnComponent name":      {"The name of the component.", "count-words"},
	"listComponentEvents name": {"The name of the component.", "count-words"},
	"listLine name":            {"The name of the component.", "count-words"},
	"explainComponent name":    {"The name of the component.", "count-words"},
	"listRuns name":            {"The name of the component.", "count-words"},
	"getRun name":              {"The name of the component.", "count-words"},
	"startRun name":            {"The name of the component.", "count-words"},
	"run":                      {"The id of the run.", operationID},
	"class":                    {"Which items: ready, later, running or failed.", "ready"},
	"item":                     {"The id of the item.", itemID},
	"dryRun":                   {"Whether only to list the items that would be ready now.", ""},
	"kind":                     {"Only items of this kind.", "item"},
	"type":                     {"Only items of this type.", "delivery"},
	"getItem id":               {"The id of the item.", itemID},
	"listItemHistory id":       {"The id of the item.", itemID},
	"actOnItem id":             {"The id of the item.", itemID},
	"getItemPREMIS id":         {"The id of the item.", itemID},
	"importItemPREMIS id":      {"The id of the item.", itemID},

	"reindex ark":    {"Only the object with this ARK.", arkExample},
	"reindex cursor": {"The cursor of the previous response, or the key prefix at which to begin.", "a0"},
	"reindex to":     {"The key prefix at which to end. So several requests can share the work.", "b"},

	"getOperation id":        {"The id of the operation.", operationID},
	"listItems id":           {"The id of the operation.", operationID},
	"listRefusals id":        {"The id of the operation.", operationID},
	"listFindings id":        {"The id of the operation.", operationID},
	"listOperationEvents id": {"The id of the operation.", operationID},
	"actOnOperation id":      {"The id of the operation.", operationID},

	"subject":               {"The subject of the event: its type, a colon and its id.", "Job:" + jobID},
	"version":               {"The number of the event among those of its subject, from 1.", ""},
	"consumer":              {"The name of the consumer.", "search"},
	"partition":             {"The name of a partition of the log. Its events are listed in order.", "maps"},
	"after":                 {"With partition: the place after which to begin. Omit it for the oldest event.", ""},
	"listEvents collection": {"The name of a collection, or site. Its events are listed, newest first.", "maps"},
	"listEvents filter":     {"Only events that this filter selects.", "Object+Create:Version"},

	"Idempotency-Key": {"A key of your choice, so that the request can be repeated safely.", "maps-2026-11-22"},
	"Archivist-User": {"The name of the person who makes the request. It is not verified: events show it as " +
		"`an operator (unverified: \"ann\")`.", "ann"},

	"listStatistics collection": {"The name of a collection. Omit it for all.", "maps"},
	"listStatistics from":       {"The first day, in UTC. Omit it for a month before the last.", "2026-11-01"},
	"listStatistics to":         {"The last day, in UTC. Omit it for today.", "2026-11-22"},
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
	c.Security = []map[string][]string{{"apiKey": {string(Administrator)}}}
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"apiKey": {Type: "apiKey", In: "header",
		Name: "x-api-key",
		Description: "A key of the deployment, which has a role. Every deployment on AWS requires one; a local stack " +
			"does not. Each operation names the roles that can call it. The role researcher is for one project, the " +
			"role notifier for one archive."}}
	c.DocsPath = ""     // our own page loads nothing from elsewhere
	c.CreateHooks = nil // no $schema fields: responses have exactly the fields of the types
	c.Transformers = append(c.Transformers, bounded)
	c.Formats = map[string]huma.Format{"application/json": strict, "json": strict}
	return c
}

// everywhere are the error responses that any operation can have.
var everywhere = []problemType{notAuthorized, invalidRequest, tooManyRequests, internalError, unavailable,
	gatewayTimeout}

// withBody are those of operations with a request body.
var withBody = []problemType{malformedRequest, tooLarge, unsupportedMedia}

// complete adds what the framework does not know: descriptions, examples, and the error
// responses of each operation.
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
		reflect.TypeFor[v1.ObjectRecord](), reflect.TypeFor[v1.Profile](), reflect.TypeFor[v1.HoldChange](),
		reflect.TypeFor[v1.OperationChange]()} {
		detail.OneOf = append(detail.OneOf, schema.Schema(t, true, ""))
	}
	anything(schema.Schema(reflect.TypeFor[v1.LogEvent](), false, "LogEvent"), "detail", "before", "after")
	anything(schema.Schema(reflect.TypeFor[v1.ItemEvent](), false, "ItemEvent"), "detail", "before", "after")
	anything(schema.Schema(reflect.TypeFor[v1.ResearchAnalysis](), false, "ResearchAnalysis"), "settings")
	anything(schema.Schema(reflect.TypeFor[v1.HistoryEvent](), false, "HistoryEvent"), "detail", "before", "after")
	return describe(schema)
}

// anything makes properties of a schema objects of whatever they have.
func anything(s *huma.Schema, names ...string) {
	value := &huma.Schema{}
	for _, t := range []string{huma.TypeString, huma.TypeNumber, huma.TypeBoolean, huma.TypeObject, huma.TypeArray} {
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

// refusals are the error responses that operations share, one for each status.
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

// about describes an operation in the document beyond its types.
type about struct {
	tag         string
	role        Role // that a caller needs; "": Administrator, which may call everything
	description string
	request     any // an example of the body
	answer      any // an example
	refusals    []problemType
	states      []string // that its parameter "state" can have
	redirect    string   // the media type of what it redirects to
	document    any      // an example of that
}

// needs is the role that a caller needs, unless it is an Administrator.
func (a about) needs() Role { return cmp.Or(a.role, Administrator) }

// secure names the roles that can call the operation: any of them is enough ("Security Requirement Object").
func (a about) secure(op *huma.Operation) {
	op.Security = []map[string][]string{{"apiKey": {string(Administrator)}}}
	text := "Role: administrator."
	if a.role != "" {
		op.Security = append(op.Security, map[string][]string{"apiKey": {string(a.role)}})
		text = map[Role]string{Researcher: "Role: researcher of the project, or administrator.",
			Notifier: "Role: notifier of the archive, or administrator."}[a.role]
	}
	op.Description += "\n\n" + text
}

func (a about) fill(op *huma.Operation, schema huma.Registry) {
	op.Tags, op.Description = []string{a.tag}, a.description
	a.secure(op)
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
	what := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary",
		Description: "The bytes of the file."}}
	if a.document != nil {
		what = &huma.MediaType{Schema: schema.Schema(reflect.TypeOf(a.document), true, ""), Example: a.document}
	}
	op.Responses["302"].Description = "Location is the URL of the content, valid for at most 15 minutes without a key."
	op.Responses["200"] = &huma.Response{Description: "The content, for a client that follows redirects.",
		Content: map[string]*huma.MediaType{a.redirect: what}}
}
