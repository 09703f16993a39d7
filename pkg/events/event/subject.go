package event

import (
	"fmt"
	"strings"

	"archivist/pkg/kernel/table"
)

// Type is the type of a subject. It can only be one of those below, so that code with a type
// without a partition does not compile. Its name is stored, and begins the partition key in
// capitals.
type Type struct{ name string }

// The types of subjects.
var (
	Batch      = Type{"Batch"}
	Job        = Type{"Job"}
	Object     = Type{"Object"}
	Collection = Type{"Collection"}
	// Subjects of the type Queue are the queue itself, the storage and the log of events.
	Queue     = Type{"Queue"}
	Operation = Type{"Operation"}
	// The id of a Version is the ark of its object, a slash, and e.g. "v3". An event of a File is
	// stored when the file is given out; others are presented by readers.
	Version  = Type{"Version"}
	File     = Type{"File"}
	User     = Type{"User"}
	Consumer = Type{"Consumer"}
	// The id of an Item, on which components work, has its kind, e.g. "object:ark:/…".
	Item      = Type{"ComponentItem"}
	Component = Type{"Component"}

	ResearchProject = Type{"ResearchProject"}
	// Episodes and clips are of a research project; their ids are the project, a slash, and the
	// key.
	Episode       = Type{"Episode"}
	Clip          = Type{"Clip"}
	ResearchLease = Type{"ResearchLease"}

	// The id of a Revision is its archive, a slash, and the number; that of a Task, which is an
	// instance of one, the id of its revision, a slash, and its name.
	Archive  = Type{"Archive"}
	Revision = Type{"Revision"}
	Task     = Type{"Task"}

	Upload = Type{"Upload"}
	Token  = Type{"Token"}
)

// Types lists every type.
var Types = []Type{Batch, Job, Object, Collection, Queue, Operation, Version, File, User, Consumer,
	Item,
	Component, ResearchProject, Episode, Clip, ResearchLease, Archive, Revision, Task,
	Upload, Token}

// String returns the type's name, e.g. "Job".
func (t Type) String() string { return t.name }

// Subject is what an event is about, e.g. {Job, "01J…-00001"}.
type Subject struct {
	Type Type
	ID   string
}

// Key is the key of the subject's own row: "JOB#01J…-00001", "JOB". Its events are in the
// same partition. Only this function makes the partition key, so that the two cannot differ.
func (s Subject) Key() table.Key {
	name := strings.ToUpper(s.Type.name)
	return table.Key{PK: name + "#" + s.ID, SK: name}
}

// check refuses a subject that is not complete.
func (s Subject) check() error {
	if s.Type.name == "" || s.ID == "" {
		return fmt.Errorf("event: the subject %q %q has no type or no id", s.Type, s.ID)
	}
	return nil
}

// SubjectAt returns the subject whose row and events are in a partition of the table. A partition
// of other rows, or of a newer release, is an error.
func SubjectAt(pk string) (Subject, error) {
	for _, t := range Types {
		if prefix := (Subject{Type: t}).Key().PK; len(pk) > len(prefix) &&
			pk[:len(prefix)] == prefix {
			return Subject{Type: t, ID: pk[len(prefix):]}, nil
		}
	}
	return Subject{}, fmt.Errorf(
		"event: %q is the partition of no subject that this release knows", pk)
}
