package stage

import (
	"context"
	"fmt"
	"io"
	"iter"
	"mime"
	"strings"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/ingest"
	"archivist/pkg/notify"
	"archivist/pkg/premis"
)

// ours is an identifier that this archive gave.
func ours(value string) premis.Identifier { return premis.Identifier{Type: "archivist", Value: value} }

// representation is a version of an object: each is one of its own.
func representation(ark string, version int) premis.Identifier {
	return ours(fmt.Sprintf("%s/v%d", ark, version))
}

// agents of this archive: the organization that runs it, and its software.
func (s *Stages) agents() []premis.Agent {
	return []premis.Agent{
		{ID: premis.Identifier{Type: "NAAN", Value: s.NAAN}, Type: premis.Organization,
			Name: "Archive of the name assigning authority " + s.NAAN},
		{ID: ours("archivist"), Name: "Archivist", Type: premis.Software, Version: s.Version},
	}
}

// doers are the agents of an event that the archive carried out by itself.
func (s *Stages) doers() (links []premis.Link) {
	for i, a := range s.agents() {
		links = append(links, premis.Link{Agent: a.ID, Role: []string{premis.Implementer, premis.ExecutingProgram}[i]})
	}
	return links
}

// submitter is the agent that asked for the ingest. A name does not say whose it is.
func submitter(name string) premis.Agent {
	a := premis.Agent{ID: ours("submitter:" + name), Name: name, Note: "The name under which the content was submitted; " +
		"it may be that of a person, an organization or a program."}
	if notify.CheckAddress(name) == nil {
		a.ID = premis.Identifier{Type: "mail address", Value: name}
	}
	return a
}

// preservation writes what is preserved with the version and what happened to it until
// now, as PREMIS: one event each for the whole version. It holds one file at a time.
func (p *packager) preservation(ctx context.Context, w io.Writer) error {
	j := p.job
	is, d := representation(j.Primary, p.version), premis.New(w)
	file := func(e aip.Entry) premis.Identifier { return ours(is.Value + "/" + e.Path) }
	entity := premis.Object{Category: premis.Entity, IDs: []premis.Identifier{{Type: "ARK", Value: j.Primary}}}
	for _, id := range j.LocalIDs {
		entity.IDs = append(entity.IDs, premis.Identifier{Type: "local", Value: id})
	}
	files := func(yield func(premis.Identifier, error) bool) {
		for e, err := range p.entries(ctx) {
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
	for e, err := range p.entries(ctx) {
		if err == nil {
			err = d.Object(fileObject(e, file(e)))
		}
		if err != nil {
			return err
		}
	}
	p.s.events(d, j, is)
	for _, a := range p.s.agents() {
		d.Agent(a)
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
func (s *Stages) events(d *premis.Writer, j *ingest.Job, is premis.Identifier) {
	n, doers := 0, s.doers()
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

// entries gives every file of the version from the list that is stored with it.
func (p *packager) entries(ctx context.Context) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		body, err := p.listed(ctx)
		if err != nil {
			yield(aip.Entry{}, err)
			return
		}
		defer body.Close()
		for e, err := range aip.Entries(body) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
