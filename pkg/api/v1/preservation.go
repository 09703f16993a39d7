package v1

import "context"

// FixityCheck is the last check of the stored files of an object.
type FixityCheck struct {
	// When the check ended.
	Checked string `json:"checked" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Damaged: a file has another digest than the inventory says, or is missing. Unreadable: there is no damage, but
	// some file could not be read.
	Outcome string `json:"outcome" enum:"ok,damaged,unreadable"`
	// The newest version that was checked, with all before it.
	Version int `json:"version" example:"1"`
	// The number of files, of all versions and with the inventories.
	Files int `json:"files" example:"14"`
	// The bytes that were read.
	Bytes int64 `json:"bytes" example:"3160112"`
	// What is wrong: the first 20 files.
	Problems []FixityProblem `json:"problems,omitempty"`
	// The number of the other files with which something is wrong.
	More int `json:"moreProblems,omitempty" example:"3"`
}

// FixityProblem is what is wrong with a stored file.
type FixityProblem struct {
	// The key of the file in the storage bucket.
	Key string `json:"key" example:"0a1/b2c/3d4/ark%3a%2f99999%2ffk4tq65d6k/v1/content/01M7/producer/map.tif"`
	// What is wrong. Sidecar: the sidecar of an inventory is missing.
	Kind string `json:"kind" enum:"mismatch,missing,unreadable,sidecar"`
	// The digest that it must have.
	Expected string `json:"expected,omitempty"`
	// The digest that it has.
	Actual string `json:"actual,omitempty"`
	// Why it cannot be read.
	Reason string `json:"reason,omitempty" example:"AccessDenied"`
}

// FileFormats is a file of a version with its formats.
type FileFormats struct {
	// The path of the file.
	Path string `json:"path" example:"producer/map.tif"`
	// Its size in bytes.
	Size int64 `json:"size" example:"3150112"`
	// Its formats. A file of no known format has one, with the id UNKNOWN.
	Formats []Format `json:"formats"`
}

// Format is a format of a file.
type Format struct {
	// The id of the format in PRONOM, or UNKNOWN.
	ID string `json:"id" example:"fmt/353"`
	// The name of the format.
	Name string `json:"name,omitempty" example:"Tagged Image File Format"`
	// The version of the format.
	Version string `json:"version,omitempty" example:"6.0"`
	// The media type of the format.
	MediaType string `json:"mediaType,omitempty" example:"image/tiff"`
	// What in the file shows that it has the format.
	Basis string `json:"basis,omitempty" example:"extension match tif; byte match at 0, 4"`
	// What speaks against the format, or why none was found.
	Warning string `json:"warning,omitempty" example:"extension mismatch"`
}

// Fixity returns the last check of an object's stored files.
func (c *Client) Fixity(ctx context.Context, ark string) (FixityCheck, error) {
	return get[FixityCheck](ctx, c, ObjectPath(ark)+"/fixity")
}

// Formats lists the formats of the files of a version, by path.
func (c *Client) Formats(ctx context.Context, ark string, version int) ([]FileFormats, error) {
	return list[FileFormats](ctx, c, versionPath(ark, version)+"/formats", Filter{})
}
