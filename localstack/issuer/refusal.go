package issuer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// refusal is an error of an endpoint for clients (RFC 6749, section 5.2).
type refusal struct {
	code string // e.g. invalid_grant
	text string // for people; never what was sent
}

// Error is the code, with the text.
func (e *refusal) Error() string { return e.code + ": " + e.text }

// no makes a refusal.
func no(code, text string) error { return &refusal{code, text} }

// refuse answers with a refusal.
func refuse(w http.ResponseWriter, code, text string) {
	status := http.StatusBadRequest
	switch code {
	case "invalid_client":
		status = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Basic realm="archivist"`)
	case "server_error":
		status = http.StatusInternalServerError
	}
	answer(w, status, map[string]string{"error": code, "error_description": text})
}

// form are the parameters of a request of a client: those of its body alone, each at most once.
func form(r *http.Request) (url.Values, error) {
	if err := r.ParseForm(); err != nil {
		return nil, errors.New("the body cannot be read; expected a form")
	}
	for _, values := range r.PostForm {
		if len(values) > 1 {
			return nil, errors.New("a parameter is there twice")
		}
	}
	return r.PostForm, nil
}

// answer writes a JSON document.
func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
