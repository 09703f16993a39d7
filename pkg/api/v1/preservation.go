package v1

import (
	"context"
	"slices"
)

// Which of the two sets of files of an object is meant.
const (
	InStorage = "storage" // those in the storage bucket
	InCopy    = "copy"    // their copies in the second bucket
)

// FixityCheck is the last check of the stored files of an object, or of their copies.
type FixityCheck struct {
	// Where the files are: in the storage bucket, or in the second bucket.
	In string `json:"in" enum:"storage,copy"`
	// When the check ended.
	Checked string `json:"checked" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Damaged: a file has another digest than the inventory says, or is missing; an inventory is not the one on record;
	// or there is a key that no inventory names. Unreadable: there is no damage, but some file could not be read.
	Outcome string `json:"outcome" enum:"ok,damaged,unreadable"`
	// The newest version that was checked, with all before it.
	Version int `json:"version" example:"1"`
	// The number of files, of all versions and with the inventories.
	Files int `json:"files" example:"14"`
	// The bytes that were read.
	Bytes int64 `json:"bytes" example:"3160112"`
	// The newest version whose inventory was compared with its digest on record, outside of the storage bucket. 0: none
	// is on record, so the inventories were compared with each other only.
	OnRecord int `json:"onRecord" example:"1"`
	// What is wrong: the first 20 files.
	Problems []FixityProblem `json:"problems,omitempty"`
	// The number of the other files with which something is wrong.
	More int `json:"moreProblems" example:"3"`
}

// FixityProblem is what is wrong with a stored file.
type FixityProblem struct {
	// The key of the file, in its bucket.
	Key string `json:"key" example:"0a1/b2c/3d4/ark%3a%2f99999%2ffk4tq65d6k/v1/content/01M7/producer/map.tif"`
	// What is wrong. Sidecar: the sidecar of an inventory is missing. Record: the inventory is not the one that is on
	// record. Unnamed: no inventory names the key.
	Kind string `json:"kind" enum:"mismatch,missing,unreadable,sidecar,record,unnamed"`
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

// FileChange is a file that differs between a version and the one before.
type FileChange struct {
	// Whether the file was added, changed or removed.
	Change string `json:"change" enum:"added,changed,removed" example:"changed"`
	// The path of the file.
	Path string `json:"path" example:"producer/map.tif"`
	// The file in the version before. Absent if it was added.
	Was *FileState `json:"was,omitempty"`
	// The file in this version. Absent if it was removed.
	Is *FileState `json:"is,omitempty"`
}

// FileState is what a file is in a version.
type FileState struct {
	// The size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// The SHA-512 of its content, in hexadecimal.
	SHA512 string `json:"sha512"`
}

// Fixity returns the last check of an object's stored files, or of their copies: in is InStorage or InCopy.
func (c *Client) Fixity(ctx context.Context, ark, in string) (FixityCheck, error) {
	return get[FixityCheck](ctx, c, ObjectPath(ark)+"/fixity"+query("in", in))
}

// Formats lists the formats of the files of a version, by path.
func (c *Client) Formats(ctx context.Context, ark string, version int) ([]FileFormats, error) {
	return list[FileFormats](ctx, c, versionPath(ark, version)+"/formats", 0)
}

// VersionZip is a zip file of all files of a version.
type VersionZip struct {
	// The number of the version.
	Version int `json:"version" example:"1"`
	// The number of the depositor's files in it.
	Files int `json:"files" example:"4"`
	// Their bytes.
	Bytes int64 `json:"bytes" example:"3151872"`
}

// MakeZip makes the zip file of a version, unless it is there: of at most 300 files and 128 MiB. It can be got for some
// days, by a GET of ZipPath.
func (c *Client) MakeZip(ctx context.Context, ark string, version int) (VersionZip, error) {
	return post[VersionZip](ctx, c, ZipPath(ark, version), nil, "")
}

// ZipPath is where the zip file of a version is: the API redirects to the storage.
func ZipPath(ark string, version int) string { return versionPath(ark, version) + "/zip" }

// ObjectPlace is where an object is stored.
type ObjectPlace struct {
	// Which bucket it is: storage, or copy, the second one.
	In string `json:"in" enum:"storage,copy" example:"storage"`
	// The name of the bucket.
	Bucket string `json:"bucket" example:"archivist-storage"`
	// Where the keys of the object begin: its folder.
	Key string `json:"key" example:"531/80c/ccf/ark%3a%2f99999%2ffk4tq65d6k/"`
	// Its versions there, the oldest first.
	Versions []VersionPlace `json:"versions"`
}

// VersionPlace is where a version is stored: what it has added.
type VersionPlace struct {
	// The number of the version.
	Version int `json:"version" example:"1"`
	// Where the keys of the files that it added begin.
	Key string `json:"key" example:"531/80c/ccf/ark%3a%2f99999%2ffk4tq65d6k/v1/"`
}

// VersionMade says what was made of a version that can be made again.
type VersionMade struct {
	// The number of the version.
	Version int `json:"version" example:"1"`
	// Whether a zip file of it can be made here: it has at most 300 files and 128 MiB.
	Zippable bool `json:"zippable" example:"true"`
	// Whether there is a zip file of it.
	Zip bool `json:"zip" example:"true"`
	// Whether the packaging manifest of the object is there, of its newest version or one before.
	Manifest bool `json:"manifest" example:"true"`
}

// Places lists where an object is stored: the storage, and the second bucket if it was copied, each
// with the versions of all pages.
func (c *Client) Places(ctx context.Context, ark string) (all []ObjectPlace, err error) {
	err = eachPage(ctx, c, ObjectPath(ark)+"/places", nil, func(page []ObjectPlace) (more bool) {
		for _, one := range page {
			i := slices.IndexFunc(all, func(p ObjectPlace) bool { return p.In == one.In })
			if i < 0 {
				all = append(all, one)
				continue
			}
			all[i].Versions = append(all[i].Versions, one.Versions...)
		}
		return true
	})
	return all, err
}

// PlacePage reads a page of where the versions of an object are stored, oldest first.
func (c *Client) PlacePage(ctx context.Context, ark, cursor string) (List[ObjectPlace], error) {
	return pageOf[ObjectPlace](ctx, c, ObjectPath(ark)+"/places", cursor)
}

// Made says what was made of a version.
func (c *Client) Made(ctx context.Context, ark string, version int) (VersionMade, error) {
	return get[VersionMade](ctx, c, versionPath(ark, version)+"/made")
}

// RepairRequest asks for the repair of a stored file from its copy in the second bucket, or of the copy from the
// stored file.
type RepairRequest struct {
	// Where the file is that is to be repaired: in the storage bucket, or in the second bucket.
	In string `json:"in,omitempty" enum:"storage,copy" default:"storage"`
	// The key of the file, as a fixity check names it, or its path below the object's.
	File string `json:"file" minLength:"1" maxLength:"1024" example:"v1/content/01M7/producer/map.tif"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The fixity check found it damaged."`
}

// RepairConfirmation confirms a repair that is planned.
type RepairConfirmation struct {
	// The token of the plan.
	Token string `json:"token" minLength:"1" maxLength:"60"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The plan is right."`
}

// Repair is a repair of a stored file, or of its copy. It is planned first, and done when a person has confirmed the
// plan.
type Repair struct {
	// The id of the repair.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ9"`
	// Where the file is that is repaired: in the storage bucket, or in the second bucket.
	In string `json:"in" enum:"storage,copy"`
	// The key of the file, in both buckets.
	Key string `json:"key" example:"0a1/b2c/3d4/ark%3a%2f99999%2ffk4tq65d6k/v1/content/01M7/producer/map.tif"`
	// Planning: the file and its copy are read. Planned: it waits for a person. Refused: see problem. Confirmed: the
	// file is being restored. Done: the restored file was read, and is right. Failed: it is wrong.
	State string `json:"state" enum:"planning,planned,refused,confirmed,done,failed"`
	// The sha512 that the file must have.
	Expected string `json:"expected,omitempty"`
	// The sha512 of the file that is repaired, or missing.
	Found string `json:"found,omitempty"`
	// The sha512 of the file from which it is repaired.
	Source string `json:"source,omitempty"`
	// Why it is refused, or has failed.
	Problem string `json:"problem,omitempty" example:"the stored file is right: there is nothing to repair"`
	// With it a person confirms this plan, and no other.
	Token string `json:"token,omitempty"`
	// Who asked for the repair.
	ProposedBy string `json:"proposedBy" example:"ada"`
	// Why.
	Reason string `json:"reason" example:"The fixity check found it damaged."`
	// When.
	Proposed string `json:"proposed" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Who confirmed it.
	ConfirmedBy string `json:"confirmedBy,omitempty" example:"bo"`
	// When it was confirmed.
	Confirmed string `json:"confirmed,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Where the damaged file is kept, in the work bucket.
	Quarantine string `json:"quarantine,omitempty" example:"quarantine/01M7ZBMEYHBB62YP6RY21T1GQ9/0a1/b2c/3d4/map.tif"`
	// When it was done, or has failed.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// Repairs lists the repairs of an object, the oldest first.
func (c *Client) Repairs(ctx context.Context, ark string) ([]Repair, error) {
	return list[Repair](ctx, c, ObjectPath(ark)+"/repairs", 0)
}

// ProposeRepair asks for a plan of a repair.
func (c *Client) ProposeRepair(ctx context.Context, ark string, in RepairRequest) (Repair, error) {
	return post[Repair](ctx, c, ObjectPath(ark)+"/repairs", in)
}

// ConfirmRepair lets a planned repair be done.
func (c *Client) ConfirmRepair(ctx context.Context, ark, id string,
	in RepairConfirmation) (Repair, error) {
	return post[Repair](ctx, c, ObjectPath(ark)+"/repairs/"+id+"/confirm", in)
}
