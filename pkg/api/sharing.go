package api

import (
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/kernel/cors"
)

// sharing says what scripts of web pages may do: all that the document has. Pages are made by others, so it follows
// from what they read of the API. The header of the cause is not in it: only programs that react to events have one.
func (a *API) sharing(doc *huma.OpenAPI) cors.Policy {
	methods, headers, exposed := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, op := range operationsOf(doc) {
		methods[op.Method] = true
		if op.RequestBody != nil {
			headers["Content-Type"] = true
		}
		for _, way := range op.Security {
			if way[bearerScheme] != nil {
				headers["Authorization"] = true
			}
		}
		for _, p := range op.Parameters {
			if p.In == "header" {
				headers[p.Name] = true
			}
		}
		for _, r := range op.Responses {
			for name := range r.Headers {
				exposed[name] = true
			}
		}
	}

	delete(exposed, "Content-Type") // every script may read it
	return cors.Policy{
		Origins: a.Origins,
		Methods: slices.Sorted(maps.Keys(methods)),
		Headers: slices.Sorted(maps.Keys(headers)),
		Exposed: slices.Sorted(maps.Keys(exposed)),
	}
}
