package inventory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// VersionDetail is the detail of a version's event. Its files are not listed: the version's
// inventory in storage, which has the digest, lists them.
type VersionDetail struct {
	Object  string `json:"object"`
	Version int    `json:"version"`
	Job     string `json:"job,omitempty"` // that stored it
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	Created int64  `json:"created"` // milliseconds since 1970
	Digest  string `json:"inventoryDigest"`
}

// VersionID is the id of a version as the subject of events, e.g. "ark:/99999/fk4tq65d6k/v3".
func VersionID(ark string, n int) string { return fmt.Sprintf("%s/v%d", ark, n) }

// ParseVersionID reads the id of a version. Another text is an Invalid.
func ParseVersionID(id string) (ark string, n int, err error) {
	i := strings.LastIndex(id, "/v")
	if i > 0 {
		n, err = strconv.Atoi(id[i+2:])
	}
	if i <= 0 || err != nil || n < 1 {
		return "", 0, fault.New(fault.Invalid, "%q is not the id of a version", id)
	}
	return id[:i], n, nil
}

// versionSubject is a version as the subject of events: it has a history of its own.
func versionSubject(ark string, n int) event.Subject {
	return event.Subject{Type: event.Version, ID: VersionID(ark, n)}
}

// properties are those that events of an object show as they were before and after.
type properties struct {
	Version  int      `json:"version"`
	Digest   string   `json:"inventoryDigest,omitempty"`
	Title    string   `json:"title,omitempty"`
	Who      string   `json:"who,omitempty"`
	When     string   `json:"when,omitempty"`
	LocalIDs []string `json:"localIds,omitempty"`

	Withdrawn   string `json:"withdrawn,omitempty"`   // why; "": the files are given out
	LegalHold   string `json:"legalHold,omitempty"`   // why; "": there is none
	RetainUntil string `json:"retainUntil,omitempty"` // the last day; "": there is no retention

	EmbargoUntil string `json:"embargoUntil,omitempty"` // the last day; "": there is no embargo
}

// properties of the object, nil if it has no row yet.
func (row *Object) properties() any {
	if row.HeadOf == 0 {
		return nil
	}
	p := properties{
		Version:  row.HeadOf,
		Digest:   row.Digest,
		Title:    row.Title,
		Who:      row.Who,
		When:     row.When,
		LocalIDs: fit(row.LocalIDs),
	}
	if row.Withdrawal != nil {
		p.Withdrawn = row.Withdrawal.Reason
	}
	if row.LegalHold != nil {
		p.LegalHold = row.LegalHold.Reason
	}
	if row.Retention != nil {
		p.RetainUntil = row.Retention.Until
	}
	if row.Embargo != nil {
		p.EmbargoUntil = row.Embargo.Until
	}
	return p
}

// parents are what the object is part of. The collection decides the partition of the log, and
// consumers filter by it.
func (row *Object) parents() []envelope.Ref {
	return []envelope.Ref{{Type: event.Collection.String(), ID: row.Collection}}
}

// mostIDs limits the local ids that an event lists, in bytes: it lists all that a submission can
// name, 20 of 500 bytes.
const mostIDs = 20 * 500

// identifiers are the ark and the first of the local ids. All of an object's local ids have rows
// of their own.
func (row *Object) identifiers() []string { return append([]string{row.ARK}, fit(row.LocalIDs)...) }

// fit are the first of some local ids, as many as an event lists.
func fit(ids []string) []string {
	bytes := 0
	for i, id := range ids {
		bytes += len(id)
		if bytes > mostIDs {
			return ids[:i]
		}
	}
	return ids
}

// acted are the other things that the record of an object is about: the collection that a new
// object was added to, its newest version if that is new, and the job that stored it.
func (r Record) acted(o *Object) (objects []envelope.Ref) {
	if o.Rev == 0 {
		objects = append(objects, envelope.Ref{
			Role: "collection",
			Type: event.Collection.String(),
			ID:   o.Collection,
		})
	}

	for _, v := range r.Versions {
		if v.Number == o.HeadOf {
			objects = append(objects, envelope.Ref{
				Role: "version",
				Type: event.Version.String(),
				ID:   VersionID(o.ARK, v.Number),
			})
		}
	}

	if r.Job != "" {
		objects = append(objects, envelope.Ref{Role: "job", Type: event.Job.String(), ID: r.Job})
	}
	return objects
}

// PrepareVersions returns a function that puts the rows of a record's versions into a
// transaction, with the event of each that is new. The transaction fails if there is such a row.
// All reads are made before the function is returned, so it can be called right before the commit.
func (s Store) PrepareVersions(ctx context.Context, r Record,
	now int64) (func(*table.Tx) error, error) {
	told, err := s.told(ctx, r)
	if err != nil {
		return nil, err
	}
	return func(tx *table.Tx) error {
		ark := r.Object.ARK
		for _, v := range r.Versions {
			v.Head, v.ARK = head(VersionKey(ark, v.Number)), ark
			tx.Insert(&v)
			if told[v.Number] {
				continue
			}
			err := event.Append(tx, versionSubject(ark, v.Number), 1,
				v.created(&r.Object, r.Actor, now))
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// told returns which versions of a record have an event already: their rows were lost, and are
// made again. The version that a job stored just now has none, which costs no read.
func (s Store) told(ctx context.Context, r Record) (map[int]bool, error) {
	told := map[int]bool{}
	for _, v := range r.Versions {
		if r.Job != "" && v.Number == r.Object.HeadOf {
			continue
		}
		rows, _, err := event.Page(ctx, s.Table, versionSubject(r.Object.ARK, v.Number), "")
		if err != nil {
			return nil, err
		}
		told[v.Number] = len(rows) > 0
	}
	return told, nil
}

// created is the event that a version was created.
func (row *Version) created(o *Object, actor string, now int64) event.New {
	e := event.New{
		Type:      "version.create",
		Time:      now,
		Actor:     actor,
		Component: "record",
		Detail: VersionDetail{o.ARK, row.Number, row.Job, row.Files, row.Bytes, row.Created,
			row.Digest},
		Parents:     append(o.parents(), envelope.Ref{Type: event.Object.String(), ID: o.ARK}),
		Identifiers: o.identifiers(),
		After: map[string]any{"files": row.Files, "bytes": row.Bytes,
			"inventoryDigest": row.Digest},
	}

	if row.Job != "" {
		e.Objects = []envelope.Ref{{Role: "job", Type: event.Job.String(), ID: row.Job}}
	}
	return e
}
