package provenance

import (
	"fmt"
	"io"
	"iter"
	"mime"
	"strings"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/ingest"
	"archivist/pkg/premis"
)

// Document writes what is preserved with a job's version and what happened to it until
// now, as PREMIS: one event each for the whole version. It holds one file at a time, and
// asks several times for the version's files.
func (a Archive) Document(w io.Writer, j *ingest.Job, version int, list iter.Seq2[aip.Entry, error]) error {
	is, d := representation(j.Primary, version), premis.New(w)
	file := func(e aip.Entry) premis.Identifier { return ours(is.Value + "/" + e.Path) }
	entity := premis.Object{Category: premis.Entity, IDs: []premis.Identifier{{Type: "ARK", Value: j.Primary}}}
	for _, id := range j.LocalIDs {
		entity.IDs = append(entity.IDs, premis.Identifier{Type: "local", Value: id})
	}
	files := func(yield func(premis.Identifier, error) bool) {
		for e, err := range list {
			if !yield(file(e), err) || err != nil {
				return
			}
		}
	}
	whole := premis.Object{Category: premis.Representation, IDs: []premis.Identifier{is}, Relations: []premis.Relation{
		{Kind: premis.Represents, To: premis.To(entity.IDs[0])}, {Kind: premis.Includes, To: files}}}
	for _, o := range []premis.Object{entity, whole} {
		if err := d.Object(o); err != nil {
			return err
		}
	}
	for e, err := range list {
		if err == nil {
			err = d.Object(fileObject(e, file(e)))
		}
		if err != nil {
			return err
		}
	}
	a.events(d, j, is)
	for _, agent := range a.agents() {
		d.Agent(agent)
	}
	if j.Submitter != "" {
		d.Agent(submitter(j.Submitter))
	}
	return d.Close()
}

// fileObject describes a producer's file.
func fileObject(e aip.Entry, id premis.Identifier) premis.Object {
	o := premis.Object{Category: premis.File, IDs: []premis.Identifier{id}, Size: e.Size,
		OriginalName: strings.TrimPrefix(e.Path, "producer/"),
		Fixity:       []premis.Fixity{{Algorithm: "sha512", Digest: e.Digests["sha512"], Originator: "archivist"}}}
	if e.Given == "sha512" {
		o.Fixity[0].Originator = "depositor"
	} else if e.Given != "" {
		given := premis.Fixity{Algorithm: e.Given, Digest: e.Digests[e.Given], Originator: "depositor"}
		o.Fixity = append(o.Fixity, given)
	}
	if kind, _, err := mime.ParseMediaType(e.MediaType); err == nil && premis.Carries(kind) == "" {
		o.Format, o.FormatNote = kind, "media type as stated by the depositor or the source"
	}
	return o
}

// events writes what happened to a version until it was ready to be stored.
func (a Archive) events(d *premis.Writer, j *ingest.Job, is premis.Identifier) {
	n, doers := 0, a.doers()
	add := func(e premis.Event, at int64, detail string, args ...any) {
		n++
		e.ID, e.Time = ours(fmt.Sprintf("%s#premis-%d", j.ID, n)), time.UnixMilli(at)
		e.Detail, e.Objects = fmt.Sprintf(detail, args...), []premis.Identifier{is}
		if e.Outcome == "" {
			e.Outcome = premis.Success
		}
		e.Agents = append(doers[:len(doers):len(doers)], e.Agents...)
		d.Event(e)
	}
	if j.Payload.Type == ingest.TypeObjectManifest {
		add(premis.Event{Type: "validation"}, j.Fetched,
			"The submission manifest was validated against the rules of its profile.")
	}
	transfer := premis.Event{Type: "transfer"}
	if j.Submitter != "" {
		transfer.Agents = []premis.Link{{Agent: submitter(j.Submitter).ID, Role: premis.Authorizer}}
	}
	if j.Warned > 0 {
		transfer.Outcome = premis.Warning
		transfer.Note = fmt.Sprintf("%d files: the digest matched, the size differed from the one that the depositor stated; see %s.",
			j.Warned, aip.ListName)
	}
	add(transfer, j.Fetched, "%d files, %d bytes, were downloaded from the locations that the depositor gave.", j.Files, j.Bytes)
	add(premis.Event{Type: "message digest calculation"}, j.Fetched,
		"SHA-256, SHA-512 and CRC-64/NVME were calculated for each file during the download, "+
			"and the algorithm of each digest that the depositor gave.")
	if j.Checked > 0 {
		add(premis.Event{Type: "fixity check"}, j.Fetched, "%d of %d files had a digest from the depositor; all matched.",
			j.Checked, j.Files)
	}
	add(premis.Event{Type: "information package creation", Note: "This document is part of the version that it describes. " +
		"Later events (fixity check of the stored copy, ingestion, accession) are in the archive's event log: " +
		"GET /v1/objects/{naan}/{name}/events with Accept: application/xml."}, j.Stamp,
		"Identifiers, descriptions and lists of files were written for job %s of batch %s.", j.ID, j.Batch)
}
