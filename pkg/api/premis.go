package api

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// PREMISImport is a request to import events into an item.
type PREMISImport struct {
	ItemInput
	Acting
	Body v1.PREMISImport
}

// asPREMIS is a response in XML.
type asPREMIS struct {
	ContentType string `header:"Content-Type"`
	Link        string `header:"Link" doc:"The next page, relative to the request. The last page has none."`
	Body        []byte
}

// maxPREMISBody is the size of a request with a document of 1 MiB, in which JSON writes some characters as
// several.
const maxPREMISBody = 3 << 20

// premises registers the routes of items in PREMIS.
func (a *API) premises(h huma.API) {
	const path = "/v1/item/premis"
	document := &huma.MediaType{Schema: &huma.Schema{Type: "string", Description: "PREMIS 3"}}
	huma.Register(h, huma.Operation{
		Method:      http.MethodGet,
		Path:        path,
		OperationID: "getItemPREMIS",
		Summary:     "Export the history of an item as PREMIS",
		Responses: map[string]*huma.Response{"200": {Description: "OK",
			Content: map[string]*huma.MediaType{asXML[0]: document}}},
	},
		func(ctx context.Context, in *ItemCursor) (*asPREMIS, error) {
			out, err := a.itemPREMIS(ctx, in)
			if err != nil {
				return nil, a.problem(err)
			}
			return out, nil
		})

	register(a, h, huma.Operation{
		Method:       http.MethodPost,
		Path:         path,
		OperationID:  "importItemPREMIS",
		Summary:      "Import events of a PREMIS document into an item",
		MaxBodyBytes: maxPREMISBody,
	}, a.importPREMIS)
}

// itemPREMIS is a page of the history of an item. Each page is a complete document; Link names the next
// one, relative to the request. An item that does not exist is a NotFound.
func (a *API) itemPREMIS(ctx context.Context, in *ItemCursor) (*asPREMIS, error) {
	state, err := a.Components.Show(ctx, in.ID)
	if err != nil {
		return nil, err
	}

	page, next, err := a.Components.History(ctx, state.ID, in.Cursor)
	if err != nil {
		return nil, err
	}

	var log []envelope.Event
	for _, h := range page {
		log = append(log, h.Event)
	}

	var doc bytes.Buffer
	if err := a.Histories.Item(&doc, state.ID, state.Identifiers, log); err != nil {
		return nil, err
	}

	out := &asPREMIS{ContentType: asXML[0] + "; charset=utf-8", Body: doc.Bytes()}
	if next != "" {
		out.Link = "<?" + url.Values{"id": {in.ID}, "cursor": {next}}.Encode() + `>; rel="next"`
	}
	return out, nil
}

// importPREMIS imports a document. Times in the document that have no zone are in that of the request,
// a name of the IANA database; "Local" is refused, because it would be the zone of the function. What
// is imported already is present, so that the same request can be repeated.
func (a *API) importPREMIS(ctx context.Context,
	in *PREMISImport) (out v1.PREMISImported, err error) {
	o := component.ImportOptions{Skip: in.Body.SkipRefused, Try: in.Body.DryRun}
	if in.Body.Zone != "" {
		o.Zone, err = time.LoadLocation(in.Body.Zone)
		if err != nil || in.Body.Zone == "Local" {
			return out, fault.New(fault.Invalid,
				"zone: there is no time zone %q; e.g. Europe/Copenhagen", in.Body.Zone)
		}
	}

	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	done, err := a.Components.Import(ctx, in.ID, strings.NewReader(in.Body.Document), o,
		by)
	if err != nil {
		return out, err
	}

	out = v1.PREMISImported{
		Item:     done.Item,
		Imported: wirePREMIS(done.Imported),
		Present:  wirePREMIS(done.Present),
		Refused:  []v1.PREMISRefusal{},
	}

	if len(done.Refused) > 0 && !o.Skip && !o.Try {
		return out, refusedPREMIS(done.Refused)
	}

	for _, r := range done.Refused {
		out.Refused = append(out.Refused, v1.PREMISRefusal{
			IdentifierType: r.ID.Type,
			Identifier:     r.ID.Value,
			Reason:         r.Reason,
		})
	}
	return out, nil
}

// refusedPREMIS says that nothing was imported, and why, of the first events that are refused.
func refusedPREMIS(refused []component.RefusedEvent) error {
	var why []string
	for _, r := range refused[:min(len(refused), 10)] {
		why = append(why, strings.TrimSpace(r.ID.Value+" "+r.Reason))
	}
	return fault.New(fault.Invalid, "nothing is imported, since %d of the document are refused: %s; correct the "+
		"document, or import the rest: skipRefused, --skip-refused; a dry run lists all", len(refused),
		strings.Join(why, "; "))
}

// wirePREMIS is never nil, so that it is [] in JSON.
func wirePREMIS(events []component.ImportedEvent) []v1.PREMISEvent {
	return each(events, func(e component.ImportedEvent) v1.PREMISEvent {
		return v1.PREMISEvent{IdentifierType: e.ID.Type, Identifier: e.ID.Value, Event: e.Event}
	})
}
