package console

import (
	"net/url"
	"slices"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/terminal"
)

// feeds is the page of the feeds of a research project.
type feeds struct {
	Project string
	Items   []v1.ResearchFeedState
}

// showFeeds shows the feeds of a project: when each is looked at, what it has, and why a look
// failed.
func (c *Console) showFeeds(v *visit) (view, error) {
	f := feeds{Project: v.PathValue("project")}
	all, err := v.api.ResearchFeeds(v.Context(), f.Project)
	f.Items = all
	looking := slices.ContainsFunc(all, func(x v1.ResearchFeedState) bool { return x.Looking })
	failing := 0
	for _, x := range all {
		if x.Failures > 0 || x.Gone {
			failing++
		}
	}
	return view{Title: "Feeds of " + f.Project, Body: f, Moving: looking,
		Command: "archivist research feeds list " + quoted(f.Project),
		Said:    terminal.Count(len(all), "feed") + ", " + number(failing) + " of them failing."}, err
}

// feedAt is the place of a feed on the page of its project, below /console/; "" if the text is
// neither the address nor the key of one. A deployment names its projects, so there are few to
// look at; the definition of a project has the addresses of its feeds, and only keys have to be
// asked for. Who may not read projects finds none.
func (v *visit) feedAt(text string) (string, error) {
	isAddress := hasHost(text)
	if !v.may(access.Viewer) || !isAddress && !isKey(text) {
		return "", nil
	}
	projects, err := v.api.ResearchProjects(v.Context())
	for _, p := range projects {
		has := slices.ContainsFunc(p.Feeds, func(f v1.ResearchFeed) bool { return f.URL == text })
		if len(p.Feeds) == 0 || isAddress && !has {
			continue
		}
		if at, err := v.feedOf(p.Name, text); at != "" || err != nil {
			return at, err
		}
	}
	return "", err
}

// feedOf is the place of a feed of a project; "" if it has none of that address or key.
func (v *visit) feedOf(project, text string) (string, error) {
	all, err := v.api.ResearchFeeds(v.Context(), project)
	i := slices.IndexFunc(all, func(f v1.ResearchFeedState) bool {
		return f.Key == text || f.URL == text
	})
	if err != nil || i < 0 {
		return "", err
	}
	return "research/" + url.PathEscape(project) + "/feeds#feed-" + all[i].Key, nil
}

// hasHost reports whether a text is the address of something elsewhere.
func hasHost(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != ""
}

// isKey reports whether a text has the form of the key of a recording or a feed.
func isKey(text string) bool {
	if len(text) != 24 {
		return false
	}
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < '2' || r > '7') {
			return false
		}
	}
	return true
}
