package console

import (
	"encoding/json"
	"errors"
	"net/http"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
)

// largestCall bounds what the script sends, in bytes: the list of the files.
const largestCall = 4 << 20

// sending is what the script of the page Submit asks for.
type sending struct {
	Collection string          `json:"collection"`
	Each       bool            `json:"each"`
	Again      bool            `json:"again"`
	Chosen     []*plan.File    `json:"chosen"`
	Files      []v1.ListedFile `json:"files"`
	Stored     []string        `json:"stored"`
}

// opened is the upload of a plan, with what the form has to say of it.
type opened struct {
	v1.Upload
	Manifest string     `json:"manifest,omitempty"`
	Sum      string     `json:"manifestSha256,omitempty"`
	Payload  v1.Payload `json:"payload"`
}

// called serves a call of a script: JSON for JSON. It has the token of a form in a header.
func (c *Console) called(f func(*Console, *visit, sending) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, largestCall)
		v, err := c.arrive(w, r)
		var out any
		if err == nil {
			out, err = c.answerTo(v, f)
		}
		if err == nil {
			c.json(v, http.StatusOK, out)
			return
		}
		status, says := fault.At(err).Status, err.Error()
		switch {
		case errors.Is(err, errSession) || v.via.refused:
			status, says = http.StatusUnauthorized, "your session has ended; sign in in another tab, and try again"
		case fault.Of(err) == "":
			c.Log.Error("a call of a page failed", "path", r.URL.Path, "error", err)
			says = "an error of the archive; its log has the cause"
		}
		c.json(v, status, map[string]string{"problem": shown(says)})
	}
}

// answerTo answers a call whose form is of the session.
func (c *Console) answerTo(v *visit, f func(*Console, *visit, sending) (any, error)) (any, error) {
	if _, ok := formKey(v.session, v.Header.Get("Archivist-Form")); !ok {
		return nil, fault.New(fault.Denied, "the page is not of this session; load it again")
	}
	var in sending
	if err := json.NewDecoder(v.Body).Decode(&in); err != nil {
		return nil, fault.New(fault.Invalid, "the request cannot be read: it is malformed, or larger than 4 MiB")
	}
	return f(c, v, in)
}

// json answers with a value.
func (c *Console) json(v *visit, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	v.w.Header().Set("Content-Type", "application/json")
	write(v.w, v.Request, status, data)
}

// openUpload opens the upload of the chosen files, or finds that of an earlier try.
func (c *Console) openUpload(v *visit, in sending) (any, error) {
	files, err := filesOf(in.Chosen, in.Each)
	if err != nil {
		return nil, err
	}
	p, err := files.Plan(source.NoUpload, "")
	if err != nil {
		return nil, err
	}
	up, err := v.api.OpenUpload(v.Context(), p.Request(in.Collection, in.Again), p.Key(in.Collection, ""))
	if err != nil {
		return nil, err
	}
	if p, err = files.Plan(up.ID, ""); err != nil {
		return nil, err
	}
	out := opened{Upload: up, Manifest: string(p.Manifest()), Payload: p.Payload}
	if out.Manifest != "" {
		out.Sum, out.Payload.Filename = p.Payload.File, "manifest.checkm"
	}
	return out, nil
}

// sendFiles says how files are sent.
func (c *Console) sendFiles(v *visit, in sending) (any, error) {
	return v.api.ListFiles(v.Context(), v.PathValue("id"), in.Files)
}

// storedFiles has files verified that were sent.
func (c *Console) storedFiles(v *visit, in sending) (any, error) {
	return v.api.StoredFiles(v.Context(), v.PathValue("id"), in.Stored)
}
