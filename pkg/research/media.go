package research

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/url"
	"regexp"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// This file has what is known of recordings: the record of a curator (Curated), what many records
// add up to (Media.merge), what failures do to it (Media.fail), and its place among others
// (Media.order). All of it is pure: nothing here reads a row or a clock.

// Kind is what a curated record is about.
type Kind string

// The two growing sets.
const (
	Episode Kind = "episode"
	Clip    Kind = "clip"
)

// Hit is a place where a clip occurs in an episode. The hits of a result come from its researcher,
// in any order.
type Hit = v1.ResearchHit

// Kinds of problems.
const (
	Rejected = "rejected" // for ever: it is silent, too short, or no recording
	Failed   = "failed"   // it could not be read now
)

// Problem is why there is no result. It belongs to a recording, not to a pair: a silent clip would
// fail in every episode.
type Problem = v1.ResearchProblem

// Curated says what a curator knows of an episode or a clip. Messages of curators may come in any
// order, and more than once: what is known afterwards is the same.
type Curated struct {
	Project string `json:"project"`
	Kind    Kind   `json:"kind"`

	// Source and ID identify it: ID is stable within the source. A title is no identity, because
	// titles are corrected: a renamed episode would become a second one, and all its pairs due
	// again.
	Source string `json:"source"`
	ID     string `json:"id"`

	Title     string `json:"title,omitempty"`
	URL       string `json:"url"`              // of the recording, http or https
	Size      int64  `json:"size,omitempty"`   // bytes; 0 = not known
	SHA256    string `json:"sha256,omitempty"` // of the recording, 64 hexadecimal digits
	Withdrawn bool   `json:"withdrawn,omitempty"`

	// Priority changes only if it is given. Higher is earlier.
	Priority *int `json:"priority,omitempty"`

	// Curated is when the curator said this, Initial when it was curated first, in milliseconds
	// since 1970. Initial 0: as Curated.
	Curated int64 `json:"curated"`
	Initial int64 `json:"initial,omitempty"`
}

// Media is what is known of an episode or a clip. It is stored as JSON in its row, and published in
// events. Times are in milliseconds since 1970.
type Media struct {
	Source    string `json:"source"`
	ID        string `json:"id"`
	Title     string `json:"title,omitempty"`
	URL       string `json:"url"`
	Size      int64  `json:"size,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	Withdrawn bool   `json:"withdrawn,omitempty"`

	Priority   int   `json:"priority"`
	PriorityAt int64 `json:"priorityAt,omitempty"` // when the priority was given last
	Initial    int64 `json:"initial"`              // the earliest date of curation
	Latest     int64 `json:"latest"`               // the greatest

	// What is quarantined, or deferred, has no pair that is due. Quarantined is why: until the address or
	// the digest changes, or a person retries.
	Quarantined string    `json:"aside,omitempty"`
	Deferred    int64     `json:"deferred,omitempty"` // until then, in milliseconds since 1970
	Failures    []Failure `json:"failed,omitempty"`   // those within a day of the newest
	Before      []int64   `json:"failures,omitempty"` // times, as a release before Failure has kept them: not counted
	Problem     string    `json:"problem,omitempty"`  // of the newest failure
}

// Failure is that a researcher could not research a recording. One researcher alone can be wrong about it: its network,
// its permissions or its disk can be the cause.
type Failure struct {
	At       int64  `json:"at"` // milliseconds since 1970
	By       string `json:"by"` // the name of the researcher
	Rejected bool   `json:"rejected,omitempty"`
}

// Subject is an episode or clip with its key.
type Subject struct {
	Key string
	Media
}

// State is what becomes of an episode or a clip.
type State string

// The states. An episode is Ready, Closed or away, a clip Live or away.
const (
	Ready       State = "ready"     // it has a pair that is due
	Closed      State = "closed"    // no pair is due; or it has MaxLeases leases
	Live        State = "live"      // it is researched
	Quarantined State = "set-aside" // until its recording changes, or a person retries
	Deferred    State = "deferred"  // for some time, because it failed
	Withdrawn   State = "withdrawn" // by its curator
)

// statesOf are the states of a kind, in the order of lists.
var statesOf = map[Kind][]State{Episode: {Ready, Closed, Quarantined, Deferred, Withdrawn},
	Clip: {Live, Quarantined, Deferred, Withdrawn}}

// awayState is why an episode or clip has no pair that is due; "" if it may have. Of several
// reasons, withdrawn counts before quarantined, and that before deferred.
func (m *Media) awayState() State {
	switch {
	case m.Withdrawn:
		return Withdrawn
	case m.Quarantined != "":
		return Quarantined
	case m.Deferred > 0:
		return Deferred
	}
	return ""
}

var (
	digests = regexp.MustCompile(`^[0-9a-f]{64}$`)
	keys    = regexp.MustCompile(`^[a-z2-7]{24}$`)
	encoded = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// Key is the key of the episode or clip of that source and stable id: 24 lower-case letters and
// digits, which are 120 bits of a SHA-256. The same source and id always have the same key, so a
// record that comes twice finds its row; and whatever characters the id has, the key can be part of
// a key of the table. The length in front keeps "ab", "c" apart from "a", "bc".
func Key(source, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(source), source, id))
	return encoded.EncodeToString(sum[:15])
}

// Key is that of what it is about.
func (c Curated) Key() string { return Key(c.Source, c.ID) }

// Earliest and Latest bound dates of curation: the years 1970 to 2200.
const latestDate = 7_258_118_400_000

// Check returns an Invalid if the record cannot be kept, which names the field and what was
// expected. The same record fails again, so its message belongs to the dead letters. now is in
// milliseconds since 1970.
func (c Curated) Check(now int64) error {
	if c.Kind != Episode && c.Kind != Clip {
		return fault.New(fault.Invalid, "kind: found %q; expected episode or clip",
			definition.Clip(string(c.Kind), 60))
	}

	if !Names.MatchString(c.Project) {
		return fault.New(fault.Invalid,
			"project: found %q; expected the name of a project: lower-case letters, "+
				"digits and hyphens, at most 40", definition.Clip(c.Project, 60))
	}

	for field, text := range map[string]string{"source": c.Source, "id": c.ID} {
		if text == "" {
			return fault.New(fault.Invalid, "%s is missing; it is part of the identity", field)
		}
	}

	for field, text := range map[string]string{"source": c.Source, "id": c.ID, "title": c.Title} {
		err := printable(field, text)
		if err != nil {
			return err
		}
	}

	if c.Priority != nil && (*c.Priority < -MaxPriority || *c.Priority > MaxPriority) {
		return fault.New(fault.Invalid, "priority: found %d; expected -%d to %d", *c.Priority,
			MaxPriority, MaxPriority)
	}
	return cmp.Or(c.checkRecording(), c.checkDates(now))
}

// checkRecording checks the address and the digest. An address with a password is refused: it would
// be stored, published in events, and given to researchers.
func (c Curated) checkRecording() error {
	if len(c.URL) > MaxURL {
		return fault.New(fault.Invalid, "url has %d bytes; at most %d are possible", len(c.URL), MaxURL)
	}

	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.User != nil {
		return fault.New(fault.Invalid,
			"url: found %q; expected an http or https address without a password",
			definition.Clip(c.URL, 100))
	}

	if c.SHA256 != "" && !digests.MatchString(c.SHA256) {
		return fault.New(fault.Invalid,
			"sha256: found %q; expected 64 hexadecimal digits in lower case",
			definition.Clip(c.SHA256, 80))
	}

	if c.Size < 0 || c.Size > 1<<40 {
		return fault.New(fault.Invalid, "size: found %d; expected bytes, at most 1 TiB", c.Size)
	}
	return nil
}

// tolerance is how far ahead the clock of a curator may be. A date in the future would make every
// later correction look old.
const tolerance = 24 * 3600 * 1000

// checkDates checks when the record was made, and the first date of curation, which may be in the
// future: it decides nothing but the order.
func (c Curated) checkDates(now int64) error {
	if c.Curated <= 0 || c.Curated > now+tolerance {
		return fault.New(fault.Invalid,
			"curated: found %d; expected a time after 1970 that is not in the future",
			c.Curated)
	}
	if c.Initial < 0 || c.Initial > latestDate {
		return fault.New(fault.Invalid, "initial: found %d; expected a time from 1970 to 2200",
			c.Initial)
	}
	return nil
}

// content is what the newest record decides as a whole: never the address of one record with the
// digest of another.
func (m *Media) content() [5]string {
	return [5]string{m.URL, m.SHA256, m.Title, fmt.Sprint(m.Size), fmt.Sprint(m.Withdrawn)}
}

// merge adds what a curator says. The result of several records does not depend on their order, or
// on how often each comes, because queues give neither: the newest record decides the content, the
// newest that gives a priority decides that, the earliest date is the initial one, and the latest
// date never goes back.
//
// Another address or digest is another recording: what failed with the one before is forgotten.
func (m *Media) merge(c Curated) {
	known := m.Latest > 0
	next := *m
	next.Source, next.ID = c.Source, c.ID
	next.URL, next.SHA256, next.Title, next.Size, next.Withdrawn = c.URL, c.SHA256, c.Title, c.Size,
		c.Withdrawn
	order := cmp.Compare(c.Curated, m.Latest)
	if order == 0 { // of two records of the same time, one wins whichever comes first
		a, b := next.content(), m.content()
		order = slices.Compare(a[:], b[:])
	}

	if known && order <= 0 {
		next = *m
	}

	next.Latest = max(m.Latest, c.Curated)
	next.Initial = cmp.Or(c.Initial, c.Curated)
	if known {
		next.Initial = min(m.Initial, next.Initial)
	}

	// Of two priorities of the same time the greater wins, whichever comes first.
	if p := c.Priority; p != nil &&
		(c.Curated > m.PriorityAt || c.Curated == m.PriorityAt && *p > m.Priority) {
		next.Priority, next.PriorityAt = *p, c.Curated
	}

	if known && (next.URL != m.URL || next.SHA256 != m.SHA256) {
		next.pardon()
	}

	*m = next
}

// pardon forgets what went wrong with the media.
func (m *Media) pardon() {
	m.Quarantined, m.Deferred, m.Failures, m.Before, m.Problem = "", 0, nil, nil, ""
}

// live reports whether it can be researched. A deferral counts until the assigner has ended it,
// not until its time: what is live is decided by rows alone, so that counts and places agree with
// them.
func (m *Media) live() bool { return !m.Withdrawn && m.Quarantined == "" && m.Deferred == 0 }

// order is the place among others of its kind: first the highest priority, then the newest initial
// date of curation (source: the requirement, "Selecting Work"), then the key. The texts sort like
// that, because both numbers are counted down from their greatest and have a fixed number of
// digits: a priority from -MaxPriority on gives at most seven, a date from 1970 on at most
// thirteen.
func (m *Media) order() string {
	return fmt.Sprintf("%07d#%013d#%s", MaxPriority-m.Priority, latestDate-m.Initial,
		Key(m.Source, m.ID))
}

// deferral is how long what failed is left alone, by the number of failures within a day: 10 minutes, then four times
// as long each time, a day at most. It is in milliseconds.
func deferral(n int) int64 {
	wait := int64(10 * 60_000)
	for range n - 1 {
		wait *= 4
	}
	return min(wait, 24*3600*1000)
}

// fail adds a failure at a time in milliseconds since 1970. What failed is deferred. It is quarantined once two
// researchers of different names agree: if both have rejected it, since another try would find the same, or after
// several failures within a day. It reports false while it is deferred or quarantined already: results that were on the
// way count once.
func (m *Media) fail(p Problem, by string, now int64) bool {
	if m.Quarantined != "" || m.Deferred > now {
		return false
	}

	m.Problem, m.Before = p.Reason, nil
	m.Failures = slices.DeleteFunc(append(m.Failures, Failure{At: now, By: by, Rejected: p.Kind == Rejected}),
		func(f Failure) bool { return f.At <= now-24*3600*1000 })
	all, rejected := names(m.Failures, false), names(m.Failures, true)
	switch n := len(m.Failures); {
	case rejected >= 2:
		m.Quarantined, m.Deferred = p.Reason, 0
	case n >= failuresADay && all >= 2:
		m.Quarantined, m.Deferred = fmt.Sprintf("failed %d times within a day: %s", n, p.Reason), 0
	default:
		m.Deferred = now + deferral(n)
	}
	return true
}

// names is how many researchers have made failures, or only those that rejected.
func names(all []Failure, rejected bool) int {
	seen := map[string]bool{}
	for _, f := range all {
		if f.Rejected || !rejected {
			seen[f.By] = true
		}
	}
	return len(seen)
}
