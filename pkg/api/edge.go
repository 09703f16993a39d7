package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fetch"
)

// The limits of an error response, in bytes and in details. A detail may repeat what was sent; the
// ceiling keeps a response small whatever that was.
const (
	mostMessage  = 2000
	mostLocation = 200
	mostDetails  = 20
)

// bounded limits an error response. It repeats little of what was sent, which may be large, and no
// secrets of URLs. The location names the field. It is a transformer of huma: it is called for each
// response, after the handler and before the response is encoded. Others than errors stay as they are.
func bounded(_ huma.Context, _ string, v any) (any, error) {
	e, is := v.(*refusal)
	if !is {
		return v, nil
	}

	e.Detail = ingest.Cut(fetch.RedactText(e.Detail), mostMessage)
	if n := len(e.Errors); n > mostDetails {
		more := v1.FieldError{Message: ingest.Counted(n-mostDetails, "more error")}
		e.Errors = append(e.Errors[:mostDetails:mostDetails], more)
	}

	for i := range e.Errors {
		d := &e.Errors[i]
		d.Message = ingest.Cut(fetch.RedactText(d.Message), mostLocation)
		d.Location = ingest.Cut(d.Location, mostLocation)
	}
	return v, nil
}

// Names are case-sensitive. Otherwise, if a request had a name in two spellings, one value
// could be checked and the other used. A missing list is left out or empty, never null.
func init() { huma.ValidateStrictCasing, huma.DefaultArrayNullable = true, false }

// strict accepts JSON whose objects have each name once (RFC 7493, section 2.3). Otherwise
// one reader could use the first value of a name and another the last: the value that is
// checked would not be the value that is used.
var strict = huma.Format{Marshal: huma.DefaultJSONFormat.Marshal,
	Unmarshal: func(data []byte, v any) error {
		if _, err := jsontext.NewDecoder(bytes.NewReader(data)).ReadValue(); err != nil {
			return errors.New("it is not JSON: " + strings.TrimPrefix(err.Error(), "jsontext: "))
		}
		return json.Unmarshal(data, v)
	}}

// guarded sets headers so that browsers do not guess the type of a response, run it, or cache it, and answers a
// panic. It is the outermost handler, so that it guards all others.
func (a *API) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		a.recovered(next).ServeHTTP(w, r)
	})
}

// recovered answers a panic as an internal error, and logs it without the request, which may have secrets.
func (a *API) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				a.Log.Error("a request failed by a panic", "method", r.Method, "path", r.URL.Path,
					"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				newRefusal(internalError, defect).write(w)
			}
		}()

		next.ServeHTTP(w, r)
	})
}

// methods are the methods that a route can have.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
	http.MethodPatch,
	http.MethodDelete}

// routed refuses requests without a route with a problem document. It also refuses paths that are not
// clean: the mux would redirect to a path without the gateway's stage. A path without a route is a 404;
// one that has other methods is a 405 with the header Allow (RFC 9110, section 15.5.6). The mux is
// asked which pattern a request would have, without serving it.
func routed(mux *http.ServeMux) http.Handler {
	has := func(r *http.Request, method string) bool {
		asked := *r
		asked.Method = method
		_, pattern := mux.Handler(&asked)
		return pattern != "" && path.Clean(r.URL.EscapedPath()) == r.URL.EscapedPath()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if has(r, r.Method) {
			mux.ServeHTTP(w, r)
			return
		}

		var allowed []string
		for _, m := range methods {
			if has(r, m) {
				allowed = append(allowed, m)
			}
		}

		if len(allowed) == 0 {
			newRefusal(unknownRoute, noRoute).write(w)
			return
		}

		has := strings.Join(allowed, ", ")
		w.Header().Set("Allow", has)
		detail := fmt.Sprintf("the route has no method %s; it has %s",
			ingest.Cut(r.Method, 20), has)
		newRefusal(methodNotAllowed, detail).write(w)
	})
}
