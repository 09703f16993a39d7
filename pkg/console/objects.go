package console

import (
	"cmp"
	"regexp"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// objects is the page of objects.
type objects struct {
	listed
	Words   string // that are searched for
	Orders  []string
	Items   []v1.Object
	Found   bool // it is a search, which counts
	Total   int
	Facets  []facet
	Years   []facet // of their dates
	Formats []facet // of their files
}

// facet narrows a search to a value.
type facet struct {
	Value string
	Count int
	To    string // the address, without the path
}

// objectsPage is how many objects a page of a search shows.
const objectsPage = 50

// orders are those of a search, the default first.
var orders = []string{v1.ByRelevance, v1.ByTitle, v1.ByDate, v1.ByModified}

// showObjects lists objects. What the lists of the API do not combine is a search.
func (c *Console) showObjects(v *visit) (view, error) {
	f := v1.Filter{Collection: v.collection(), LocalID: v.field("localId"), Title: v.field("title"),
		Date: v.field("date"), Format: v.field("format"), Sort: v.field("sort"),
		Order: v.field("order")}
	o := objects{Words: v.field("q"), Orders: orders}
	next, command, err := o.read(v, f)
	o.listed = v.pager(f, nil, next)
	err = o.refuse(v, err)
	return view{Title: "Objects", Body: o, Command: command, Status: o.status()}, err
}

// read reads a page of what a filter selects. It returns the cursor of the next one, and the
// command that does the same.
func (o *objects) read(v *visit, f v1.Filter) (next, command string, err error) {
	text := o.query(f)
	if text == "" {
		f.Sort, f.Order = orderOfAll(f.Sort, f.Order)
	}
	if o.Words+f.Format+f.Sort+f.Order == "" && (f.Date == "" || f.Title+f.Collection == "") {
		page, err := v.api.ObjectPage(v.Context(), f, v.field("cursor"))
		o.Items = page.Items
		return page.Cursor, joined("archivist object list", optionsFor(f)), err
	}
	found, err := v.api.SearchPage(v.Context(), text, f.Sort+" "+f.Order, v.field("cursor"),
		objectsPage)
	if err != nil {
		return "", searchCommand(text, f), err
	}
	o.Found, o.Items, o.Total = true, found.Items, found.Total
	o.counted(v, f, found)
	return found.Cursor, searchCommand(text, f), nil
}

// searchCommand is the command that finds the same; what has no condition is a list.
func searchCommand(text string, f v1.Filter) string {
	sorted := optionsFor(v1.Filter{Sort: f.Sort, Order: f.Order})
	if text == "" {
		return joined("archivist object list", sorted)
	}
	return joined("archivist object search", sorted, arguments(text))
}

// orderOfAll is the order of a list that nothing is searched for in: no object is more relevant
// there than another, and what is turned around without a field is the order by title.
func orderOfAll(sort, order string) (string, string) {
	if sort == v1.ByRelevance {
		sort = ""
	}
	if sort == "" && order != "" {
		sort = v1.ByTitle
	}
	return sort, order
}

// counted adds what narrows a search: the collections, the years and the formats of what was found.
func (o *objects) counted(v *visit, f v1.Filter, found v1.Found) {
	if f.Collection == "" {
		o.Facets = facets(v, "collection", found.Collections, func(n v1.CollectionCount) facet {
			return facet{Value: n.Name, Count: n.Objects}
		})
	}
	if len(found.Years) > 1 {
		o.Years = facets(v, "date", found.Years, func(n v1.YearCount) facet {
			return facet{Value: n.Year, Count: n.Objects}
		})
	}
	o.Formats = facets(v, "format", found.Formats, func(n v1.FormatCount) facet {
		return facet{Value: n.Format, Count: n.Objects}
	})
}

// aYear is what a facet of years has.
var aYear = regexp.MustCompile(`^[0-9]{4}$`)

// query is the search for what a filter selects.
func (o *objects) query(f v1.Filter) string {
	parts := []string{o.Words}
	date := f.Date
	if aYear.MatchString(date) { // all days of the year, and not what has this number as a word
		date += ".." + date
	}
	for _, p := range [][2]string{{"collection", f.Collection}, {"id", f.LocalID}, {"title",
		f.Title}, {"date", date}, {"format", f.Format}} {
		if p[1] != "" {
			parts = append(parts, p[0]+":"+phrase(p[1]))
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// phrase is a value in a search: in quotation marks, if it has blanks or such marks.
func phrase(text string) string {
	if strings.ContainsAny(text, " \t\"") {
		return `"` + strings.ReplaceAll(text, `"`, " ") + `"`
	}
	return text
}

// facets narrow what was found to a value of a field of the form.
func facets[T any](v *visit, field string, counts []T, of func(T) facet) (all []facet) {
	for _, n := range counts {
		one, q := of(n), v.URL.Query()
		q.Del("cursor")
		q.Set(field, one.Value)
		one.To = "?" + q.Encode()
		all = append(all, one)
	}
	return all
}

// marks are the decisions about an object that a reader of a list should not miss, each with its tone.
func marks(o v1.Object) (all [][2]string) {
	if o.Withdrawn != nil {
		all = append(all, [2]string{"withdrawn", "bad"})
	}
	if o.Embargo != nil {
		all = append(all, [2]string{"embargo until " + o.Embargo.Until, "warn"})
	}
	for _, k := range o.Kept {
		if k.Of == "object" {
			all = append(all, [2]string{strings.TrimSpace(k.Kind + " " + cmp.Or(k.Until, "")),
				"runs"})
		}
	}
	return all
}
