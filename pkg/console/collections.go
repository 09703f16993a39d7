package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// collections is the page of collections.
type collections struct {
	listed
	Items []v1.Statistics // Updated is "" for one without counts
}

// showCollections lists the collections, each with its counts. A depositor sees their own.
func (c *Console) showCollections(v *visit) (view, error) {
	var p collections
	command := "archivist collection list"
	if !v.may(access.Viewer) {
		for _, name := range v.is.Of(access.Depositor) {
			some, err := v.api.Statistics(v.Context(), name)
			if err != nil {
				return view{}, err
			}
			p.Items = append(p.Items, some...)
		}
		if p.Items == nil {
			return view{}, fault.New(fault.Denied, "the collections need the role viewer")
		}
		return view{Title: "Collections", Body: p, Command: command}, nil
	}

	page, err := v.api.CollectionPage(v.Context(), v.field("cursor"))
	if err != nil {
		return view{}, err
	}
	counts, err := v.api.Statistics(v.Context(), "")
	if err != nil {
		return view{}, err
	}
	for _, one := range page.Items {
		s := v1.Statistics{Collection: one.Name}
		i := slices.IndexFunc(counts, func(s v1.Statistics) bool { return s.Collection == one.Name })
		if i >= 0 {
			s = counts[i]
		}
		p.Items = append(p.Items, s)
	}
	p.listed = v.pager(v1.Filter{}, nil, page.Cursor)
	return view{Title: "Collections", Body: p, Command: command}, nil
}

// collection is the page of a collection.
type collection struct {
	Name   string
	Reads  bool // the visitor may read the profile
	Edits  bool // and change it
	Is     v1.Collection
	Fields []profileField
	Was    string // what the profile was when the form was made
	Wrong  map[string]string
	Other  string
	// Differ is how many fields of a form that was sent differ from the profile, which somebody else
	// has changed meanwhile, and Taken how many have their value now; 0 = nobody has.
	Differ, Taken int
	Counts        v1.Statistics
	Charts        []chart
	Days          []v1.DayCounts // the newest first, those with counts
	Offers        []offer
	Unread        string // why the counts could not be read

	Uses formatUses

	Found         int // objects, in the search index
	Formats       []v1.FormatCount
	FormatsUnread string // why they could not be read
}

// daysShown is how many days the charts have.
const daysShown = 30

// showCollection shows a collection: its counts, its hold and its profile.
func (c *Console) showCollection(v *visit) (view, error) {
	p, err := c.collectionOf(v, v.PathValue("id"))
	if err != nil {
		return view{}, err
	}
	if p.Reads {
		if err := c.profiled(v, &p, nil); err != nil {
			return view{}, err
		}
	}
	return collectionView(p), nil
}

func collectionView(p collection) view {
	return view{Title: "Collection " + p.Name, Body: p, Command: "archivist collection show " +
		quoted(p.Name)}
}

// collectionOf reads what a page of a collection shows, but the form of its profile.
func (c *Console) collectionOf(v *visit, name string) (p collection, err error) {
	p = collection{Name: name, Reads: v.may(access.Viewer), Edits: v.may(access.Administrator)}
	if p.Reads {
		p.Is, err = v.api.Collection(v.Context(), name)
		if err != nil {
			return p, err
		}
		p.Offers = offers("collection", name, p.Is.Actions)
	}

	from := v.now.UTC().AddDate(0, 0, 1-daysShown).Format(time.DateOnly)
	to := v.now.UTC().Format(time.DateOnly)
	p.Counts, err = v.api.StatisticsOf(v.Context(), name, from, to)
	switch {
	case fault.Is(err, fault.Unavailable):
		p.Unread = err.Error()
	case err != nil:
		return p, err
	default:
		p.charts(v.now)
	}
	if p.Uses, err = v.formatsOf(name, someFormats); err != nil {
		return p, err
	}
	return p, p.formats(v)
}

// formats adds how many objects have a file of each format. The page is shown without them, if
// the index cannot be read.
func (p *collection) formats(v *visit) error {
	found, err := v.api.SearchPage(v.Context(), "collection:"+phrase(p.Name), "", "", 1)
	if fault.Is(err, fault.Unavailable) {
		p.FormatsUnread = err.Error()
		return nil
	}
	p.Found, p.Formats = found.Total, found.Formats
	return err
}

// charts makes the charts of the days.
func (p *collection) charts(now time.Time) {
	counts := map[string]v1.EventCounts{}
	for _, d := range p.Counts.Days {
		counts[d.Date] = d.EventCounts
		p.Days = append(p.Days, d)
	}
	slices.Reverse(p.Days)
	for _, one := range []struct {
		title, tone string
		of          func(v1.EventCounts) int64
		show        func(int64) string
	}{
		{"Versions stored by day", "", func(n v1.EventCounts) int64 { return n.Versions },
			number[int64]},
		{"Bytes stored by day", "", func(n v1.EventCounts) int64 { return n.Bytes }, terminal.Size},
		{"Failures of jobs by day", "bad", func(n v1.EventCounts) int64 { return n.Failed },
			number[int64]},
		{"Downloads by day", "", func(n v1.EventCounts) int64 { return n.Downloads },
			number[int64]},
	} {
		bars := make([]bar, daysShown)
		for i := range bars {
			day := now.UTC().AddDate(0, 0, i+1-daysShown).Format(time.DateOnly)
			bars[i] = bar{Label: day, Value: one.of(counts[day])}
		}
		c := charted(one.title, bars, one.show)
		c.Tone = one.tone
		p.Charts = append(p.Charts, c)
	}
}

// overtaken notes in a form what somebody else has changed since it was opened, and returns why it
// is refused. The form that is shown then is one of the profile as it is: sent again, it overwrites.
func (c *Console) overtaken(v *visit, p *collection) error {
	now := *p
	if err := c.profiled(v, &now, nil); err != nil {
		return err
	}
	says := "the profile was changed by somebody else since you opened it, and "
	p.Differ, p.Taken = compared(p.Fields, now.Fields)
	if p.Differ == 0 && p.Taken == 0 {
		return fault.New(fault.Stale, "%s", says+"has all that you have written: there is nothing "+
			"to save")
	}
	return fault.New(fault.Stale, "%s", says+"nothing was saved; what only they have changed is "+
		"in the form now, with what it was; what is stored now stands beside each field that you "+
		"have "+
		"changed: compare, change what you wrote where theirs is right, and save, which "+
		"overwrites theirs there")
}

// saveProfile replaces the profile of a collection by that of the form. What is refused is said at its field.
func (c *Console) saveProfile(v *visit, key string) error {
	name := v.PostForm.Get("collection")
	p, err := c.collectionOf(v, name)
	if err != nil {
		return err
	}
	if err := c.profiled(v, &p, v.PostForm); err != nil {
		return err
	}
	switch {
	case v.PostForm.Get("was") != p.Was:
		err = c.overtaken(v, &p)
	default:
		var in map[string]any
		in, err = profileFrom(p.Fields, v.PostForm)
		if err == nil {
			if p.Is.Profile.LegalHold != nil && in["legalHold"] == nil {
				in["legalHold"] = "" // an empty field lifts it
			}
			_, err = call[v1.Collection](v, http.MethodPut, "/v1/collections/"+url.PathEscape(name),
				in, key)
		}
	}
	switch {
	case err == nil:
		redirect(v, "collections/"+url.PathEscape(name)+"?did=saved")
		return nil
	case v.via.refused || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Denied):
		return err
	}
	names := map[string]string{}
	for _, f := range p.Fields {
		names[f.Name] = f.Name
	}
	p.Wrong, p.Other = faultsOf(err, names)
	c.show(v, fault.At(err).Status, "collection", collectionView(p))
	return nil
}
