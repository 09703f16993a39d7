package api

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/api/merritt"
)

func init() {
	for _, d := range doors {
		how := "The file is the complete new state of the object."
		if updates(d[0]) {
			how = "The files are added to those of the newest version of the object, or replace " +
				"them."
		}
		operations[d[1]] = about{tag: "Merritt", role: operator, scope: inHandler, form: true,
			refusals: []problemType{conflict, malformedRequest, tooLarge, unsupportedMedia},
			request: map[string]any{"file": "Dear reader", "profile": "letters",
				"submitter": "ann/Ann Blunt",
				"type":      "file", "responseForm": "json", "title": "A letter",
				"primaryIdentifier": arkExample},
			answer: merritt.Example(merritt.State{Batch: batchID, Package: "letter.txt",
				User: "ann/Ann Blunt",
				At:   "2026-11-22T09:30:00Z", Status: "QUEUED",
				Jobs: merritt.Jobs{Job: &merritt.Job{ID: jobID, Package: "letter.txt",
					At: "2026-11-22T09:30:00Z"}}}),
			description: how + " The form, its fields, its answers and its refusals are those " +
				"of Merritt's ingest " +
				"service. The file has at most 4 MiB; a manifest names larger ones. The header `BID` is the id of " +
				"the batch.\n\nThe same form by the same caller is the same submission while " +
				"its batch is worked on, " +
				"and for a day after that was submitted. With an `Idempotency-Key` it is for 7 days, as with " +
				"`POST /v1/batches`."}
	}
}

// fillForm describes a form of Merritt, its answer and its refusals, which are shared.
func (a about) fillForm(op *huma.Operation, shared map[string]*huma.Response) {
	text := func(says string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString,
			Description: says}
	}
	fields := map[string]*huma.Schema{"file": {Type: huma.TypeString, Format: "binary",
		Description: "The file, with its name: a file, a container or a manifest."}}
	for _, f := range merritt.Fields {
		fields[f.Name] = text(f.Means)
	}
	op.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{"multipart/form-data": {
			Schema: &huma.Schema{Type: huma.TypeObject, Properties: fields, Required: []string{"file",
				"profile"},
				AdditionalProperties: false}, Example: a.request}}}

	answers := func(name string, example any) map[string]*huma.MediaType {
		within := text("The elements of Merritt's XML, by their names.")
		within.Type, within.AdditionalProperties = huma.TypeObject, true
		return map[string]*huma.MediaType{
			"text/xml": {Schema: text("The element " + name + " of Merritt.")},
			"application/json": {Schema: &huma.Schema{Type: huma.TypeObject,
				Properties: map[string]*huma.Schema{name: within}}, Example: example}}
	}
	op.Responses["200"].Content = answers("bat:batchState", a.answer)
	for _, p := range append([]problemType{unauthenticated, forbidden, notFound, internalError, unavailable},
		a.refusals...) {
		refusal, status := merritt.Refusal{Status: p.status, Detail: p.example}, strconv.Itoa(p.status)
		shared["Merritt"+status] = &huma.Response{Description: p.title + ".",
			Content: answers(refusal.Name(), merritt.Example(refusal))}
		op.Responses[status] = &huma.Response{Ref: "#/components/responses/Merritt" + status}
	}
	delete(op.Responses, strconv.Itoa(http.StatusUnprocessableEntity)) // it is 400 here
}
