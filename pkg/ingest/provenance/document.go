package provenance

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"mime"
	"slices"
	"strings"
	"time"

	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/source"
	"archivist/pkg/objects/aip"
)

// Document writes what is preserved with a job's version, and what happened to it until
// now, as PREMIS. Events are about the version as a whole, one for each step. files is
// read several times, one file at a time. PREMIS 3.0 has the objects before the events, and these
// before the agents.
func (a Archive) Document(w io.Writer, j *ingest.Job, version int,
	files iter.Seq2[aip.Entry, error]) error {
	d := premis.New(w)
	entity, id := Object(j.Primary, j.LocalIDs), Representation(j.Primary, version)
	whole := premis.Object{
		Category: premis.Representation,
		IDs:      []premis.Identifier{id},
		Relations: []premis.Relation{
			{Kind: premis.Represents, To: premis.To(entity.IDs[0])},
			{Kind: premis.Includes, To: fileIDs(id, files)},
		},
	}

	for _, o := range []premis.Object{entity, whole} {
		if err := d.Object(o); err != nil {
			return err
		}
	}

	for e, err := range files {
		if err == nil {
			err = d.Object(file(fileID(id, e), e))
		}
		if err != nil {
			return err
		}
	}

	for _, e := range a.events(j, id) {
		d.Event(e)
	}

	for _, agent := range a.Agents() {
		d.Agent(agent)
	}

	if j.Submitter != "" {
		d.Agent(Submitter(j.Submitter))
	}
	return d.Close()
}

// Object describes the intellectual entity.
func Object(ark string, localIDs []string) premis.Object {
	o := premis.Object{Category: premis.Entity, IDs: []premis.Identifier{{Type: "ARK", Value: ark}}}
	for _, id := range localIDs {
		o.IDs = append(o.IDs, premis.Identifier{Type: "local", Value: id})
	}
	return o
}

// fileID names a file of a version.
func fileID(version premis.Identifier, e aip.Entry) premis.Identifier {
	return Identifier(version.Value + "/" + e.Path)
}

// fileIDs are the names of the files of a version, one at a time.
func fileIDs(version premis.Identifier,
	files iter.Seq2[aip.Entry, error]) iter.Seq2[premis.Identifier, error] {
	return func(yield func(premis.Identifier, error) bool) {
		for e, err := range files {
			if !yield(fileID(version, e), err) || err != nil {
				return
			}
		}
	}
}

// file describes a producer's file. Its SHA-512 is always there, and the digest that the
// depositor supplied. The other digests are in the list of files.
func file(id premis.Identifier, e aip.Entry) premis.Object {
	o := premis.Object{
		Category:     premis.File,
		IDs:          []premis.Identifier{id},
		Size:         e.Size,
		OriginalName: strings.TrimPrefix(e.Path, "producer/"),
		Fixity: []premis.Fixity{{
			Algorithm:  "sha512",
			Digest:     e.Digests["sha512"],
			Originator: "archivist",
		}},
	}

	// The originator is who made the digest that was compared (PREMIS 3.0, 1.5.2.3).
	if e.Given == "sha512" {
		o.Fixity[0].Originator = "depositor"
	} else if e.Given != "" {
		given := premis.Fixity{
			Algorithm:  e.Given,
			Digest:     e.Digests[e.Given],
			Originator: "depositor",
		}
		o.Fixity = append(o.Fixity, given)
	}

	if kind, _, err := mime.ParseMediaType(e.MediaType); err == nil && premis.Carries(kind) == "" {
		o.Format, o.FormatNote = kind, "media type stated by the depositor or the source"
	}
	return o
}

// later states where the events are that a stored document cannot have.
const later = "This document is part of the version that it describes. Later events (fixity check of the stored " +
	"copy, ingestion, accession) are in the archive's event log: " +
	"GET /v1/objects/{naan}/{name}/events with Accept: application/xml."

// events are what happened to a version until it was ready to be stored.
func (a Archive) events(j *ingest.Job, version premis.Identifier) (events []premis.Event) {
	add := func(e premis.Event, at int64, detail string, args ...any) {
		// Numbered within the job, so the ids are the same each time that the document is made.
		e.ID, e.Time = Identifier(fmt.Sprintf("%s#premis-%d", j.ID, len(events)+1)),
			time.UnixMilli(at)
		e.Detail, e.Objects = fmt.Sprintf(detail, args...), []premis.Identifier{version}
		if e.Outcome == "" {
			e.Outcome = premis.Success
		}
		e.Agents = append(a.Implementers(), e.Agents...)
		events = append(events, e)
	}

	created := func() {
		updated := ""
		if m := j.Merged; m != nil {
			updated = fmt.Sprintf(" The submission updates the version before: %d of its files are kept, and %d were "+
				"deleted, as the submission says.", m.Kept, m.Deleted)
		}
		add(premis.Event{Type: "information package creation", Note: later}, j.Stamp,
			"The system files (identifiers, description, manifests and this document) were created by job %s of "+
				"batch %s.%s", j.ID, j.Batch, updated)
	}

	if j.Policy != "" {
		add(premis.Event{Type: "policy assignment", Agents: authorizer(j)}, j.Stamp,
			"%s. The files are those of the version before. Reason: %s", decided(j), j.Note)
		created()
		return events
	}

	if j.Corrects() {
		add(premis.Event{Type: "metadata modification", Agents: authorizer(j)}, j.Stamp,
			"The description or the identifiers of the object were corrected; its files are those of the version "+
				"before. Reason: %s", j.Note)
		created()
		return events
	}

	if j.Payload.Type == ingest.TypeObjectManifest {
		add(premis.Event{Type: "validation"}, j.Fetched,
			"The submission manifest was validated against the rules of its profile.")
	}

	received(j, add)
	add(premis.Event{Type: "message digest calculation"}, j.Fetched,
		"Digests computed over the %d bytes received: SHA-256, SHA-512 and CRC-64/NVME of each file, "+
			"and its digest in the algorithm used by the depositor, if any.", j.Bytes)

	for _, scanner := range slices.Sorted(maps.Keys(j.Scanned)) {
		add(premis.Event{Type: "virus check"}, j.Fetched, "No virus was found in %d of %d files by %s.",
			j.Scanned[scanner], j.Files, scanner)
	}

	// Only what the depositor said can be checked: without that there is no such event.
	if j.Checked > 0 {
		add(premis.Event{Type: "fixity check"}, j.Fetched,
			"The depositor supplied digests for %d of %d files; all of these were verified.",
			j.Checked, j.Files)
	}

	if j.Embargo != "" {
		add(premis.Event{Type: "policy assignment", Agents: authorizer(j)}, j.Stamp,
			"Embargo on the files of the object, as mrt-embargo.txt says: %s", j.Embargo)
	}

	created()
	return events
}

// received adds the events of the files' way here.
func received(j *ingest.Job, add func(e premis.Event, at int64, detail string, args ...any)) {
	c := j.Unpacked
	if c == nil {
		add(transferred(j), j.Fetched, "%s", brought(j))
		return
	}

	from := "downloaded from the URL in the submission"
	if source.IsUpload(j.URL) {
		from = "uploaded by " + j.UploadedBy()
	}
	add(transferred(j), j.Fetched, "The container %s was %s (%d bytes).", c.Name, from, c.Bytes)
	if c.Verified != "" {
		add(premis.Event{Type: "fixity check"}, j.Fetched, "The depositor's %s of the container was verified.",
			c.Verified)
	}
	add(premis.Event{Type: "unpacking"}, j.Fetched, "%s", unpacked(j, c))
	if c.Fetched > 0 {
		add(transferred(j), j.Fetched, "Files of the bag that were not in the container, downloaded from the URLs in "+
			"its fetch.txt: %d.", c.Fetched)
	}
	if b := c.Bag; b != nil {
		conforms := ""
		if len(b.Profiles) > 0 {
			conforms = " It conforms to the BagIt profile " + strings.Join(b.Profiles, " and ") + "."
		}
		add(premis.Event{Type: "validation"}, j.Fetched, "The files are a bag of BagIt %s. It is complete and valid: "+
			"the %d files of its payload have the digests in its manifests (%s).%s", b.Version, b.Files,
			strings.Join(b.Algorithms, ", "), conforms)
	}
}

// brought says how the files came that were not in a container.
func brought(j *ingest.Job) string {
	switch {
	case j.Payload.Type == ingest.TypeFile && source.IsUpload(j.URL):
		return fmt.Sprintf("The file %s was uploaded by %s (%d bytes).", j.Filename, j.UploadedBy(), j.Bytes)
	case j.Sent == 0:
		return fmt.Sprintf("Files downloaded from the URLs in the submission: %d (%d bytes).", j.Files, j.Bytes)
	case j.Sent == j.Files:
		return fmt.Sprintf("Files uploaded by %s: %d (%d bytes).", j.UploadedBy(), j.Files, j.Bytes)
	}
	return fmt.Sprintf("Files uploaded by %s: %d. Files downloaded from the URLs in the submission: %d. They have "+
		"%d bytes in all.", j.UploadedBy(), j.Sent, j.Files-j.Sent, j.Bytes)
}

// unpacked says what a container was, and what became of it.
func unpacked(j *ingest.Job, c *ingest.Container) string {
	files, is := j.Files-c.Fetched, "not kept"
	if c.Kept {
		files, is = files-1, "kept as a file, too"
	}
	return fmt.Sprintf("Files unpacked from the container: %d. It was of the kind %s, had %d bytes and the SHA-256 "+
		"%s, and is %s. Its own checksums were verified.", files, c.Kind, c.Bytes, c.SHA256, is)
}

// decided is what a job decides about its object beside its description.
func decided(j *ingest.Job) string {
	switch j.Policy {
	case ingest.PlaceHold:
		return "Legal hold on the object: placed"
	case ingest.LiftHold:
		return "Legal hold on the object: lifted"
	case ingest.Retain:
		return "Retention of the content of the object: until " + j.LastDay
	case ingest.Embargo:
		return "Embargo on the files of the object: until " + j.LastDay
	case ingest.LiftEmbargo:
		return "Embargo on the files of the object: lifted"
	}
	return fmt.Sprintf("Access to the files of the object: %s", j.Policy)
}

// authorizer is the submitter as an agent of an event; none if the name is not known.
func authorizer(j *ingest.Job) []premis.Link {
	if j.Submitter == "" {
		return nil
	}
	return []premis.Link{{Agent: Submitter(j.Submitter).ID, Role: premis.Authorizer}}
}

// transferred is the event of the download, which the submitter authorized.
func transferred(j *ingest.Job) premis.Event {
	e := premis.Event{Type: "transfer", Agents: authorizer(j)}

	if j.Warned > 0 {
		e.Outcome = premis.Warning
		e.Note = fmt.Sprintf("A warning was recorded for %d of %d files, for example that the digest matched "+
			"and the size differed from the size stated by the depositor; see %s.", j.Warned,
			j.Files, aip.ListName)
	}
	return e
}
