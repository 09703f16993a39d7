package api

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/kernel/fault"
)

// queried refuses a query that says more than the operation understands, before a handler sees it: a
// misspelt filter that is ignored would select everything.
func (a *API) queried(c huma.Context, next func(huma.Context)) {
	u := c.URL()
	if err := checkQuery(u.RawQuery, c.Operation()); err != nil {
		a.refuse(c, err)
		return
	}
	next(c)
}

// checkQuery returns an Invalid for a query that is malformed, names a parameter that the operation
// does not have, or gives one twice that is no list.
func checkQuery(raw string, op *huma.Operation) error {
	given, err := url.ParseQuery(raw)
	if err != nil {
		return fault.New(fault.Invalid, "malformed query: %v", err)
	}

	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(op.Parameters, func(p *huma.Param) bool {
			return p.In == "query" && p.Name == name
		})
		switch {
		case i < 0:
			return fault.New(fault.Invalid, "unknown query parameter %q; %s", name, known(op))
		case len(given[name]) > 1 && op.Parameters[i].Schema.Type != huma.TypeArray:
			return fault.New(fault.Invalid, "the query parameter %s is given %d times", name,
				len(given[name]))
		}
	}
	return nil
}

// known says which query parameters an operation has.
func known(op *huma.Operation) string {
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "this operation has none"
	}
	return "expected " + strings.Join(names, ", ")
}
