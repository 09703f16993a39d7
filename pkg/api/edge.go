package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
)

// Bounds of what an error says, in bytes and in details.
const (
	mostMessage  = 2000
	mostLocation = 200
	mostDetails  = 20
)

// bounded leaves out of an error what was sent, which may be large or secret: values,
// secrets in URLs, and more than a reader needs. The location names the field.
func bounded(_ huma.Context, _ string, v any) (any, error) {
	e, is := v.(*huma.ErrorModel)
	if !is {
		return v, nil
	}
	e.Detail = ingest.Cut(fetch.RedactText(e.Detail), mostMessage)
	if n := len(e.Errors); n > mostDetails {
		more := &huma.ErrorDetail{Message: fmt.Sprintf("%d more are wrong", n-mostDetails)}
		e.Errors = append(e.Errors[:mostDetails:mostDetails], more)
	}
	for _, d := range e.Errors {
		d.Value = nil
		d.Message = ingest.Cut(fetch.RedactText(d.Message), mostLocation)
		d.Location = ingest.Cut(d.Location, mostLocation)
	}
	return v, nil
}

// Names are compared as they are written: what is checked would else not be what is
// used where a name comes twice, in two spellings.
func init() { huma.ValidateStrictCasing = true }

// strict is JSON whose objects have each name once (RFC 7493, section 2.3). Else one
// reader of a request takes the first value of a name and another the last: what is
// checked would not be what is used.
var strict = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: func(data []byte, v any) error {
	if _, err := jsontext.NewDecoder(bytes.NewReader(data)).ReadValue(); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}}

// guarded answers with headers that keep browsers from guessing what an answer is,
// running it, and keeping it. A panic is a defect: it is answered, and logged without
// the request, which may have secrets.
func (a *API) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		defer func() {
			if p := recover(); p != nil {
				a.Log.Error("a request failed by a panic", "method", r.Method, "path", r.URL.Path,
					"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				h.Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write([]byte(`{"status":500,"title":"Internal Server Error","detail":"` + defect + `"}`))
			}
		}()
		next.ServeHTTP(w, r)
	})
}
