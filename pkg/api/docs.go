package api

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"

	"archivist/pkg/components/component"
)

// The page at /docs renders the OpenAPI document with Scalar, which is embedded: neither
// the browser nor the build fetches anything from elsewhere. A test compares the file with
// that of the npm package.
//
//go:embed page
var page embed.FS

// scalar is the file of the renderer. Its name has its version, so that browsers can cache it.
const scalar = "scalar-1.72.1.js"

// pagePolicy lets the page load scripts and data from the API only. The renderer puts
// styles into the document; it evaluates no text as a script.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docs registers the page and its files. They are not in the OpenAPI document.
func docs(mux *http.ServeMux) {
	for route, file := range map[string]string{"/docs": "docs.html", "/docs/start.js": "start.js",
		"/docs/icon.svg": "icon.svg"} {
		content, err := page.ReadFile("page/" + file)
		if err != nil {
			panic(err) // it is not embedded
		}
		mux.HandleFunc("GET "+route, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", pagePolicy)
			w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(file)))
			_, _ = w.Write(content) // the client has disconnected
		})
	}

	mux.HandleFunc("GET /docs/"+scalar, renderer)
	schema := component.Schema()
	mux.HandleFunc("GET /docs/component.schema.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(schema) // the client has disconnected
	})
}

// renderer serves the renderer compressed, as it is stored. Uncompressed it would come near to the
// limit of 6 MB for the response of a function. Clients that do not take gzip get it uncompressed.
func renderer(w http.ResponseWriter, r *http.Request) {
	content, err := page.ReadFile("page/" + scalar + ".gz")
	if err != nil {
		panic(err)
	}

	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Add("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(content) // the client has disconnected
		return
	}

	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		panic(err)
	}

	_, _ = io.Copy(w, plain)
}
