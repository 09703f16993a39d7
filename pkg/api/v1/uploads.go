package v1

import "context"

// UploadStates are the states of an upload. One that is Expired or Discarded is listed until its files are removed.
var UploadStates = []string{UploadOpen, UploadSubmitted, UploadExpired, UploadDiscarded}

// The states of uploads.
const (
	UploadOpen      = "Open"      // files can be stored
	UploadSubmitted = "Submitted" // a batch has it
	UploadExpired   = "Expired"   // nobody submitted it in time
	UploadDiscarded = "Discarded" // a person discarded it
)

// UploadRequest asks for an upload: place for the files of one submission.
type UploadRequest struct {
	// The collection that the submission will be for.
	Collection string `json:"collection" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"maps"`
	// The number of different files. Files with the same content are one.
	Files int `json:"files" minimum:"1" maximum:"100000" example:"2"`
	// The size of these files together, in bytes. It counts towards the quota of the collection at once.
	Bytes int64 `json:"bytes" minimum:"0" example:"1048576"`
	// A note about the upload.
	Note string `json:"note,omitempty" maxLength:"2000" example:"Scans of 2026"`
	// By default a request whose upload a batch has, returns that one. With true it opens another upload, which its
	// Idempotency-Key names from then on.
	Again bool `json:"again,omitempty"`
}

// UploadSize is a number of files and their size.
type UploadSize struct {
	// The number of files.
	Files int `json:"files" example:"2"`
	// Their size together, in bytes.
	Bytes int64 `json:"bytes" example:"1048576"`
}

// Upload is a set of files in the work bucket, made for one submission.
type Upload struct {
	// The id of the upload.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7"`
	// The collection that the submission will be for.
	Collection string `json:"collection" example:"maps"`
	// The state of the upload.
	State string `json:"state"`
	// The number of different files that it was opened for.
	Files int `json:"files" example:"2"`
	// The size of these files together, in bytes.
	Bytes int64 `json:"bytes" example:"1048576"`
	// What is listed so far.
	Listed UploadSize `json:"listed"`
	// What is stored and verified so far.
	Stored UploadSize `json:"stored"`
	// When it was opened.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it ends, unless it is submitted before.
	Expires string `json:"expires" format:"date-time" example:"2026-11-29T09:30:00Z"`
	// The batch that has it. Absent until it is submitted.
	Batch string `json:"batch,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The note about the upload.
	Note string `json:"note,omitempty" example:"Scans of 2026"`
}

// ListedFile is a file to be stored in an upload. It is named by its content.
type ListedFile struct {
	// The SHA-256 of the file, in hexadecimal.
	SHA256 string `json:"sha256" pattern:"^[0-9a-f]{64}$"`
	// Its size in bytes.
	Size int64 `json:"size" minimum:"0" maximum:"5497558138880" example:"1048576"`
}

// UploadFile is a file of an upload.
type UploadFile struct {
	ListedFile
	// Whether the file is stored and verified.
	Stored bool `json:"stored" example:"true"`
	// The bytes of it that are stored. Parts of a large file that were sent count.
	Uploaded int64 `json:"uploaded" example:"1048576"`
}

// ListedFiles are files to be stored in an upload.
type ListedFiles struct {
	// The files. A file that is listed twice is one.
	Files []ListedFile `json:"files" minItems:"1" maxItems:"100"`
}

// SendFiles says how files are sent.
type SendFiles struct {
	// The files, each once, in the order of the request.
	Items []SendFile `json:"items"`
}

// SendFile says how a file is sent. One that is stored has neither put nor parts: it need not be sent.
type SendFile struct {
	ListedFile
	// Whether the file is stored and verified.
	Stored bool `json:"stored" example:"false"`
	// The request with which a small file is sent. Absent for a large one.
	Put *SendPut `json:"put,omitempty"`
	// The requests with which a large file is sent in parts. Absent for a small one.
	Parts *SendParts `json:"parts,omitempty"`
	// When the requests are no longer accepted. Ask again for new ones.
	Expires string `json:"expires" format:"date-time" example:"2026-11-22T10:30:00Z"`
}

// SendPut is a PUT request with the content of the file as its body.
type SendPut struct {
	// The URL of the request. Whoever has it can send this file, and nothing else.
	URL string `json:"url" format:"uri" example:"https://s3.example.org/uploads/key?signature"`
	// The headers that the request must have.
	Headers map[string]string `json:"headers"`
}

// SendParts are PUT requests for the parts of a file. All parts but the last have the same size.
type SendParts struct {
	// The size of each part but the last, in bytes.
	PartSize int64 `json:"partSize" example:"67108864"`
	// The number of parts of the file.
	Count int `json:"count" example:"16"`
	// The numbers of the parts that are stored.
	Stored []int `json:"stored" example:"[1]"`
	// The requests for the next missing parts, at most 100. Send these, and ask again for the next ones.
	URLs []SendPart `json:"urls"`
}

// SendPart is a PUT request with the content of a part as its body.
type SendPart struct {
	// The number of the part, from 1.
	Number int `json:"number" example:"2"`
	// The URL of the request.
	URL string `json:"url" format:"uri" example:"https://s3.example.org/uploads/key?signature"`
}

// StoredRequest names files that were sent.
type StoredRequest struct {
	// The SHA-256 of each file, in hexadecimal.
	Files []string `json:"files" minItems:"1" maxItems:"100"`
}

// StoredFiles says which of the files that were sent are stored.
type StoredFiles struct {
	// The files, each once, in the order of the request.
	Items []StoredFile `json:"items"`
}

// StoredFile says whether a file that was sent is stored.
type StoredFile struct {
	// The SHA-256 of the file, in hexadecimal.
	SHA256 string `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	// Whether the file is stored and verified.
	Stored bool `json:"stored" example:"true"`
	// What is wrong with it, and what to do. Absent if it is stored.
	Problem string `json:"problem,omitempty" example:"there is no such file in the upload yet; send it"`
}

// UploadAction is an action on an upload.
type UploadAction struct {
	// The action.
	Action string `json:"action" enum:"discard"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"It was the wrong folder."`
}

// OpenUpload opens an upload. Until the upload ends, the same key with the same request gives the same upload, also one
// that is submitted, unless the request says Again.
func (c *Client) OpenUpload(ctx context.Context, in UploadRequest, key string) (Upload, error) {
	return post[Upload](ctx, c, "/v1/uploads", in, key)
}

// Upload returns one upload.
func (c *Client) Upload(ctx context.Context, id string) (Upload, error) {
	return get[Upload](ctx, c, at("uploads", id))
}

// Uploads lists a collection's uploads, newest first.
func (c *Client) Uploads(ctx context.Context, f Filter) ([]Upload, error) {
	return list[Upload](ctx, c, "/v1/uploads", f.Limit, f.query()...)
}

// UploadFiles lists the files of an upload, in the order of their digests.
func (c *Client) UploadFiles(ctx context.Context, id string) ([]UploadFile, error) {
	return list[UploadFile](ctx, c, at("uploads", id, "files"), 0)
}

// ListFiles adds files to an upload, at most 100, and returns the requests with which they are sent. It can be
// repeated: the answer has what is missing then.
func (c *Client) ListFiles(ctx context.Context, id string, files []ListedFile) ([]SendFile, error) {
	out, err := post[SendFiles](ctx, c, at("uploads", id, "files"), ListedFiles{files})
	return out.Items, err
}

// StoredFiles has files verified that were sent, at most 100.
func (c *Client) StoredFiles(ctx context.Context, id string, sha256 []string) ([]StoredFile, error) {
	out, err := post[StoredFiles](ctx, c, at("uploads", id, "stored"), StoredRequest{sha256})
	return out.Items, err
}

// DiscardUpload ends an upload that is not submitted. Its files are removed.
func (c *Client) DiscardUpload(ctx context.Context, id, reason string) (Upload, error) {
	return post[Upload](ctx, c, at("uploads", id, "actions"), UploadAction{"discard", reason})
}
