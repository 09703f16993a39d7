package envelope

import (
	"context"
	"encoding/json"
	"fmt"
)

// File is a file of a stored version.
type File struct {
	Path      string            `json:"path"`
	Size      int64             `json:"size"`
	MediaType string            `json:"mediaType,omitempty"`
	Digests   map[string]string `json:"digests,omitempty"`
}

// Lister calls each with the files of the version whose version.create event e is, in a fixed order.
// It reads them from storage. It ends with the first error.
type Lister func(ctx context.Context, e Event, each func(File) error) error

// Types of events that are presented only, and never stored.
const (
	CollectionAdd = "collection.add" // an object was added
	FileCreate    = "file.create"
)

const versionCreate = "version.create"

// HasFiles reports whether readers see an event of each of its files besides the event.
func (e Event) HasFiles() bool { return e.Type == versionCreate }

// Present is what readers see of an event without opening its files: the event itself, and for the
// creation of an object that it was added to its collection. What is presented has no version of its
// subject: nothing is written for it. Its id begins with that of the event.
func Present(e Event) []Event {
	all := []Event{e}
	if e.Action != Create {
		return all
	}
	for _, o := range e.Objects {
		if o.Type == collection && o.Role == "collection" {
			all = append(all, e.present("add", CollectionAdd, Add, Ref{Type: collection, ID: o.ID}, e.Parents[:0:0],
				Ref{Role: "object", Type: e.Subject.Type, ID: e.Subject.ID}))
		}
	}
	return all
}

// PresentFiles calls each with an event of each file of a version. An event that has no files has
// none.
func PresentFiles(ctx context.Context, e Event, files Lister, each func(Event) error) error {
	if !e.HasFiles() {
		return nil
	}
	n := 0
	return files(ctx, e, func(f File) error {
		n++
		after, err := json.Marshal(f)
		if err != nil {
			return err
		}
		version := Ref{Type: e.Subject.Type, ID: e.Subject.ID}
		subject := Ref{Type: "File", ID: e.Subject.ID + "/" + f.Path}
		one := e.present(fmt.Sprint(n), FileCreate, Create, subject, append(e.Parents[:len(e.Parents):len(e.Parents)],
			version), e.Objects...)
		one.After = after
		return each(one)
	})
}

// present is an event that follows from e.
func (e Event) present(suffix, eventType, action string, subject Ref, parents []Ref, objects ...Ref) Event {
	p := e
	p.ID = e.ID + "#" + suffix
	p.Type, p.Action, p.Subject, p.Version, p.Parents, p.Objects = eventType, action, subject, 0, parents, objects
	p.Properties, p.Detail, p.Before, p.After, p.Schema = nil, nil, nil, nil, 1
	return p
}
