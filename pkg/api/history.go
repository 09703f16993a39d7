package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// asXML are the media types for which an object's events are returned as PREMIS.
var asXML = []string{"application/xml", "text/xml"}

// history registers the route of an object's events: JSON or, depending on Accept, PREMIS. These events
// are the rows of the object itself, which are in the log; the permanent record, which is made of them,
// is at .../history (records).
func (a *API) history(h huma.API) {
	read := func(ctx context.Context, ark, cursor string) (log []envelope.Event, next string,
		err error) {
		p, err := a.Queue.Events(ctx, event.Subject{Type: event.Object, ID: ark}, cursor)
		for _, row := range p.Items {
			e, err := row.Envelope()
			if err != nil {
				return nil, "", err
			}
			log = append(log, e)
		}
		return log, p.Cursor, err
	}
	xmlList(a, h, "/v1/objects/{naan}/{name}/events", "listObjectEvents", "List an object's events",
		read,
		func(ctx context.Context, in *ARKCursor) (v1.List[v1.Event], error) {
			p, err := a.Queue.Events(ctx, event.Subject{Type: event.Object, ID: in.ark()},
				in.Cursor)
			if err != nil || len(p.Items) > 0 {
				return list(p, wireEvent), err
			}

			_, err = a.Inventory.Object(ctx, in.ark()) // a NotFound if there is no object
			return list(p, wireEvent), err
		})
}

// readEvents reads a page of events of an object or of its versions, and the cursor of the next page.
// The cursor is "" for the first page, and the returned one "" at the end.
type readEvents func(ctx context.Context, ark, cursor string) ([]envelope.Event, string, error)

// accepting answers with PREMIS if the client prefers XML to JSON. Vary says to caches that the
// response depends on Accept (RFC 9110, section 12.5.5). It is a middleware, because huma would encode
// whatever a handler returns as JSON.
func (a *API) accepting(read readEvents) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		c.AppendHeader("Vary", "Accept")
		kind := negotiation.SelectQValueFast(c.Header("Accept"),
			append([]string{"application/json"}, asXML...))
		if !slices.Contains(asXML, kind) {
			next(c)
			return
		}

		if err := a.premis(c, kind, read); err != nil {
			a.refuse(c, err)
		}
	}
}

// premis writes a page of an object's events as PREMIS. The parameters are read from the request
// itself, since huma has not decoded them yet. The document is made as a whole before the first byte is
// sent, so that an error is still a problem document.
func (a *API) premis(c huma.Context, kind string, read readEvents) error {
	in := ARKInput{c.Param("naan"), c.Param("name")}
	o, err := a.Inventory.Object(c.Context(), in.ark())
	if err != nil {
		return err
	}

	log, next, err := read(c.Context(), o.ARK, c.Query("cursor"))
	if err != nil {
		return err
	}

	var doc bytes.Buffer
	if err := a.Histories.History(&doc, o.ARK, o.LocalIDs, log); err != nil {
		return err
	}

	if next != "" {
		// Relative to the request.
		c.SetHeader("Link", fmt.Sprintf(`<?cursor=%s>; rel="next"`, url.QueryEscape(next)))
	}

	c.SetHeader("Content-Type", kind+"; charset=utf-8")
	c.SetStatus(http.StatusOK)
	_, err = doc.WriteTo(c.BodyWriter())
	return err
}

// xmlList registers a route of a list of an object's events: JSON or, depending on Accept, PREMIS. read
// gives the events for PREMIS, and f the list for JSON: both have to page alike.
func xmlList[T any](a *API, h huma.API, path, id, summary string, read readEvents,
	f func(context.Context, *ARKCursor) (v1.List[T], error)) {
	content := map[string]*huma.MediaType{"application/json": {}, // the framework adds its schema
		asXML[0]: {Schema: &huma.Schema{Type: "string",
			Description: "PREMIS 3; the next page is in the header Link"}}}
	register(a, h, huma.Operation{
		Method:      http.MethodGet,
		Path:        path,
		OperationID: id,
		Summary:     summary,
		Responses:   map[string]*huma.Response{"200": {Description: "OK", Content: content}},
		Middlewares: huma.Middlewares{a.accepting(read)},
	}, f)
}
