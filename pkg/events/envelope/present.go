package envelope

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
)

// File is a file of a stored version. Path is that in the version, Size in bytes, Digests by the
// names of algorithms.
type File struct {
	Path      string            `json:"path"`
	Size      int64             `json:"size"`
	MediaType string            `json:"mediaType,omitempty"`
	Digests   map[string]string `json:"digests,omitempty"`
}

// Lister calls each with the files of the version whose version.create event e is, in a fixed
// order, from a place in their list on: 0, or one that it has given as next, which is behind the
// file. It reads the list from storage. It ends with the first error of each, which it returns.
type Lister func(ctx context.Context, e Event, from int64,
	each func(f File, next int64) error) error

// Types of events that are presented only, and never stored.
const (
	CollectionAdd = "collection.add" // an object was added
	FileCreate    = "file.create"
)

// versionCreate is the type of the events that have the list of a version's files.
const versionCreate = "version.create"

// HasFiles reports whether readers see an event of each of its files besides the event.
func (e Event) HasFiles() bool { return e.Type == versionCreate }

// Present is what readers see of an event without opening its files: the event itself first, and
// for the creation of an object that it was added to its collection. What is presented has no
// version of its subject: nothing is written for it. Its id begins with that of the event.
func Present(e Event) []Event {
	all := []Event{e}
	if e.Action != Create {
		return all
	}

	for _, o := range e.Objects {
		if o.Type == collection && o.Role == "collection" {
			all = append(all, e.present("add", CollectionAdd, Add, Ref{Type: collection, ID: o.ID},
				e.Parents[:0:0],
				Ref{Role: "object", Type: e.Subject.Type, ID: e.Subject.ID}))
		}
	}
	return all
}

// PresentFile is what readers see of file number n of a version, from 1, whose version.create event
// e is. One stored event stands for all files of a version, which can be hundreds of thousands.
func PresentFile(e Event, n int, f File) (Event, error) {
	after, err := json.Marshal(f)
	version := Ref{Type: e.Subject.Type, ID: e.Subject.ID}
	subject := Ref{Type: "File", ID: e.Subject.ID + "/" + f.Path}
	p := e.present(strconv.Itoa(n), FileCreate, Create, subject,
		append(slices.Clip(e.Parents), version), e.Objects...)
	p.After = after
	return p, err
}

// present is an event that follows from e. It has e's context, cause and place, and no payload but
// what its caller sets.
func (e Event) present(suffix, eventType, action string, subject Ref, parents []Ref,
	objects ...Ref) Event {
	p := e
	p.ID = e.ID + "#" + suffix
	p.Type, p.Action, p.Subject, p.Version, p.Parents, p.Objects = eventType, action, subject, 0,
		parents, objects
	p.Properties, p.Detail, p.Before, p.After, p.Schema = nil, nil, nil, nil, 1
	return p
}
