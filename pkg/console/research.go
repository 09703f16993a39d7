package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// showProjects lists the research projects.
func (c *Console) showProjects(v *visit) (view, error) {
	all, err := v.api.ResearchProjects(v.Context())
	return view{Title: "Research", Body: all, Command: "archivist research list",
		Said: terminal.Count(len(all), "project") + "."}, err
}

// project is the page of a research project.
type project struct {
	v1.ResearchProject
	Status      v1.ResearchStatus
	Researchers []memberRow
	Leases      []leaseRow
	MoreLeases  string // the address of more of them
	Differences []differenceRow
	Reviews     []v1.ResearchUnreviewed
	MoreReviews string // the address of more of them
	Deeds       []deedOffer
	Events      []v1.Event
	Older       string
}

// memberRow is a researcher who is present; Resume is the address of the form that gives one work again.
type memberRow struct {
	v1.Researcher
	Pause  *v1.ResearchPause
	Resume string
}

// leaseRow is a lease that has not ended.
type leaseRow struct {
	v1.ResearchLease
	Revoke string // "" = it cannot
}

// differenceRow is a pair whose results differ.
type differenceRow struct {
	v1.ResearchDifference
	Take    []resultRow
	Another string
}

// resultRow is a result of which one can be chosen.
type resultRow struct {
	v1.ResearchResult
	Take string
}

// showProject shows how far a project is, who is at work, and what needs a person.
func (c *Console) showProject(v *visit) (view, error) {
	name := v.PathValue("project")
	one, err := v.api.ResearchProject(v.Context(), name)
	if err != nil {
		return view{}, err
	}
	p := project{ResearchProject: one}
	if p.Status, err = v.api.ResearchStatus(v.Context(), name); err != nil {
		return view{}, err
	}
	state := "runs"
	if one.Paused != "" {
		state = "paused"
	}
	p.Deeds = v.deedsOn("project", []string{state}, name)
	if err := p.present(v, name); err != nil {
		return view{}, err
	}
	p.differ(v, name)
	if one.Review {
		reviews, err := pageOf[v1.ResearchUnreviewed](v, parts("research", name, "reviews"),
			v.field("reviews"))
		if err != nil {
			return view{}, err
		}
		p.Reviews, p.MoreReviews = reviews.Items, v.more("reviews", reviews.Cursor)
	}
	log, err := pageOf[v1.Event](v, parts("research", name, "events"), v.field("events"))
	p.Events, p.Older = log.Items, v.more("events", log.Cursor)
	n := p.Status.Coverage
	return view{Title: "Research project " + name, Body: p, Moving: p.Status.Leases > 0,
		Command: "archivist research status " + quoted(name),
		Said:    number(n.Researched) + " of " + number(n.Pairs) + " pairs are researched."}, err
}

// present adds who is at work, and on what.
func (p *project) present(v *visit, name string) error {
	members, err := v.api.Researchers(v.Context(), name)
	if err != nil {
		return err
	}
	for _, m := range members {
		row := memberRow{Researcher: m}
		for i, x := range p.Status.Pauses {
			if x.Researcher == m.Name {
				row.Pause = &p.Status.Pauses[i]
				row.Resume = v.deedAt("project", "resume-one", []string{name}, "researcher", m.Name)
			}
		}
		p.Researchers = append(p.Researchers, row)
	}
	leases, err := pageOf[v1.ResearchLease](v, parts("research", name, "leases"), v.field("leases"))
	for _, l := range leases.Items {
		p.Leases = append(p.Leases, leaseRow{l, v.deedAt("lease", "revoke", []string{name, l.ID})})
	}
	p.MoreLeases = v.more("leases", leases.Cursor)
	return err
}

// differ adds the pairs whose results differ, with what a person can decide.
func (p *project) differ(v *visit, name string) {
	for _, d := range p.Status.Differences {
		row := differenceRow{ResearchDifference: d}
		if d.Damage == "" { // else nobody can decide, before it is restored
			row.Another = v.deedAt("project", "another", []string{name}, "episode", d.Episode, "clip", d.Clip)
		}
		for _, r := range d.Results {
			row.Take = append(row.Take, resultRow{r, v.deedAt("project", "decide", []string{name},
				"episode", d.Episode, "clip", d.Clip, "lease", r.Lease)})
		}
		p.Differences = append(p.Differences, row)
	}
}

// What a person has said of a place, as results have it.
const (
	accepted   = "accepted"
	rejected   = "rejected"
	unreviewed = "waits"
)

// recording is the page of an episode or a clip.
type recording struct {
	v1.ResearchMedia
	Project string
	Of      string // episodes or clips
	Hits    []hit
	Results []v1.ResearchResult
	More    string // the address of more results
	Play    string // what the player plays; "" = it cannot
	At      string // where it begins, for people
	Length  int64  // of the recording, in nanoseconds; if that is not known, the end of the last hit
	Wave    string // a path: a line for each part of the waveform; "" = it is not known
	Minutes []string
	Reviews bool // the project asks a person about each place
	Waiting int  // of the places that are shown: they wait for a person
	Deeds   []deedOffer
	Events  []v1.Event
	Older   string
}

// hit is a place where a clip occurs, in an episode.
type hit struct {
	v1.ResearchHit
	Clip, Episode, Lease string
	Listen               string // the address of the page with a player that starts there; "" = it cannot
	X, Width             string // of the mark, in thousandths of the length
	Review               string // what a person has said of it; "" = nobody is asked
	Accept, Reject       string // the addresses of forms; "" = it cannot, or is so already
}

// showRecording shows an episode or a clip with the places that were found, and a player that starts at one.
func (c *Console) showRecording(v *visit, of string) (view, error) {
	name, key := v.PathValue("project"), v.PathValue("key")
	one, err := v.api.ResearchMediaOf(v.Context(), name, of, key)
	if err != nil {
		return view{}, err
	}
	r := recording{ResearchMedia: one, Project: name, Of: of,
		Deeds: v.deedsOn(strings.TrimSuffix(of, "s"), []string{one.State}, name, key)}
	results, err := pageOf[v1.ResearchResult](v, parts("research", name, of, key, "results"),
		v.field("cursor"))
	if err != nil {
		return view{}, err
	}
	r.Results, r.More = results.Items, v.more("cursor", results.Cursor)
	if err := r.player(v); err != nil {
		return view{}, err
	}
	r.hits(v)
	log, err := pageOf[v1.Event](v, parts("research", name, of, key, "events"), v.field("events"))
	r.Events, r.Older = log.Items, v.more("events", log.Cursor)
	what := strings.TrimSuffix(of, "s")
	return view{Title: title(what) + " " + cmp.Or(cut(one.Title), key), Body: r, Still: r.At != "",
		Command: "archivist research " + of + " show" + arguments(name, key),
		Said:    terminal.Count(len(r.Hits), "place") + " found."}, err
}

// showEpisode shows an episode.
func (c *Console) showEpisode(v *visit) (view, error) { return c.showRecording(v, v1.Episodes) }

// showClip shows a clip.
func (c *Console) showClip(v *visit) (view, error) { return c.showRecording(v, v1.Clips) }

// player lets the browser play the recording from where it is published, from the time in the
// address on. Any host may send media to this page: most publishers lead to another one, which the
// browser checks, too, and which nobody knows before. Only the markup of this page says what is
// played, and media run no script.
func (r *recording) player(v *visit) error {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil
	}
	u.Fragment = ""
	r.Play = u.String()
	h := v.w.Header()
	media := "https:"
	if u.Scheme == "http" {
		media = "http: https:"
	}
	h.Set("Content-Security-Policy", policy+"; media-src "+media)
	text := v.field("at")
	if text == "" {
		return nil
	}
	at, err := strconv.ParseInt(text, 10, 64)
	if err != nil || at < 0 {
		return fault.New(fault.Invalid, "at: found %q; expected nanoseconds from the begin",
			cut(text))
	}
	r.At = clock(at)
	r.Play += fmt.Sprintf("#t=%d.%03d", at/1e9, at%1e9/1e6)
	return nil
}

// hits collects the places that results have, and where they are marked.
func (r *recording) hits(v *visit) {
	for _, x := range r.Results {
		for n, h := range x.Hits {
			one := hit{ResearchHit: h, Clip: x.Clip, Episode: x.Episode, Lease: x.Lease}
			if r.Play != "" && r.Of == v1.Episodes {
				one.Listen = "?" + query("at", strconv.FormatInt(h.Offset, 10)) + "#player"
			}
			if n < len(x.Reviews) {
				r.review(v, &one, x, n)
			}
			r.Length = max(r.Length, h.Offset+h.Length)
			r.Hits = append(r.Hits, one)
		}
	}
	r.draw()
	if r.Of == v1.Episodes {
		slices.SortStableFunc(r.Hits, func(a, b hit) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		h.X = strconv.FormatInt(h.Offset*1000/max(r.Length, 1), 10)
		h.Width = strconv.FormatInt(max(h.Length*1000/max(r.Length, 1), 2), 10)
	}
}

// waveHeight is the height of a waveform, in units of its own; its width is 1,000.
const waveHeight = 100

// draw makes the lines of the waveform, and the times below it. The loudest part has the whole
// height, so that a quiet recording is seen, too.
func (r *recording) draw() {
	if r.Waveform == nil {
		return
	}
	r.Length = max(r.Length, r.Waveform.Length)
	peaks := r.Waveform.Peaks
	most := max(int(slices.Max(peaks)), 1)
	each := 1000 * float64(r.Waveform.Length) / float64(r.Length) / float64(len(peaks))
	var path strings.Builder
	for i, p := range peaks {
		h := max(int(p)*waveHeight/most, 2)
		fmt.Fprintf(&path, "M%d %dv%d", int(float64(i)*each), (waveHeight-h)/2, h)
	}
	r.Wave = path.String()
	for n := range 5 {
		at := clock(r.Length / 4 * int64(n) / 1e9 * 1e9)
		r.Minutes = append(r.Minutes, strings.TrimSuffix(at, ".0"))
	}
}

// review adds what a person has said of a place, and what can be said of it now. n is its number in
// the result, from 0.
func (r *recording) review(v *visit, h *hit, x v1.ResearchResult, n int) {
	h.Review, r.Reviews = x.Reviews[n], true
	values := []string{"episode", x.Episode, "clip", x.Clip, "lease", x.Lease, "hit",
		strconv.Itoa(n + 1)}
	if h.Review == unreviewed {
		r.Waiting++
	} else {
		values = append(values, "change", "true")
	}
	ids := []string{r.Project, x.Episode}
	if h.Review != accepted {
		h.Accept = v.deedAt("episode", "accept", ids, values...)
	}
	if h.Review != rejected {
		h.Reject = v.deedAt("episode", "reject", ids, values...)
	}
}

// labels answers with the places of an episode as a file: labels of Audacity, a track of captions, or a table.
func (c *Console) labels(v *visit) error {
	format := v.field("format")
	if _, known := v1.OffsetsMedia[format]; !known {
		return fault.New(fault.Invalid, "format: found %q; expected csv, webvtt or audacity",
			cut(format))
	}
	project, episode := v.PathValue("project"), v.PathValue("key")
	if _, err := v.api.ResearchMediaOf(v.Context(), project, v1.Episodes, episode); err != nil {
		return err
	}
	return v.places(project, episode, format, mostLabels)
}

// offsets answers with the places of all episodes of a project as a table.
func (c *Console) offsets(v *visit) error {
	project := v.PathValue("project")
	if _, err := v.api.ResearchProject(v.Context(), project); err != nil {
		return err
	}
	return v.places(project, "", v1.OffsetsCSV, mostPlaces)
}

// places answers with the places of an episode, or with "" of all, in a format. More than most are refused, with the
// command that has no bound.
func (v *visit) places(project, episode, format string, most int) error {
	command := "archivist research export " + quoted(project)
	if episode != "" {
		command += " --episode " + quoted(episode)
	}
	var all []v1.ResearchOffset
	_, err := v.api.ResearchOffsets(v.Context(), project, episode, func(o v1.ResearchOffset) error {
		all = append(all, o)
		if len(all) > most {
			return fault.New(fault.Invalid, "there are more than %d places; export them by %s", most, command)
		}
		return nil
	})
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", v1.OffsetsMedia[format])
	h.Set("Content-Disposition", `attachment; filename="labels.`+extensions[format]+`"`)
	return v1.WriteOffsets(v.w, format, true, all)
}

// mostPlaces bounds the places of all episodes in a file: they are read while somebody waits.
const mostPlaces = 5000

// mostLabels bounds the places of a file.
const mostLabels = 30_000

// extensions are the ends of names of files.
var extensions = map[string]string{v1.OffsetsCSV: "csv", v1.OffsetsWebVTT: "vtt",
	v1.OffsetsAudacity: "txt"}
