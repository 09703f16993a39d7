package api

import (
	"maps"

	v1 "archivist/pkg/api/v1"
)

// uploadID is the upload of the examples.
const uploadID = "01M7ZBMEYHBB62YP6RY21T1GQ7"

var uploadExample = v1.Upload{ID: uploadID, Collection: "maps", State: v1.UploadOpen, Files: 2,
	Bytes:  1<<30 + 6,
	Listed: v1.UploadSize{Files: 2, Bytes: 1<<30 + 6}, Stored: v1.UploadSize{Files: 1, Bytes: 6},
	Created: "2026-11-22T09:30:00Z", Expires: "2026-11-29T09:30:00Z", Note: "Scans of 2026"}

var sendExample = v1.SendFiles{Items: []v1.SendFile{
	{ListedFile: v1.ListedFile{SHA256: sha256Example, Size: 6}, Expires: timeExample,
		Put: &v1.SendPut{URL: "https://s3.example.org/uploads/key?signature",
			Headers: map[string]string{"x-amz-checksum-sha256": "n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg="}}},
	{ListedFile: v1.ListedFile{SHA256: sha256Example, Size: 1 << 30}, Expires: timeExample,
		Parts: &v1.SendParts{PartSize: 64 << 20, Count: 16, Stored: []int{1},
			URLs: []v1.SendPart{{Number: 2,
				URL: "https://s3.example.org/uploads/key?partNumber=2&signature"}}}},
}}

// uploadOperations are added to operations when the package is initialized.
var uploadOperations = map[string]about{
	"openUpload": {tag: "Uploads", role: operator, scope: inHandler, refusals: []problemType{conflict},
		request: v1.UploadRequest{Collection: "maps", Files: 2, Bytes: 1<<30 + 6, Note: "Scans " +
			"of 2026"},
		answer: uploadExample,
		description: "Place for the files of one submission, by the number and the size of the " +
			"files together. They count towards the quota of the collection until the upload is " +
			"removed: when its batch has ended, or when it expires. The header `Location` is " +
			"the URL of the upload, relative to the request.\n\nWith an `Idempotency-Key` the " +
			"same request returns the same upload until it has expired, is discarded or is removed. " +
			"One that is submitted is returned, too; with `again` another one is opened then, which " +
			"the key names from then on. A different request is a conflict."},
	"listUploads": {tag: "Uploads", role: viewer, scope: ofList, states: v1.UploadStates,
		answer: v1.List[v1.Upload]{Items: []v1.Upload{uploadExample}, Cursor: cursorExample},
		description: "Newest first, 50 to a page. The filter is applied before the paging. " +
			"Removed uploads are not listed."},
	"getUpload": {tag: "Uploads", role: viewer, scope: ofUpload, refusals: []problemType{notFound},
		answer:      uploadExample,
		description: "The current state of the upload."},
	"listUploadFiles": {tag: "Uploads", role: viewer, scope: ofUpload, refusals: []problemType{notFound},
		answer: v1.List[v1.UploadFile]{Items: []v1.UploadFile{{ListedFile: v1.ListedFile{SHA256: sha256Example,
			Size: 6}, Stored: true, Uploaded: 6}}},
		description: "In the order of their digests, 100 to a page, with how much of each was " +
			"sent."},
	"listFilesToUpload": {tag: "Uploads", role: operator, scope: ofUpload, refusals: []problemType{notFound, conflict},
		request: v1.ListedFiles{Files: []v1.ListedFile{{SHA256: sha256Example, Size: 6}}},
		answer:  sendExample,
		description: "The answer has signed requests for what is missing: a `PUT` of the whole " +
			"for a file of at most 64 MiB, of parts for a larger one, with at most 100 parts " +
			"for a file and 200 in an answer. A request stores nothing but a file of this size " +
			"with this SHA-256, or a part of this size. Files that were listed before are " +
			"looked for: what was sent is told as stored. So a client that was interrupted " +
			"lists its files again, and sends the rest. A client that has sent what it got asks " +
			"again for the next parts."},
	"storedFiles": {tag: "Uploads", role: operator, scope: ofUpload, refusals: []problemType{notFound, conflict},
		request: v1.StoredRequest{Files: []string{sha256Example}},
		answer:  v1.StoredFiles{Items: []v1.StoredFile{{SHA256: sha256Example, Stored: true}}},
		description: "Each file is looked for in the storage, and its size is compared; of a " +
			"file that was sent at once, also its SHA-256. All parts of a large file become one " +
			"file. `problem` says what is wrong, and what to do."},
	"actOnUpload": {tag: "Uploads", role: operator, scope: ofUpload, refusals: []problemType{notFound, conflict},
		request: v1.UploadAction{Action: "discard", Reason: "It was the wrong folder."},
		answer:  discardedExample(),
		description: "`discard` ends an upload that is not submitted. Its files are removed " +
			"some hours later: requests that were signed may still be under way."},
	"listUploadEvents": {tag: "Uploads", role: viewer, scope: ofUpload, refusals: []problemType{notFound},
		answer: events(v1.EventUploadSubmitted, "Upload", `{}`),
		description: "The events of the upload, oldest first. They are kept after the upload is " +
			"removed."},
}

// discardedExample is the upload after the action.
func discardedExample() v1.Upload {
	u := uploadExample
	u.State = v1.UploadDiscarded
	return u
}

func init() {
	maps.Copy(operations, uploadOperations)
	for _, id := range []string{"getUpload", "listUploadFiles", "listFilesToUpload", "storedFiles",
		"actOnUpload",
		"listUploadEvents"} {
		parameters[id+" id"] = parameter{"The id of the upload.", uploadID}
	}
}
