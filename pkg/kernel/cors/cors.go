// Package cors lets scripts of web pages read what a server answers, although the pages are of other origins (Fetch
// Standard, "CORS protocol"). It protects no server: programs that are no browsers do not ask.
package cors

import (
	"net/http"
	"slices"
	"strings"
)

// MaxAge is how long a browser may keep the answer to a preflight, in seconds. It is the most that Chromium takes.
const MaxAge = "7200"

// Policy says what scripts of some origins may do. Cookies are never among it.
type Policy struct {
	Origins []string // as Origins returns them; nil: none
	Methods []string
	Headers []string // of requests
	Exposed []string // headers of answers that scripts may read, beside those that they always may
}

// Wrap answers preflights of the origins, and marks the other answers to their scripts as readable, whatever their
// status. A preflight is answered for any path, so that the script can read how the call itself is refused. Requests of
// other origins, or of none, pass as they are. A handler that sets the header Vary must add to it.
func (p Policy) Wrap(next http.Handler) http.Handler {
	if len(p.Origins) == 0 {
		return next
	}

	methods, headers := strings.Join(p.Methods, ", "), strings.Join(p.Headers, ", ")
	exposed := strings.Join(p.Exposed, ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin") // also for others: a cache must not answer one origin with what was for another
		from := r.Header.Values("Origin")
		if len(from) != 1 || !slices.Contains(p.Origins, from[0]) {
			next.ServeHTTP(w, r)
			return
		}

		h.Set("Access-Control-Allow-Origin", from[0])
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", methods)
			h.Set("Access-Control-Allow-Headers", headers)
			h.Set("Access-Control-Max-Age", MaxAge)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if exposed != "" {
			h.Set("Access-Control-Expose-Headers", exposed)
		}
		next.ServeHTTP(w, r)
	})
}
