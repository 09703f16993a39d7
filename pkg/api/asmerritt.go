package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"archivist/pkg/api/merritt"
	v1 "archivist/pkg/api/v1"
)

// ofMerritt reports whether a path is one that clients of Merritt post to.
func ofMerritt(path string) bool {
	return strings.HasPrefix(path, "/poster/") || path == "/object/ingest" ||
		path == "/object/update"
}

// asMerritt answers clients of Merritt: a problem document becomes the refusal that they read, in the form that they
// ask for. Their paths may end in a slash.
func asMerritt(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		if !ofMerritt(path) {
			next.ServeHTTP(w, r)
			return
		}

		var read bytes.Buffer
		whole, body := *r, r.Body
		at := *r.URL
		at.Path, at.RawPath = path, strings.TrimSuffix(r.URL.RawPath, "/")
		whole.URL, whole.Body = &at, struct {
			io.Reader
			io.Closer
		}{io.TeeReader(body, &read), body}
		held := &problemHeld{ResponseWriter: w}
		next.ServeHTTP(held, &whole)
		if !held.is {
			return
		}

		// The form of the answer may be said in what the refusal did not have to read.
		_, _ = io.Copy(&read, io.LimitReader(body, int64(max(0, merritt.MaxForm-read.Len()))))
		refusal := held.refusal()
		form := merritt.FormatOf(r.Header.Get("Content-Type"), read.Bytes(), r.Header.Get("Accept"))
		w.Header().Set("Content-Type", form.Media()+"; charset=utf-8")
		w.WriteHeader(refusal.HTTP())
		_, _ = w.Write(form.Encode(refusal)) // the client has disconnected
	})
}

// merrittTooLarge says what to do with a file that no request can bring.
const merrittTooLarge = "file: a form has at most 4 MiB (4194304 bytes); larger files are given " +
	"by their URLs in a " +
	"manifest, or sent by archivist submit"

// problemHeld is a response that holds a problem document back, and passes all else on.
type problemHeld struct {
	http.ResponseWriter
	is       bool
	document bytes.Buffer
}

// WriteHeader passes the status on, unless a problem document follows.
func (h *problemHeld) WriteHeader(status int) {
	h.is = h.Header().Get("Content-Type") == problemMedia
	if !h.is {
		h.ResponseWriter.WriteHeader(status)
	}
}

// Write keeps a problem document, and passes all else on.
func (h *problemHeld) Write(p []byte) (int, error) {
	if h.is {
		return h.document.Write(p)
	}
	return h.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController, by which the framework sets the time limit of the body.
func (h *problemHeld) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// refusal is the problem that is held, with all that it says in one text.
func (h *problemHeld) refusal() merritt.Refusal {
	var p v1.Problem
	_ = json.Unmarshal(h.document.Bytes(), &p) // it was written here
	says := []string{p.Detail}
	for _, e := range p.Errors {
		says = append(says, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	if p.Status == http.StatusRequestEntityTooLarge {
		says = []string{merrittTooLarge}
	}
	return merritt.Refusal{Status: p.Status, Detail: strings.Join(says, "; ")}
}
