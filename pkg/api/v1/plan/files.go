// Package plan plans what is sent to an upload, and submitted then: the contents of files, each once, and the manifests
// that list them. The command line and the console submit files by it. It reads no files.
//
//	files := plan.Files{Listed: true, Objects: []plan.Object{{Files: letters}}}
//	files.Check(wrong, alike)                           // nothing is sent if something is wrong
//	p, err := files.Plan(source.NoUpload, "")           // what will be sent, and what is submitted
//	upload, err := client.OpenUpload(ctx, p.Request("maps", false), p.Key("maps", ""))
//	p, err = files.Plan(upload.ID, "")
//
// What is sent is named by its content. So the same files, planned again after an interruption, get the same upload.
package plan

import "time"

// File is a file of a depositor.
type File struct {
	Name   string `json:"name"`   // in the object, with slashes
	SHA256 string `json:"sha256"` // in hexadecimal
	Size   int64  `json:"size"`   // in bytes

	Path     string    `json:"-"` // where the depositor has it, for messages
	Modified time.Time `json:"-"` // zero if that is not known
}

// Object is an object to be made.
type Object struct {
	// ID is its local id with Each.
	ID string
	// IsFile is set if it is a file, and not a folder or a list of files.
	IsFile bool
	Files  []*File
}

// Files are files as objects.
type Files struct {
	Objects []Object
	// Listed is set if the files are those of one object, listed in a manifest. It is not for a single file.
	Listed bool
	// Each is set if there can be several objects.
	Each bool
}

// Size is the number of the files, and of their bytes, with those that are equal.
func (f *Files) Size() (files int, bytes int64) {
	for _, o := range f.Objects {
		for _, file := range o.Files {
			files, bytes = files+1, bytes+file.Size
		}
	}
	return files, bytes
}
