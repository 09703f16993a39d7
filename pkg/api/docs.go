package api

import (
	"cmp"
	"html/template"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
)

// operation is one route on the page.
type operation struct {
	Method, Path, Summary string
	Parameters            []*huma.Param
	Body                  bool
}

// docs shows the routes on a page that needs no script and nothing from
// elsewhere. Its links are relative: the API does not know under which path a
// gateway serves it.
func docs(h huma.API) http.HandlerFunc {
	var all []operation
	for path, item := range h.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put} {
			if op != nil {
				all = append(all, operation{method, path, op.Summary, op.Parameters, op.RequestBody != nil})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method)) })
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_ = docsPage.Execute(w, all) // the reader went away
	}
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Archivist API</title>
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }
code { font-size: .95em }
</style></head>
<body>
<h1>Archivist API</h1>
<p>Lists are <code>{"items": […], "cursor": "…"}</code>; pass <code>cursor</code> to get the next page. Errors are RFC 9457 problem documents.
The whole description, with every field: <a href="openapi.json">openapi.json</a>, <a href="openapi.yaml">openapi.yaml</a> (OpenAPI 3.1).</p>
<table><thead><tr><th>Route</th><th>What it does</th><th>Parameters</th></tr></thead><tbody>
{{range .}}<tr><td><code>{{.Method}} {{.Path}}</code></td><td>{{.Summary}}</td><td>{{range .Parameters}}<code>{{.Name}}</code> ({{.In}}{{if .Required}}, required{{end}}){{with .Description}}: {{.}}{{end}}<br>{{end}}{{if .Body}}JSON body{{end}}</td></tr>
{{end}}</tbody></table>
</body></html>
`))
