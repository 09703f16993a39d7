package feed

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/source"
)

// rawEntry is an entry as it stands in the feed.
type rawEntry struct {
	line                     int    // on which it begins, from 1
	id, title                string // one line each, without spaces at the ends
	published, date, updated string // as they are written
	enclosed, media          string // addresses of the first recording of each
}

// text is where the text of a child element belongs; nil: it is not read. core is the namespace of
// the entry itself: an itunes:title is not its title.
func (e *rawEntry) text(name xml.Name, core string) *string {
	if name.Space == dublinCore && name.Local == "date" {
		return &e.date
	}

	if name.Space != core {
		return nil
	}

	switch name.Local {
	case "guid", "id":
		return &e.id
	case "title":
		return &e.title
	case "pubDate", "published":
		return &e.published
	case "updated":
		return &e.updated
	}
	return nil
}

// addMedia keeps the address of the first recording. el is any element in the entry, however deep,
// because media:content is often in a group. base is what relative addresses are relative to.
func (e *rawEntry) addMedia(el xml.StartElement, base *url.URL) {
	// In order: media:content of Media RSS, the enclosure of RSS 1.0 (its module mod_enclosure),
	// that of RSS 2.0, and the link of Atom whose relation is "enclosure" (RFC 4287, section
	// 4.2.7.2).
	into, address, kind := &e.enclosed, "", attribute(el, "", "type")
	switch name := el.Name; {
	case name.Space == mediaRSS && name.Local == "content":
		into, address = &e.media, attribute(el, "", "url")
		kind = cmp.Or(kind, attribute(el, "", "medium"))
	case name.Space == enclosures && name.Local == "enclosure":
		address, kind = attribute(el, rdf, "resource"), attribute(el, enclosures, "type")
	case name.Local == "enclosure":
		address = attribute(el, "", "url")
	case name.Local == "link" && attribute(el, "", "rel") == "enclosure":
		address = attribute(el, "", "href")
	}

	address = strings.TrimSpace(address)
	if *into != "" || address == "" {
		return
	}

	u := resolve(base, address)
	if u != nil && audio(kind, u.Path) {
		*into = u.String()
	}
}

// extensions are those of recordings, for addresses whose type says nothing.
var extensions = []string{".mp3", ".wav", ".flac", ".m4a", ".m4b", ".aac", ".ogg", ".oga", ".opus",
	".aif", ".aiff",
	".wma"}

// audio reports whether media is a recording, by its type, else by the extension. kind is a media
// type, perhaps with parameters, or the attribute medium of Media RSS; types that mean only "bytes"
// say nothing. address is the path of a URL.
func audio(kind, address string) bool {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ";")
	switch kind = strings.TrimSpace(kind); kind {
	case "", "application/octet-stream", "binary/octet-stream":
		return slices.Contains(extensions, strings.ToLower(path.Ext(address)))
	case "audio", "application/ogg":
		return true
	}
	return strings.HasPrefix(kind, "audio/")
}

// entry checks what stands in the feed. The reason is empty, or why it is skipped. What passes can
// be curated: the limits are those of package research. latest is the latest date that counts.
func (e rawEntry) entry(latest time.Time) (out Entry, reason string) {
	out = Entry{ID: e.id, Title: oneLine(e.title), URL: cmp.Or(e.enclosed, e.media)}
	if out.URL == "" {
		return out, "it has no recording: no enclosure that is audio"
	}

	out.ID = cmp.Or(out.ID, out.URL)
	u, err := url.Parse(out.URL)
	switch {
	case len(out.URL) > maxURL:
		return out, "the address of its recording is longer than 2048 bytes"
	case source.Check(out.URL) != nil || err != nil || u.User != nil:
		return out, "the address of its recording is no http or https address without a password"
	case utf8.RuneCountInString(out.ID) > maxName:
		return out, "its id is longer than 300 characters"
	case strings.ContainsFunc(out.ID, unicode.IsControl):
		return out, "its id has control characters"
	}

	// The date of publication never changes; that of an update is better than none.
	for _, text := range []string{e.published, e.date, e.updated} {
		if at, ok := date(text); ok && at.UnixMilli() > 0 && !at.After(latest) {
			out.Published = at.UnixMilli()
			break
		}
	}
	return out, ""
}

// oneLine makes a text one line of at most 300 characters. A title is for people, so it is cut and
// not refused.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if r := []rune(text); len(r) > maxName {
		text = string(r[:maxName-1]) + "…"
	}
	return strings.TrimSpace(text)
}

// name is how a person finds the entry.
func (e rawEntry) name() string {
	return cmp.Or(clip(e.title), clip(e.id), fmt.Sprintf("the entry on line %d", e.line))
}

// clip is the beginning of a text, for messages.
func clip(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}
