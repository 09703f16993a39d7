package research

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
)

// Kind is what a curated record is about.
type Kind string

// The two growing sets.
const (
	Episode Kind = "episode"
	Clip    Kind = "clip"
)

// Curated says what a curator knows of an episode or a clip. Messages of curators may come in any order,
// and more than once: what is known afterwards is the same.
type Curated struct {
	Project string `json:"project"`
	Kind    Kind   `json:"kind"`

	// Source and ID identify it: ID is stable within the source. A title is no identity.
	Source string `json:"source"`
	ID     string `json:"id"`

	Title     string `json:"title,omitempty"`
	URL       string `json:"url"`              // of the recording, http or https
	Size      int64  `json:"size,omitempty"`   // bytes; 0 = not known
	SHA256    string `json:"sha256,omitempty"` // of the recording, 64 hexadecimal digits
	Withdrawn bool   `json:"withdrawn,omitempty"`

	// Priority changes only if it is given. Higher is earlier.
	Priority *int `json:"priority,omitempty"`

	// Curated is when the curator said this, Initial when it was curated first, in milliseconds since
	// 1970. Initial 0: as Curated.
	Curated int64 `json:"curated"`
	Initial int64 `json:"initial,omitempty"`
}

// Media is what is known of an episode or a clip.
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

	// What is set aside, or deferred, has no pair that is due. Aside is why: until the address or the
	// digest changes, or a person retries.
	Aside    string  `json:"aside,omitempty"`
	Deferred int64   `json:"deferred,omitempty"` // until then, in milliseconds since 1970
	Failures []int64 `json:"failures,omitempty"` // the newest, at most failuresADay
	Problem  string  `json:"problem,omitempty"`  // of the newest failure
}

var (
	digests = regexp.MustCompile(`^[0-9a-f]{64}$`)
	keys    = regexp.MustCompile(`^[a-z2-7]{24}$`)
	encoded = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
)

// Key is the key of the episode or clip of that source and stable id: 24 characters.
func Key(source, id string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(source), source, id))
	return encoded.EncodeToString(sum[:15])
}

// Key is that of what it is about.
func (c Curated) Key() string { return Key(c.Source, c.ID) }

// Earliest and Latest bound dates of curation: the years 1970 to 2200.
const latestDate = 7_258_118_400_000

// Check returns an Invalid if the record cannot be kept. now is in milliseconds since 1970.
func (c Curated) Check(now int64) error {
	if c.Kind != Episode && c.Kind != Clip {
		return fault.New(fault.Invalid, "kind: found %q; expected episode or clip", definition.Clip(string(c.Kind), 60))
	}
	if !Names.MatchString(c.Project) {
		return fault.New(fault.Invalid, "project: found %q; expected the name of a project: lower-case letters, "+
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
		return fault.New(fault.Invalid, "priority: found %d; expected -%d to %d", *c.Priority, MaxPriority, MaxPriority)
	}
	return cmp.Or(c.checkRecording(), c.checkDates(now))
}

// printable refuses text that is no line of characters.
func printable(field, text string) error {
	wrong := func(r rune) bool { return unicode.IsControl(r) }
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, wrong):
		return fault.New(fault.Invalid, "%s: found %q; expected UTF-8 without control characters", field,
			definition.Clip(text, 60))
	case utf8.RuneCountInString(text) > MaxName:
		return fault.New(fault.Invalid, "%s has %d characters; at most %d are possible", field,
			utf8.RuneCountInString(text), MaxName)
	case strings.TrimSpace(text) != text:
		return fault.New(fault.Invalid, "%s: found %q; spaces at its ends are not possible", field,
			definition.Clip(text, 60))
	}
	return nil
}

// checkRecording checks the address and the digest.
func (c Curated) checkRecording() error {
	if len(c.URL) > MaxURL {
		return fault.New(fault.Invalid, "url has %d bytes; at most %d are possible", len(c.URL), MaxURL)
	}
	u, err := url.Parse(c.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil {
		return fault.New(fault.Invalid, "url: found %q; expected an http or https address without a password",
			definition.Clip(c.URL, 100))
	}
	if c.SHA256 != "" && !digests.MatchString(c.SHA256) {
		return fault.New(fault.Invalid, "sha256: found %q; expected 64 hexadecimal digits in lower case",
			definition.Clip(c.SHA256, 80))
	}
	if c.Size < 0 || c.Size > 1<<40 {
		return fault.New(fault.Invalid, "size: found %d; expected bytes, at most 1 TiB", c.Size)
	}
	return nil
}

// tolerance is how far ahead the clock of a curator may be. A date in the future would make every later
// correction look old.
const tolerance = 24 * 3600 * 1000

func (c Curated) checkDates(now int64) error {
	if c.Curated <= 0 || c.Curated > now+tolerance {
		return fault.New(fault.Invalid, "curated: found %d; expected a time after 1970 that is not in the future",
			c.Curated)
	}
	if c.Initial < 0 || c.Initial > latestDate {
		return fault.New(fault.Invalid, "initial: found %d; expected a time from 1970 to 2200", c.Initial)
	}
	return nil
}

// content is what the newest record decides as a whole.
func (m *Media) content() [5]string {
	return [5]string{m.URL, m.SHA256, m.Title, fmt.Sprint(m.Size), fmt.Sprint(m.Withdrawn)}
}

// merge adds what a curator says. The result of several records does not depend on their order, or on
// how often each comes.
func (m *Media) merge(c Curated) {
	known := m.Latest > 0
	next := *m
	next.Source, next.ID = c.Source, c.ID
	next.URL, next.SHA256, next.Title, next.Size, next.Withdrawn = c.URL, c.SHA256, c.Title, c.Size, c.Withdrawn
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
	if p := c.Priority; p != nil && (c.Curated > m.PriorityAt || c.Curated == m.PriorityAt && *p > m.Priority) {
		next.Priority, next.PriorityAt = *p, c.Curated
	}
	if known && (next.URL != m.URL || next.SHA256 != m.SHA256) {
		next.pardon()
	}
	*m = next
}

// pardon forgets what went wrong with the media.
func (m *Media) pardon() { m.Aside, m.Deferred, m.Failures, m.Problem = "", 0, nil, "" }

// live reports whether it can be researched.
func (m *Media) live() bool { return !m.Withdrawn && m.Aside == "" && m.Deferred == 0 }

// order is the place among others of its kind: first the highest priority, then the newest initial date
// of curation (source: the requirement, "Selecting Work"), then the key.
func (m *Media) order() string {
	return fmt.Sprintf("%07d#%013d#%s", MaxPriority-m.Priority, latestDate-m.Initial, Key(m.Source, m.ID))
}

// deferral is how long what failed is left alone, by the number of failures within a day.
var deferral = []int64{10 * 60_000, 40 * 60_000}

// fail adds a failure. What failed is deferred; after several within a day it is set aside. It reports
// false while it is deferred or set aside already: results that were on the way count once.
func (m *Media) fail(p Problem, now int64) bool {
	if m.Aside != "" || m.Deferred > now {
		return false
	}
	m.Problem = p.Reason
	if p.Kind == Rejected {
		m.Aside, m.Deferred = p.Reason, 0
		return true
	}
	m.Failures = slices.DeleteFunc(append(m.Failures, now), func(at int64) bool { return at <= now-24*3600*1000 })
	if n := len(m.Failures); n < failuresADay {
		m.Deferred = now + deferral[n-1]
	} else {
		m.Aside, m.Deferred = fmt.Sprintf("failed %d times within a day: %s", n, p.Reason), 0
	}
	return true
}
