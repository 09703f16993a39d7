package histories

import (
	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest/provenance"
)

// Writer writes the histories of an archive, which is an agent of what happened in it. It has no
// state, and can be used by several goroutines.
type Writer struct{ provenance.Archive }

// actor is the agent at whose request something happened. Whether it is a person is not known, so
// the agent has no type. Its identifier is kept apart from those of the archive's own software.
func actor(name string) premis.Agent {
	a := provenance.Submitter(name)
	a.Note = "The name under which the request was made: that of a person, an organization or a program."
	if a.ID.Type == "archivist" {
		a.ID = provenance.Identifier("actor:" + name)
	}
	return a
}
