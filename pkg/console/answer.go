package console

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
)

// policy is the Content-Security-Policy of each answer: everything is from here, nothing is inline, and no other page
// frames this one. Forms are sent here only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers of each answer.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// small is the size in bytes below which compression gains nothing.
const small = 1 << 10

// write sends an answer, compressed if the browser takes that.
func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) >= small && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(body) // a buffer takes all
		_ = z.Close()
		h.Set("Content-Encoding", "gzip")
		body = packed.Bytes()
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the browser may be gone
}
