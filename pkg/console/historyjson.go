package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// histories are the pages that show events, by their paths below /console/: what follows their
// path in the API, where the events are. Each page has them as JSON, too, at its own path with
// historyFile after it.
var histories = map[string]string{
	"acts":                              "",
	"events":                            "",
	"batches/{id}":                      "/events",
	"jobs/{id}":                         "/events",
	"objects/{naan}/{name}":             "/history",
	"collections/{id}":                  "/events",
	"operations/{id}":                   "/events",
	"consumers/{name}":                  "/events",
	"components/{name}":                 "/events",
	"research/{project}":                "/events",
	"research/{project}/episodes/{key}": "/events",
	"research/{project}/clips/{key}":    "/events",
	"archives/{name}":                   "/events",
	"archives/{name}/revisions/{n}":     "/events",
	"task":                              "/events",
}

const historyFile = "/history.json"

// The bounds of a file of events.
const (
	mostHistory      = 1000 // events, and what is more on the last page that was read
	mostHistoryPages = 20
)

// history is a file of events, as the API lists them.
type history struct {
	Items []json.RawMessage `json:"items"`
	// Cursor and More say that there are more events, and how to get them.
	Cursor string `json:"cursor,omitempty"`
	More   string `json:"more,omitempty"`
	// Incomplete and Others say what a list of all logs does not have.
	Incomplete string `json:"incomplete,omitempty"`
	Others     int    `json:"others,omitempty"`
}

// historyJSON answers with the events of a page as a file. It begins where the page does, and is
// bounded: it says if there are more.
func (c *Console) historyJSON(v *visit, after string) error {
	page := strings.TrimSuffix(below(v.URL.EscapedPath()), historyFile)
	q := v.URL.Query()
	out := history{Items: []json.RawMessage{}}
	for pages := 1; ; pages++ {
		one, err := call[history](v, http.MethodGet, "/v1/"+page+after+"?"+q.Encode(), nil, "")
		if err != nil {
			return err
		}
		out.Items = append(out.Items, one.Items...)
		out.Incomplete, out.Others = one.Incomplete, one.Others
		q.Set("cursor", one.Cursor)
		if one.Cursor == "" {
			break
		}
		if len(out.Items) >= mostHistory || pages == mostHistoryPages {
			out.Cursor = one.Cursor
			out.More = "There are more events. Go on with: " +
				strings.TrimPrefix(below(v.URL.Path), "/") + "?" + q.Encode()
			break
		}
	}
	body, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	name := strings.NewReplacer("/", "-", "%", "-").Replace(page) + ".json"
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(name))
	write(v.w, v.Request, http.StatusOK, append(body, '\n'))
	return nil
}

// History is where the events of the page are as a file: what its address selects, from the cursor
// on that it has.
func (f frame) History() string {
	q := url.Values{}
	for name, values := range f.v.URL.Query() {
		switch name {
		case "version":
		case "events", "history": // cursors of these lists
			q["cursor"] = values
		case "id", "subject", "collection", "filter", "actor", "before", "cursor":
			q[name] = values
		}
	}
	at := f.Base + below(f.v.URL.EscapedPath()) + historyFile
	if len(q) == 0 {
		return at
	}
	return at + "?" + q.Encode()
}
