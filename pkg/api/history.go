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
	"archivist/pkg/envelope"
	"archivist/pkg/event"
)

// asXML are the media types for which an object's events are returned as PREMIS.
var asXML = []string{"application/xml", "text/xml"}

// history registers the route of an object's events: JSON or, depending on Accept, PREMIS.
func (a *API) history(h huma.API) {
	const route = "/v1/objects/{naan}/{name}/events"
	content := map[string]*huma.MediaType{"application/json": {}, // the framework adds its schema
		asXML[0]: {Schema: &huma.Schema{Type: "string", Description: "PREMIS 3; the next page is in the header Link"}}}
	op := huma.Operation{Method: http.MethodGet, Path: route, OperationID: "listObjectEvents",
		Summary:     "List an object's events",
		Responses:   map[string]*huma.Response{"200": {Description: "OK", Content: content}},
		Middlewares: huma.Middlewares{a.accepting(h)}}
	register(a, h, op, func(ctx context.Context, in *ARKCursor) (v1.List[v1.Event], error) {
		p, err := a.Queue.Events(ctx, event.Subject{Type: event.Object, ID: in.ark()}, in.Cursor)
		if err == nil && len(p.Items) == 0 {
			_, err = a.Inventory.Object(ctx, in.ark())
		}
		return list(p, wireEvent), err
	})
}

// accepting answers with PREMIS if the client prefers XML to JSON.
func (a *API) accepting(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		c.AppendHeader("Vary", "Accept")
		kind := negotiation.SelectQValueFast(c.Header("Accept"), append([]string{"application/json"}, asXML...))
		if !slices.Contains(asXML, kind) {
			next(c)
			return
		}
		if err := a.premis(c, kind); err != nil {
			refused := a.problem(err).(*refusal)
			_ = huma.WriteErr(h, c, refused.Status, refused.Detail)
		}
	}
}

// premis writes a page of an object's events as PREMIS.
func (a *API) premis(c huma.Context, kind string) error {
	in := ARKInput{c.Param("naan"), c.Param("name")}
	o, err := a.Inventory.Object(c.Context(), in.ark())
	if err != nil {
		return err
	}
	p, err := a.Queue.Events(c.Context(), event.Subject{Type: event.Object, ID: o.ARK}, c.Query("cursor"))
	if err != nil {
		return err
	}
	log := make([]envelope.Event, len(p.Items))
	for i, row := range p.Items {
		if log[i], err = row.Envelope(); err != nil {
			return err
		}
	}
	var doc bytes.Buffer
	if err := a.Archive.History(&doc, o.ARK, o.LocalIDs, log); err != nil {
		return err
	}
	if p.Cursor != "" {
		// Relative to the request.
		c.SetHeader("Link", fmt.Sprintf(`<?cursor=%s>; rel="next"`, url.QueryEscape(p.Cursor)))
	}
	c.SetHeader("Content-Type", kind+"; charset=utf-8")
	c.SetStatus(http.StatusOK)
	_, err = doc.WriteTo(c.BodyWriter())
	return err
}
