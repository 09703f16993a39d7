package ingest

import (
	"cmp"
	"fmt"

	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
)

// UploaderOf is who uploaded a file with this URL in the submission; "" if it was not uploaded, or that is not known.
func (p Payload) UploaderOf(url string) string {
	if !source.IsUpload(url) {
		return ""
	}
	return p.Uploader
}

// UploadedBy is who opened the upload, for texts.
func (p Payload) UploadedBy() string { return cmp.Or(p.Uploader, "the depositor") }

// Source says where the payload comes from: its URL without secrets or, if it was uploaded, its name and who uploaded
// it, since the upload does not stay. It is "" if there is no payload.
func (p Payload) Source() string {
	switch {
	case p.URL == "":
		return ""
	case source.IsUpload(p.URL):
		return fmt.Sprintf("%s, uploaded by %s", p.Filename, p.UploadedBy())
	}
	return fetch.Redact(p.URL)
}
