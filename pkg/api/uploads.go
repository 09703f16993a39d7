package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
)

// UploadRequest is a request to open an upload.
type UploadRequest struct {
	Acting
	Body v1.UploadRequest
}

// ListFiles is a request to add files to an upload.
type ListFiles struct {
	IDInput
	Body v1.ListedFiles
}

// StoredFiles is a request to look for files of an upload.
type StoredFiles struct {
	IDInput
	Body v1.StoredRequest
}

// UploadAction is a request to act on an upload.
type UploadAction struct {
	IDInput
	Caller
	Body v1.UploadAction
}

// Opened is the response to a request for an upload.
type Opened struct {
	Location string `header:"Location" doc:"The upload's URL, relative." example:"uploads/01M7ZBMEYHBB62YP6RY21T1GQ7"`
	Body     v1.Upload
}

// OfCollection is a request for a page of what is in a collection, e.g. its uploads.
type OfCollection struct {
	Collection string `query:"collection" required:"true"`
	State      string `query:"state"`
	Cursor     string `query:"cursor"`
}

// uploads registers the routes of uploads. Content never passes the function: files are sent to S3 by signed requests.
func (a *API) uploads(h huma.API) {
	const path = "/v1/uploads"
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          path,
		OperationID:   "openUpload",
		Summary:       "Open an upload",
		DefaultStatus: http.StatusCreated,
	}, a.openUpload)

	get(a, h, path, "listUploads", "List a collection's uploads", a.uploadsOf)
	get(a, h, path+"/{id}", "getUpload", "Get an upload", func(ctx context.Context,
		in *IDInput) (v1.Upload, error) {
		return oneUpload(a.Uploads.Upload(ctx, in.ID))
	})
	get(a, h, path+"/{id}/files", "listUploadFiles", "List the files of an upload",
		func(ctx context.Context, in *IDCursor) (v1.List[v1.UploadFile], error) {
			p, err := a.Uploads.Files(ctx, in.ID, in.Cursor)
			return list(p, func(f upload.Kept) v1.UploadFile {
				return v1.UploadFile{ListedFile: wireListed(f.Listed), Stored: f.Stored,
					Uploaded: f.Uploaded}
			}), err
		})
	post(a, h, path+"/{id}/files", "listFilesToUpload", "Add files to an upload", a.listFiles)
	post(a, h, path+"/{id}/stored", "storedFiles", "Have files verified that were sent",
		a.storedFiles)
	post(a, h, path+"/{id}/actions", "actOnUpload", "Discard an upload",
		func(ctx context.Context, in *UploadAction) (v1.Upload, error) {
			by, err := in.actor()
			if err != nil {
				return v1.Upload{}, err
			}
			return oneUpload(a.Uploads.Discard(ctx, in.ID, by, in.Body.Reason))
		})
	get(a, h, path+"/{id}/events", "listUploadEvents", "List an upload's events",
		a.events(event.Upload))
}

// openUpload opens an upload. With a key, the same request returns the same upload until that ends.
func (a *API) openUpload(ctx context.Context, in *UploadRequest) (*Opened, error) {
	by, err := in.actor()
	if err == nil {
		err = mayDeposit(ctx, in.Body.Collection)
	}
	if err != nil {
		return nil, a.problem(err)
	}
	asks := in.Body
	asks.Again = false                 // it asks for the same upload, and not for another one with the key
	meaning, err := json.Marshal(asks) // as for a submission: see submit
	if err != nil {
		return nil, a.problem(err)
	}

	row, err := a.Uploads.Open(ctx, upload.Request{Collection: in.Body.Collection,
		Files: in.Body.Files,
		Bytes: in.Body.Bytes, Note: strings.TrimSpace(in.Body.Note), By: by, Key: keyOf(ctx, in.Key),
		Meaning: meaning, Again: in.Body.Again})
	if err != nil {
		return nil, a.problem(err)
	}
	return &Opened{"uploads/" + row.ID, wireUpload(*row)}, nil
}

// uploadsOf lists the uploads of a collection, newest first. An unknown collection has none.
func (a *API) uploadsOf(ctx context.Context, in *OfCollection) (v1.List[v1.Upload], error) {
	state, err := filterBy(in.State, v1.UploadStates)
	if err != nil {
		return v1.List[v1.Upload]{}, err
	}

	read := func(cursor string) (queue.Page[upload.Upload], error) {
		return a.Uploads.Of(ctx, in.Collection, cursor)
	}
	p, err := filtered(a, read, in.Cursor, inState(state,
		func(u upload.Upload) string { return string(u.State) }))
	return list(p, wireUpload), err
}

// listFiles adds files, and says how those that are missing are sent.
func (a *API) listFiles(ctx context.Context, in *ListFiles) (v1.SendFiles, error) {
	files := each(in.Body.Files,
		func(f v1.ListedFile) upload.Listed { return upload.Listed{Sum: f.SHA256, Size: f.Size} })
	out, err := a.Uploads.List(ctx, in.ID, files)
	return v1.SendFiles{Items: each(out, wireSend)}, err
}

// storedFiles verifies files that were sent.
func (a *API) storedFiles(ctx context.Context, in *StoredFiles) (v1.StoredFiles, error) {
	out, err := a.Uploads.Stored(ctx, in.ID, in.Body.Files)
	return v1.StoredFiles{Items: each(out, func(s upload.Sent) v1.StoredFile {
		return v1.StoredFile{SHA256: s.Sum, Stored: s.Stored, Problem: s.Problem}
	})}, err
}

func wireListed(f upload.Listed) v1.ListedFile { return v1.ListedFile{SHA256: f.Sum, Size: f.Size} }

// wireSend is the wire form of how a file is sent.
func wireSend(s upload.Send) v1.SendFile {
	out := v1.SendFile{ListedFile: wireListed(s.Listed), Stored: s.Stored,
		Expires: timestamp(s.Expires)}
	if s.Put != nil {
		out.Put = &v1.SendPut{URL: s.Put.URL, Headers: s.Put.Headers}
	}
	if p := s.Parts; p != nil {
		out.Parts = &v1.SendParts{PartSize: p.Size, Count: p.Count, Stored: p.Stored,
			URLs: each(p.Next,
				func(n upload.Part) v1.SendPart {
					return v1.SendPart{Number: n.Number,
						URL: n.URL}
				})}
	}
	return out
}

// oneUpload is the wire form of an upload that was read, if it was.
func oneUpload(row *upload.Upload, err error) (v1.Upload, error) {
	if err != nil {
		return v1.Upload{}, err
	}
	return wireUpload(*row), nil
}

// wireUpload is the wire form of an upload.
func wireUpload(u upload.Upload) v1.Upload {
	return v1.Upload{
		ID:         u.ID,
		Collection: u.Collection,
		State:      string(u.State),
		Files:      u.Files,
		Bytes:      u.Bytes,
		Listed:     v1.UploadSize{Files: u.ListedFiles, Bytes: u.ListedBytes},
		Stored:     v1.UploadSize{Files: u.StoredFiles, Bytes: u.StoredBytes},
		Created:    timestamp(u.Created),
		Expires:    timestamp(u.Expires),
		Batch:      u.Batch,
		Note:       u.Note,
	}
}
