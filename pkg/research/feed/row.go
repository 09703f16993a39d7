package feed

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/research"
)

// row is the row of a feed of a project. Times are in milliseconds since 1970.
type row struct {
	table.Head
	lease.On        // of the look at it
	Project  string `dynamo:"project_name"`
	Name     string `dynamo:"feed_key"`          // keyOf
	Looked   int64  `dynamo:"looked_ms"`         // when the newest look began
	Wait     int64  `dynamo:"wait_ms,omitempty"` // the next look, 0 if it is by the schedule
	ETag     string `dynamo:"etag,omitempty"`    // a validator (RFC 9110, section 8.8)
	Modified string `dynamo:"last_modified,omitempty"`
	Text     string `dynamo:"state_json"` // State, without what follows from the other attributes

	feed research.Feed // as it is configured now
}

// knownRow has digests of the entries as they were stored, 8 bytes for each, sorted: at most 80 kB.
// It is apart from row, so that a list of feeds does not read it.
type knownRow struct {
	table.Head
	Digests []byte `dynamo:"digests"`
}

// prefix begins the sort keys of rows of feeds; "known#" begins those of their digests.
const prefix = "feed#"

// partition is that of the feeds of a project.
func partition(project string) string { return "RESEARCHFEEDS#" + project }

// keyOf is the key of a feed in its project. Another address, source or kind is another feed.
func keyOf(f research.Feed) string { return research.Key(f.Kind+" "+f.Source, f.URL) }

// newRow is the row of a feed that was never looked at, so it is due.
func newRow(project, key string, f research.Feed) *row {
	return &row{
		Head:    table.Head{PK: partition(project), SK: prefix + key},
		Project: project,
		Name:    key,
		Text:    "{}",
		feed:    f,
	}
}

// digest is of an entry. With 10,000 entries the probability that a change is taken for one that is
// known is below 10^-15.
type digest [8]byte

// digestOf is of all that an entry says.
func digestOf(e Entry) digest {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", e.ID, e.Title, e.URL, e.Published))
	return digest(sum[:8])
}

// digests are the digests as a set.
func (k *knownRow) digests() map[digest]bool {
	all := map[digest]bool{}
	for d := range slices.Chunk(k.Digests, len(digest{})) {
		if len(d) == len(digest{}) {
			all[digest(d)] = true
		}
	}
	return all
}

// pack makes one value of digests, whatever their order, so that what is the same is not written
// again.
func pack(digests []digest) (packed []byte) {
	digests = slices.Clone(digests)
	slices.SortFunc(digests, func(a, b digest) int { return slices.Compare(a[:], b[:]) })
	for _, d := range digests {
		packed = append(packed, d[:]...)
	}
	return packed
}

// next is when the feed is due, in milliseconds since 1970.
func (r *row) next() int64 {
	if r.Wait > 0 || r.Looked == 0 {
		return r.Wait
	}
	return r.Looked + int64(r.feed.EveryMinutes)*time.Minute.Milliseconds()
}

// State is what is known of a feed. Times are in milliseconds since 1970, 0 for never.
type State struct {
	research.Feed
	Key       string    `json:"key"`
	Next      int64     `json:"next"`              // when it is looked at again
	Looked    int64     `json:"looked,omitempty"`  // when the newest look began
	Read      int64     `json:"read,omitempty"`    // when the newest look began that succeeded
	Changed   int64     `json:"changed,omitempty"` // when the newest look began that found something new
	Entries   int       `json:"entries"`           // episodes or clips of the feed when it was read last
	Left      int       `json:"left,omitempty"`    // entries that are stored by the next look
	Undated   int       `json:"undated,omitempty"` // entries without a date: the time of the first look is theirs
	Skipped   []Skipped `json:"skipped,omitempty"` // entries that are neither episodes nor clips, with reasons
	Moved     string    `json:"moved,omitempty"`   // where the publisher says that the feed is now, permanently
	Gone      bool      `json:"gone,omitempty"`    // the publisher says that the feed has ended
	Failures  int       `json:"failures,omitempty"`
	Problem   string    `json:"problem,omitempty"`   // of the newest look
	LookingBy string    `json:"lookingBy,omitempty"` // the claim of the look that is at work

	wait time.Duration // after a failure
}

// state is what is known of the feed, with what follows from its other attributes.
func (r *row) state() (s State, err error) {
	err = json.Unmarshal([]byte(r.Text), &s)
	if err != nil {
		return s, fmt.Errorf("feed %s of %s: its row is damaged: %w", r.Name, r.Project, err)
	}
	s.Feed, s.Key, s.Next, s.LookingBy = r.feed, r.Name, r.next(), r.Holder
	return s, nil
}

// pack puts the state into the row, without what state adds.
func (r *row) pack(s State) error {
	s.Feed, s.Key, s.Next, s.LookingBy = research.Feed{}, "", 0, ""
	data, err := json.Marshal(s)
	r.Text = string(data)
	return err
}

// Waits after failures double from the first to the longest. A server that asks for a longer one
// gets it, up to the time after which a feed that has ended is looked at again.
const (
	firstWait   = 5 * time.Minute
	longestWait = 24 * time.Hour
	goneWait    = 7 * 24 * time.Hour
)

// record adds what a look found, or how it failed: then the wait doubles with each failure in a
// row. A feed of which the publisher says that it has ended (410 Gone) is looked at once a week.
func (s *State) record(found Look, m merged, err error) {
	s.Moved, s.Gone = "", false
	if len(found.Moved) <= maxURL {
		s.Moved = found.Moved
	}

	if m.changed > 0 {
		s.Changed = s.Looked
	}

	s.Left = m.left
	if err == nil {
		s.Read, s.Failures, s.Problem, s.wait = s.Looked, 0, "", 0
		if !found.Unchanged {
			s.Entries, s.Undated = len(found.Entries), found.Undated
			s.Skipped = append(found.Skipped, m.refused...)
		}
		return
	}

	s.Failures++
	s.Problem = problem(err)
	var status *fetch.StatusError
	s.Gone = errors.As(err, &status) && status.Status == http.StatusGone
	s.wait = longestWait
	if s.Failures < 10 { // else the shift is too long
		s.wait = min(longestWait, firstWait<<(s.Failures-1))
	}

	if s.Gone {
		s.wait = goneWait
	}

	s.wait = max(s.wait, min(fetch.AskedToWait(err), goneWait))
}

// merged is what became of the entries of a feed.
type merged struct {
	known   *knownRow // nil if the feed was not read
	digests []digest  // of those that are as they are stored
	changed int
	left    int // for another look, because the time was up
	refused []Skipped
	err     error // ended it
}

// remember writes what is known of the entries now, if it has changed. Entries that the feed no
// longer lists are forgotten, so the row does not grow with the age of the feed.
func (m *merged) remember(tx *table.Tx) {
	packed := pack(m.digests)
	switch {
	case slices.Equal(packed, m.known.Digests):
	case m.known.Rev == 0:
		m.known.Digests = packed
		tx.Insert(m.known)
	default:
		m.known.Digests = packed
		tx.Save(m.known)
	}
}

// problem is the message of an error, of at most 500 bytes.
func problem(err error) string {
	text := err.Error()
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// mostReasons is how many reasons of refusals are kept. Each may name a value.
const mostReasons = 10

// count counts an entry that was refused, by its reason.
func count(all []Skipped, reason, id string) []Skipped {
	if len(all) >= mostReasons {
		reason = "other reasons"
	}
	i := slices.IndexFunc(all, func(s Skipped) bool { return s.Reason == reason })
	if i < 0 {
		return append(all, Skipped{Reason: reason, Count: 1, First: clip(id)})
	}
	all[i].Count++
	return all
}
