// Package provenance describes where a version comes from and what happened to it, in the
// terms of PREMIS 3 and of OCFL.
//
// [Archive.Document] is stored with each version: what is preserved, and what happened
// until the version was ready to be stored. Package histories continues it from the
// event log, since a document that is part of a version cannot have later events. [OCFL]
// makes the part for a version's inventory: time, message and submitter.
//
//	archive := provenance.Archive{NAAN: "99999", Version: "v1.2.3"}
//	err := archive.Document(w, job, 2, files)
//
// In PREMIS, the object is an intellectual entity, and each of its versions a
// representation of it, named "{ark}/v{n}". Events have types of the vocabulary of the
// Library of Congress. Their texts are stored permanently: a change of a text affects new
// versions only, never stored ones.
package provenance

import (
	"crypto/sha1"
	"fmt"
	"net/url"
	"slices"
	"time"

	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/objects/ocfl"
)

// Archive is the organization that preserves, identified by its name assigning authority
// number (NAAN), with a version of this software.
type Archive struct {
	NAAN    string
	Version string
}

// Identifier is an identifier that this archive gave.
func Identifier(value string) premis.Identifier {
	return premis.Identifier{Type: "archivist", Value: value}
}

// Representation names a version of an object.
func Representation(ark string, version int) premis.Identifier {
	return Identifier(fmt.Sprintf("%s/v%d", ark, version))
}

// Agents are the organization that runs the archive, and its software.
func (a Archive) Agents() []premis.Agent {
	return []premis.Agent{
		{
			ID:   premis.Identifier{Type: "NAAN", Value: a.NAAN},
			Type: premis.Organization,
			Name: "Archive of the name assigning authority " + a.NAAN,
		},
		{ID: Identifier("archivist"), Name: "Archivist", Type: premis.Software, Version: a.Version},
	}
}

// Implementers are the agents of an event that the archive carried out by itself.
func (a Archive) Implementers() (links []premis.Link) {
	roles := []string{premis.Implementer, premis.ExecutingProgram}
	for i, agent := range a.Agents() {
		links = append(links, premis.Link{Agent: agent.ID, Role: roles[i]})
	}
	return links
}

// Submitter is the agent that asked for the ingest. Whether it is a person is not known. A mail
// address has an identifier of its own type.
func Submitter(name string) premis.Agent {
	a := premis.Agent{
		ID:   Identifier("submitter:" + name),
		Name: name,
		Note: "The name under which the content was submitted: that of a person, an organization or a program.",
	}
	if notify.CheckAddress(name) == nil {
		a.ID = premis.Identifier{Type: "mail address", Value: name}
	}
	return a
}

// OCFL is the description of a job's version in the inventory: when it was made, the
// depositor's note, and the submitter (OCFL 1.1, section 3.5.3).
func OCFL(j *ingest.Job) ocfl.Version {
	v := ocfl.Version{
		Created: time.UnixMilli(j.Stamp).UTC(),
		Message: j.Note,
		User:    &ocfl.User{Name: j.Submitter, Address: address(j.Submitter)},
	}

	if v.Message == "" {
		v.Message = fmt.Sprintf("ingest of job %s, batch %s", j.ID, j.Batch)
	}

	if v.User.Name == "" {
		v.User.Name = "unknown submitter"
	}
	return v
}

// address is a URI for a submitter: that of a mail address, else a name-based UUID
// (RFC 9562, section 5.5), which is the same each time.
func address(submitter string) string {
	if notify.CheckAddress(submitter) == nil {
		return (&url.URL{Scheme: "mailto", Opaque: url.PathEscape(submitter)}).String()
	}
	sum := sha1.Sum(append(slices.Clone(submitters), submitter...))

	// Version 5, and the variant of RFC 9562.
	sum[6], sum[8] = sum[6]&0x0f|0x50, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10],
		sum[10:16])
}

// submitters is the namespace of the UUIDs that stand for submitters.
var submitters = []byte{0x0d, 0x5a, 0xe3, 0x5e, 0x2b, 0x7c, 0x4f, 0x0e, 0x9b, 0x62, 0x51, 0x47,
	0xc8, 0x1d, 0xa9, 0x33}
