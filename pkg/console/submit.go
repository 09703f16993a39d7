package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// submission is the page Submit, and what was written into it.
type submission struct {
	Is          url.Values
	Collections []string // to choose from; empty: any can be named
	Types       []string
	Wrong       map[string]string // what is wrong with fields, by their names
	Other       string            // what else is wrong
	Sent        string            // the page of the batch that the form has made before
	Checked     *v1.BatchChecked
}

// submittedFields are the fields of the API by those of the form.
var submittedFields = map[string]string{
	"collection": "collection", "payload.url": "url", "payload.digest": "digest", "payload.filename": "filename",
	"payload.type": "type", "payload.upload": "upload", "payload.file": "upload", "identifiers.local": "local",
	"identifiers.primary": "primary", "identifiers": "local", "metadata.who": "who", "metadata.what": "what",
	"metadata.when": "when", "metadata.where": "where", "note": "note", "mode": "mode", "notification": "notification",
	"manifest": "manifest"}

// showSubmit shows the form of a submission. Fields in the address are filled in.
func (c *Console) showSubmit(v *visit) (view, error) {
	if !v.submits() {
		return view{}, fault.New(fault.Denied, "submissions need the role operator, or depositor of a collection")
	}
	return c.submitView(v, submission{Is: v.URL.Query()}), nil
}

// submitView is the page with what was written.
func (c *Console) submitView(v *visit, s submission) view {
	if !v.may(access.Operator) {
		s.Collections = v.is.Of(access.Depositor)
	}
	s.Types = v1.PayloadTypes
	if s.Is.Get("kind") == "" {
		s.Is = url.Values{}
		for name, values := range v.URL.Query() {
			s.Is[name] = values
		}
		s.Is.Set("kind", "files")
	}
	if c.Uploads != nil {
		if to := c.Uploads(v.Context()); to != "" {
			v.allow("connect-src", to)
		}
	}
	return view{Title: "Submit", Body: s, Still: true, Command: submitCommand(s.Is)}
}

// submitCommand is the command that submits the same.
func submitCommand(p url.Values) string {
	what := map[string]string{"files": "FOLDER", "manifest": "MANIFEST.checkm", "url": p.Get("url")}[p.Get("kind")]
	if what == "" {
		what = "URL"
	}
	out := "archivist submit " + quoted(what)
	for _, o := range [][2]string{{"-c", "collection"}, {"--what", "what"}, {"--who", "who"}, {"--when", "when"},
		{"--note", "note"}} {
		out += option(o[0], trimmed(p, o[1]))
	}
	return out
}

// submit checks a submission, or for step "do" submits it. What is refused is said at its field, and what was written
// stays.
func (c *Console) submit(v *visit, key string) error {
	s := submission{Is: v.PostForm, Wrong: map[string]string{}}
	in, err := submissionOf(s.Is)
	if err == nil {
		if s.Is.Get("step") == "do" {
			err = c.accepted(v, &s, in, key)
		} else {
			err = s.check(v, in)
		}
	}
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case v.via.refused || err != nil && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Conflict):
		return err
	case err != nil:
		s.Sent = madeBefore(err)
		s.Wrong, s.Other = faultsOf(err, submittedFields)
	}
	status := http.StatusOK
	if err != nil || s.Checked != nil && !s.Checked.Accepted {
		status = http.StatusUnprocessableEntity
	}
	c.show(v, status, "submit", c.submitView(v, s))
	return nil
}

// accepted submits. A manifest that was pasted is sent to an upload first.
func (c *Console) accepted(v *visit, s *submission, in v1.BatchRequest, key string) error {
	if s.Is.Get("kind") == "manifest" {
		if err := s.check(v, in); err != nil || !s.Checked.Accepted {
			return err
		}
		p, err := c.sendManifest(v, in.Collection, s.Is.Get("manifest"), key)
		if err != nil {
			return err
		}
		p.Type = s.Checked.Type
		in.Payload = p
	}
	manifest := s.Is.Get("kind") == "manifest"
	if in.Payload.Upload != "" && !manifest {
		key = "upload-" + in.Payload.Upload // a batch has an upload once
	}
	out, err := v.api.Submit(v.Context(), in, key)
	if manifest && sentBefore(err) {
		// The upload is of this try alone. If it cannot be discarded, it ends by itself.
		_, _ = v.api.DiscardUpload(v.Context(), in.Payload.Upload,
			"The form was submitted before, with another manifest.")
	}
	if err != nil {
		return err
	}
	redirect(v, "batches/"+url.PathEscape(out.ID)+"?did=submitted")
	return errAnswered
}

// check has the API check a submission.
func (s *submission) check(v *visit, in v1.BatchRequest) error {
	request := v1.BatchCheck{BatchRequest: in}
	if s.Is.Get("kind") == "manifest" {
		request.Manifest = s.Is.Get("manifest")
	}
	out, err := v.api.CheckBatch(v.Context(), request)
	if err == nil {
		s.Checked = &out
	}
	return err
}

// submissionOf reads the form.
func submissionOf(p url.Values) (in v1.BatchRequest, err error) {
	in = v1.BatchRequest{
		Collection: trimmed(p, "collection"),
		Mode:       p.Get("mode"),
		Note:       trimmed(p, "note"),
		Notification: strings.FieldsFunc(p.Get("notification"), func(r rune) bool {
			return strings.ContainsRune(", \r\n", r)
		}),
		Metadata: &v1.Metadata{Who: trimmed(p, "who"), What: trimmed(p, "what"), When: trimmed(p, "when"),
			Where: trimmed(p, "where")},
		Identifiers: &v1.Identifiers{Primary: trimmed(p, "primary")},
	}
	for line := range strings.Lines(p.Get("local")) {
		if id := strings.TrimSpace(line); id != "" {
			in.Identifiers.Local = append(in.Identifiers.Local, id)
		}
	}
	if in.Collection == "" {
		return in, fault.New(fault.Invalid, "collection: found nothing; name the collection")
	}
	switch p.Get("kind") {
	case "files":
		in.Payload = v1.Payload{Upload: p.Get("upload"), File: p.Get("file"), Type: p.Get("sentType"),
			Filename: p.Get("sentName")}
		if in.Payload.Upload == "" {
			return in, fault.New(fault.Invalid,
				"payload.upload: no files are sent yet; choose them, and wait until all are")
		}
	case "manifest":
		in.Payload = v1.Payload{}
		if trimmed(p, "manifest") == "" {
			return in, fault.New(fault.Invalid, "manifest: found nothing; paste the text of a manifest")
		}
	default:
		in.Payload = v1.Payload{URL: trimmed(p, "url"), Type: p.Get("type"), Filename: trimmed(p, "filename")}
		if digest := trimmed(p, "digest"); digest != "" {
			in.Payload.Digest = digestOf(digest)
		}
	}
	return in, nil
}

// digestOf is a digest as people write it: its algorithm, a colon or blank, and the value; or the value alone, whose
// length says the algorithm.
func digestOf(text string) *v1.Digest {
	if name, value, has := strings.Cut(strings.Replace(text, " ", ":", 1), ":"); has {
		return &v1.Digest{Algorithm: name, Value: strings.TrimSpace(value)}
	}
	name := map[int]string{32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}[len(text)]
	return &v1.Digest{Algorithm: name, Value: text}
}

// sendManifest sends the text of a manifest to an upload of its own, and returns it as a payload.
// The same form with the same manifest has the same upload: so one that is sent twice is
// submitted once.
func (c *Console) sendManifest(v *visit, collection, text, key string) (p v1.Payload, err error) {
	file := v1.ListedFile{SHA256: sumOf(text), Size: int64(len(text))}
	up, err := v.api.OpenUpload(v.Context(), v1.UploadRequest{Collection: collection, Files: 1, Bytes: file.Size},
		"console-"+key+"-"+sumOf(collection+"\n"+text))
	if err != nil {
		return p, err
	}
	p = v1.Payload{Upload: up.ID, File: file.SHA256, Filename: "manifest.checkm"}
	if up.State != v1.UploadOpen {
		return p, nil // it was submitted by the first of two requests
	}
	items, err := v.api.ListFiles(v.Context(), up.ID, []v1.ListedFile{file})
	if err != nil || len(items) == 0 || items[0].Stored {
		return p, err
	}
	if err := c.put(v.Context(), items[0].Put, text); err != nil {
		return p, err
	}
	stored, err := v.api.StoredFiles(v.Context(), up.ID, []string{file.SHA256})
	if err == nil && (len(stored) == 0 || !stored[0].Stored) {
		err = fault.New(fault.Unavailable, "the manifest was sent, and is not stored; try again")
	}
	return p, err
}

// put sends a text by a signed request.
func (c *Console) put(ctx context.Context, to *v1.SendPut, text string) error {
	if to == nil {
		return fault.New(fault.Unavailable, "the API names no request for the manifest")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, to.URL, strings.NewReader(text))
	if err != nil {
		return err
	}
	for name, value := range to.Headers {
		r.Header.Set(name, value)
	}
	resp, err := c.Web.RoundTrip(r)
	if err != nil {
		return fault.New(fault.Unavailable, "the storage at %s does not answer; try again", r.URL.Host)
	}
	_ = resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fault.New(fault.Unavailable, "the storage at %s answers %s; try again", r.URL.Host, resp.Status)
	}
	return nil
}
