package api

import (
	"net/http"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// caused gives the changes of a request the cause that its header names. So a consumer that calls the
// API does not break the chain of causes, which is what stops a loop of consumers. A value that cannot
// be read, or two of them, are refused: ignoring it would hide the loop. The cause gets into the
// context, and from there into each event that the request records.
func (a *API) caused(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := r.Header.Values(envelope.CauseHeader)
		if len(all) == 0 {
			next.ServeHTTP(w, r)
			return
		}

		o := event.OriginOf(r.Context())
		var err error
		o.Cause, err = envelope.DecodeCause(all[0])
		if err != nil || len(all) > 1 {
			err = fault.New(fault.Invalid,
				"%s: expected the header once, as `archivist event show` prints it: %w",
				envelope.CauseHeader, err)
			a.problem(err).(*refusal).write(w)
			return
		}

		next.ServeHTTP(w, r.WithContext(event.From(r.Context(), o)))
	})
}
