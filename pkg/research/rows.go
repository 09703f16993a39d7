package research

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// This file has the rows of projects, episodes, clips and leases with their keys. In each of them,
// Number is the version of the subject's newest event: 0 means that the row does not exist, and a
// change that leaves it so does not write it. Fields without a tag are what an attribute says,
// decoded; they are not stored.

// newHead is the head of a row that is not stored yet.
func newHead(k table.Key) table.Head { return table.Head{PK: k.PK, SK: k.SK} }

// subject is what an event of research is about.
func subject(t event.Type, id string) event.Subject { return event.Subject{Type: t, ID: id} }

// mediaSubject is an episode or clip: its id is the project, a slash, and the key.
func mediaSubject(t event.Type, project, key string) event.Subject {
	return subject(t, project+"/"+key)
}

// projectKey is the key of the row of a project. Rows of subjects have the key of their subject, so
// that their events are beside them.
func projectKey(name string) table.Key { return subject(event.ResearchProject, name).Key() }

// episodeKey is the key of the row of an episode; key is that of its media.
func episodeKey(project, key string) table.Key {
	return mediaSubject(event.Episode, project, key).Key()
}

// clipKey is the key of the row of a clip; key is that of its media.
func clipKey(project, key string) table.Key { return mediaSubject(event.Clip, project, key).Key() }

// leaseKey is the key of the row of a lease.
func leaseKey(id string) table.Key { return subject(event.ResearchLease, id).Key() }

// projectList is the list of projects, a partition of the index "list".
const projectList = "RESEARCHPROJECTS"

// projectRow is the row of a project.
//
// Catalog counts the changes of its clips. Each change of a clip that selection can see raises it
// and writes this row, so changes of clips happen one after the other; a change that closes an
// episode only requires it. Grown and Shrunk are values that Catalog had, and so is
// walkRow.Catalog. Recount is a time in milliseconds since 1970 that is raised each time a clip
// goes away or comes back, also when the clock goes back.
type projectRow struct {
	table.Head
	Name       string   `dynamo:"project_name"`
	Number     int64    `dynamo:"version"`          // of its events
	Text       string   `dynamo:"project_json"`     // its definition, as Project
	Generation int64    `dynamo:"round_no"`         // of the analysis; each has pairs of its own
	Past       []string `dynamo:"analyses"`         // all, the present one is the last
	Catalog    int64    `dynamo:"catalog_no"`       // of the newest change of the clips
	Grown      int64    `dynamo:"grown_no"`         // of the newest by which pairs may have become due
	Shrunk     int64    `dynamo:"shrunk_no"`        // of the newest by which a clip went away
	Numbers    int64    `dynamo:"numbers"`          // that clips have: 1 to this
	Recount    int64    `dynamo:"recount_ms"`       // when all counts became out of date
	Paused     string   `dynamo:"paused,omitempty"` // who said that no work is assigned, and why

	Requests registry.Requests `dynamo:"requests,omitempty"`

	def Project // of Text
}

// grown is the number since when no pair has become due, other than by the end of a lease.
// Rows that an earlier version of the program wrote have only the number of the catalog.
func (r *projectRow) grown() int64 { return cmp.Or(r.Grown, r.Catalog) }

// episodeRow is the row of an episode. Every lease and every result of it writes this row on the
// condition of its revision, so two of them cannot take the same pair.
//
// What belongs to a generation is of Generation: if the project is in a later one, nothing of it counts, and
// the next change of the episode replaces it. The bitmap of MaxClips numbers has 16 KiB at most,
// which leaves room for the leases in the 400 KiB of a row.
type episodeRow struct {
	table.Head
	Project    string        `dynamo:"project_name"`
	Name       string        `dynamo:"media_key"`
	Number     int64         `dynamo:"version"`                // of its events
	Text       string        `dynamo:"media_json"`             // as Media
	Generation int64         `dynamo:"round_no"`               // of what follows
	Researched []byte        `dynamo:"researched,omitempty"`   // numbers of clips, a roaring bitmap
	Waiting    []byte        `dynamo:"waiting,omitempty"`      // likewise: with fewer results than the quorum
	Differs    []byte        `dynamo:"differs,omitempty"`      // likewise: a person has to decide
	Found      []byte        `dynamo:"places_found,omitempty"` // how many places, by clip (placesOf)
	Tallied    int64         `dynamo:"tallied_n,omitempty"`    // of researched, those that Found is of
	Leased     []leasedPairs `dynamo:"held,omitempty"`         // by leases that have not ended
	Place      string        `dynamo:"place_in"`               // sort key in the line; "": away
	Further    string        `dynamo:"further_in,omitempty"`   // likewise, beside a place at "closed"
	Moves      int64         `dynamo:"moves_n,omitempty"`      // how often it got another recording

	Tally

	media      Media           // of Text
	researched *roaring.Bitmap // of Researched; the others likewise
	waiting    *roaring.Bitmap
	differs    *roaring.Bitmap
	found      *roaring.Bitmap
	tallied    bool // found is of all that is researched
}

// mostPlaces is the greatest number of places that a row counts of a pair: it stands for more,
// too. A number has a bit in each of four parts of the bitmap, which is numbered by clips: no
// project has as many as a part.
const (
	mostPlaces = 15
	placesBits = 4
	placesPart = 1 << 20
)

// research makes a pair of the episode researched, with so many places. Of several results, the
// most are counted.
func (e *episodeRow) research(clip uint32, places int) {
	e.researched.Add(clip)
	places = min(max(places, e.placesOf(clip)), mostPlaces)
	for bit := range uint32(placesBits) {
		if places>>bit&1 == 1 {
			e.found.Add(bit*placesPart + clip)
		} else {
			e.found.Remove(bit*placesPart + clip)
		}
	}
}

// placesOf is how many places were found in the episode of a clip, if that pair is researched, and
// the episode tallied.
func (e *episodeRow) placesOf(clip uint32) (n int) {
	for bit := range uint32(placesBits) {
		if e.found.Contains(bit*placesPart + clip) {
			n |= 1 << bit
		}
	}
	return n
}

// leasedPairs is a lease on pairs of an episode. The leases are part of the episode's row, so that one
// condition excludes every other lease on its pairs.
type leasedPairs struct {
	Lease string `dynamo:"lease_id"`
	Until int64  `dynamo:"until_ms"` // as the lease's row says
	Clips []byte `dynamo:"clip_nos"` // a bitmap of numbers of clips, as Researched
}

// taken are the clips of an episode that are researched, wait for a person, or are under a lease that has not ended. A
// lease whose time has passed must be ended first: a result that is on its way could still extend
// it.
func (e *episodeRow) taken() (*roaring.Bitmap, error) {
	b := roaring.Or(e.researched, e.differs)
	for _, h := range e.Leased {
		clips, err := bits(h.Clips)
		if err != nil {
			return nil, err
		}
		b.Or(clips)
	}
	return b, nil
}

// clipRow is the row of a clip. Its number is given once, when it comes, and never to another clip:
// bitmaps of all episodes refer to it.
type clipRow struct {
	table.Head
	Project string `dynamo:"project_name"`
	Name    string `dynamo:"media_key"`
	Number  int64  `dynamo:"version"`    // of its events
	Text    string `dynamo:"media_json"` // as Media
	Clip    uint32 `dynamo:"clip_no"`    // in bitmaps
	Listed  int64  `dynamo:"catalog_no"` // where it is in the catalog

	media Media // of Text
}

// leaseRow is the row of a lease. It is removed some weeks after the lease has ended (keptDays).
type leaseRow struct {
	table.Head
	Number int64 `dynamo:"version"` // of its events
	Lease
}

// found is a NotFound if there is no such lease.
func (r *leaseRow) found() error {
	if r.Rev > 0 {
		return nil
	}
	return fault.New(fault.NotFound, "there is no lease %s", definition.Clip(r.ID, 60))
}

// bits decodes a bitmap; no bytes are the empty one. The library keeps references into the bytes
// that it is given, which belong to a row, so it gets a copy. Damaged bytes are an error here: used
// without a check they could end the process.
func bits(data []byte) (*roaring.Bitmap, error) {
	b := roaring.New()
	if len(data) == 0 {
		return b, nil
	}
	_, err := b.FromBuffer(slices.Clone(data))
	if err != nil {
		return b, err
	}
	return b, b.Validate()
}

// packed encodes a bitmap; the same numbers always give the same bytes, so that a row that says the
// same is not written again. The empty one is nil, which is not stored.
func packed(b *roaring.Bitmap) ([]byte, error) {
	if b.IsEmpty() {
		return nil, nil
	}
	b.RunOptimize()
	return b.ToBytes()
}

// setAway lists what is withdrawn, quarantined or deferred in the index. Few are. This index is only
// for views: what is assigned is decided by the line.
func setAway(h *table.Head, kind Kind, project, key string, m *Media) {
	h.ListPK, h.ListSK = "", ""
	if state := m.awayState(); state != "" {
		h.ListPK, h.ListSK = awayPK(project), awaySK(kind, state)+key
	}
}

// awayPK is the partition of the index "list" with what is away in a project.
func awayPK(project string) string { return "RESEARCHAWAY#" + project }

// awaySK is the beginning of the sort keys of one kind and state in it; the key of the media
// follows.
func awaySK(kind Kind, state State) string { return fmt.Sprintf("%s#%s#", kind, state) }
