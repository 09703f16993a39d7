package console

import (
	"net/url"
	"regexp"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// found is what a search finds.
type found struct {
	Text string
	// Is is the thing that the text is the id of; nil if it is of none, or has a page to which the search leads.
	Is *v1.Explanation
	// Why says why the text is the id of nothing.
	Why     string
	Objects []v1.Object
	Total   int
	NoIndex string // why objects could not be searched
	Lists   []need
}

// pageOfKind are the pages of the kinds of things that an explanation names, below /console/.
var pageOfKind = map[string]string{"Batch": "batches/", "Job": "jobs/", "Operation": "operations/",
	"Object": "objects/"}

// aName matches what can be the name of a collection.
var aName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// mostFound is how many objects a search shows.
const mostFound = 20

// showSearch leads to the page of the thing whose id is searched for. Another text is searched for in the descriptions
// of objects.
func (c *Console) showSearch(v *visit) (view, error) {
	s := found{Text: v.field("q")}
	is := view{Title: "Search", Still: true}
	if s.Text == "" {
		is.Body = s
		return is, nil
	}
	is.Command = joined("archivist explain", arguments(s.Text))
	x, err := v.api.Explain(v.Context(), s.Text)
	switch {
	case fault.Is(err, fault.Unavailable):
		return is, err
	case err != nil:
		s.Why = err.Error()
	default:
		s.Is = &x
		if page, has := pageOfKind[x.Kind]; has {
			to := page + url.PathEscape(x.ID)
			if x.Kind == "Object" {
				to = pageOfObject(x.ID)
			}
			redirect(v, to)
			return is, errAnswered
		}
		if page := subjectPage(x.Kind, x.ID); page != "" {
			redirect(v, page)
			return is, errAnswered
		}
	}

	if to, err := v.feedAt(s.Text); err != nil || to != "" {
		if to != "" {
			redirect(v, to)
			err = errAnswered
		}
		return is, err
	}

	all, err := v.api.Search(v.Context(), s.Text, v1.ByRelevance, mostFound)
	s.Objects, s.Total = all.Items, all.Total
	if err != nil {
		s.NoIndex = err.Error()
	}
	if !strings.ContainsAny(s.Text, "\r\n") && v.reads() {
		s.Lists = []need{
			{What: "Jobs with this local id", To: "jobs?" + query("localId", s.Text)},
			{What: "Jobs whose message has this text", To: "jobs?" + query("message", s.Text)},
			{What: "Batches of this submitter", To: "batches?" + query("submitter", s.Text)},
			{What: "Batches of this collection", To: "batches?" + query("collection", s.Text)}}
		if aName.MatchString(s.Text) { // whether there is one costs more calls than the page may take
			s.Lists = append(s.Lists, need{What: "The collection of this name, if there is one",
				To: "collections/" + s.Text})
		}
	}
	is.Title, is.Body = "Search: "+cut(s.Text), s
	return is, nil
}
