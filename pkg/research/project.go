package research

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"archivist/pkg/definition"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Project is a set of episodes, a set of clips, and how each pair is researched, as it is configured in
// JSON or YAML. Zero values are defaults, which Check sets.
type Project struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Analysis    Analysis `json:"analysis"`
	MaxClips    int      `json:"maxClips,omitempty"` // clips of one work item
	Feeds       []Feed   `json:"feeds,omitempty"`
}

// Analysis is what researchers do with a pair. Another name or version makes a new set of pairs: all are
// due again, and the earlier results stay. The settings of a version never change.
type Analysis struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

// String names the analysis, as results do: "name@version".
func (a Analysis) String() string { return a.Name + "@" + a.Version }

// Feed is a podcast feed (RSS or Atom) whose entries are episodes or clips.
type Feed struct {
	URL    string `json:"url"`
	Source string `json:"source"` // of its entries
	Kind   Kind   `json:"kind"`
	Every  int    `json:"everyMinutes,omitempty"`
}

// versions are the versions of analyses.
var versions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,29}$`)

// Check sets the defaults, and returns an Invalid for what cannot be run.
func (p *Project) Check() error {
	p.MaxClips = cmp.Or(p.MaxClips, MaxMaxClips)
	if len(p.Analysis.Settings) > 0 { // as they are stored: without spaces
		settings, err := json.Marshal(p.Analysis.Settings)
		if err != nil {
			return fault.New(fault.Invalid, "analysis.settings: %w", err)
		}
		p.Analysis.Settings = settings
	}
	switch {
	case !Names.MatchString(p.Name):
		return fault.New(fault.Invalid, "name: found %q; expected lower-case letters, digits and hyphens, at most 40, "+
			"beginning with a letter", definition.Clip(p.Name, 60))
	case utf8.RuneCountInString(p.Description) > 1000:
		return fault.New(fault.Invalid, "description has more than 1000 characters")
	case !Names.MatchString(p.Analysis.Name):
		return fault.New(fault.Invalid, "analysis.name: found %q; expected the name of an analysis",
			definition.Clip(p.Analysis.Name, 60))
	case !versions.MatchString(p.Analysis.Version):
		return fault.New(fault.Invalid, "analysis.version: found %q; expected letters, digits, dots and hyphens, at "+
			"most 30", definition.Clip(p.Analysis.Version, 60))
	case len(p.Feeds) > MaxFeeds:
		return fault.New(fault.Invalid, "feeds: found %d; at most %d are possible", len(p.Feeds), MaxFeeds)
	}
	err := definition.Within("maxClips", p.MaxClips, 1, MaxMaxClips)
	for i := range p.Feeds {
		err = cmp.Or(err, p.Feeds[i].check(fmt.Sprintf("feeds[%d]", i)))
	}
	return err
}

// check sets the default, and checks a feed.
func (f *Feed) check(field string) error {
	f.Every = cmp.Or(f.Every, 60)
	_, err := json.Marshal(f)
	err = cmp.Or(err, definition.Choice(field+".kind", string(f.Kind), string(Episode), string(Clip)))
	err = cmp.Or(err, definition.Within(field+".everyMinutes", f.Every, 5, 7*24*60))
	err = cmp.Or(err, printable(field+".source", f.Source))
	if err == nil && f.Source == "" {
		err = fault.New(fault.Invalid, "%s.source is missing; it is part of the identity of each entry", field)
	}
	if err == nil && Curated.checkRecording(Curated{URL: f.URL}) != nil {
		err = fault.New(fault.Invalid, "%s.url: found %q; expected an http or https address without a password", field,
			definition.Clip(f.URL, 100))
	}
	return err
}

// projectRow is the row of a project.
type projectRow struct {
	table.Head
	Name    string   `dynamo:"project_name"`
	Number  int64    `dynamo:"version"` // of its events
	Text    string   `dynamo:"project_json"`
	Round   int64    `dynamo:"round_no"`         // of the analysis; each has pairs of its own
	Past    []string `dynamo:"analyses"`         // all, the present one is the last
	Catalog int64    `dynamo:"catalog_no"`       // of the newest change of the clips
	Grown   int64    `dynamo:"grown_no"`         // of the newest by which pairs may have become due
	Shrunk  int64    `dynamo:"shrunk_no"`        // of the newest by which a clip went away
	Numbers int64    `dynamo:"numbers"`          // that clips have
	Recount int64    `dynamo:"recount_ms"`       // when the counts of all episodes became out of date
	Paused  string   `dynamo:"paused,omitempty"` // why no work is assigned

	def Project
}

// grown is the number since when no pair has become due, other than by the end of a lease.
func (r *projectRow) grown() int64 { return cmp.Or(r.Grown, r.Catalog) } // rows of earlier versions have only this

// projectList is the list of projects.
const projectList = "RESEARCHPROJECTS"

func subject(t event.Type, id string) event.Subject { return event.Subject{Type: t, ID: id} }

// ProjectState is a project as it stands.
type ProjectState struct {
	Project
	Round  int64  // of the analysis
	Paused string // why no work is assigned, or ""
}

// Project returns a project.
func (s *Store) Project(ctx context.Context, name string) (ProjectState, error) {
	r, err := s.projectRow(ctx, name)
	if err != nil {
		return ProjectState{}, err
	}
	return ProjectState{Project: r.def, Round: r.Round, Paused: r.Paused}, nil
}

// Applied is the detail of project.applied: the project as it was configured.
type Applied struct {
	Project Project `json:"project"`
	Round   int64   `json:"round"`
}

// Apply makes a project, or changes it. A project that is as it is asked for is left alone.
func (s *Store) Apply(ctx context.Context, p Project, by By) error {
	err := p.Check()
	if err != nil {
		return err
	}
	if !slices.Contains(s.Projects, p.Name) {
		return fault.New(fault.Invalid, "name: this deployment has no queue for the project %q, only for %s; deploy "+
			"with the setting researchProjects", p.Name, cmp.Or(strings.Join(s.Projects, ", "), "none"))
	}
	check, ok := s.Analyses[p.Analysis.Name]
	if !ok {
		return fault.New(fault.Invalid, "analysis.name: there is no analysis %q", p.Analysis.Name)
	}
	err = check(p.Analysis.Settings)
	if err != nil {
		return err
	}
	for range maxTries {
		err = s.tryApply(ctx, p, by)
		if !fault.Is(err, fault.Stale) {
			break
		}
	}
	if err == nil {
		s.wake(ctx, p.Name)
	}
	return err
}

func (s *Store) tryApply(ctx context.Context, p Project, by By) error {
	row, err := s.projectRow(ctx, p.Name)
	if fault.Is(err, fault.NotFound) {
		k := subject(event.ResearchProject, p.Name).Key()
		row, err = &projectRow{Head: table.Head{PK: k.PK, SK: k.SK, ListPK: projectList, ListSK: p.Name},
			Name: p.Name}, nil
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil || row.Text == string(text) {
		return err
	}
	tx := s.Table.Begin(s.NewID())
	err = row.analyse(tx, p)
	if err != nil {
		return err
	}
	var before any
	if row.Rev > 0 {
		before = row.def
	}
	row.Text, row.def = string(text), p
	row.Number++
	tx.InsertOrSave(row)
	err = event.Append(tx, subject(event.ResearchProject, p.Name), row.Number, event.New{Type: "project.applied",
		Time: s.now(), Actor: by.Actor, Component: by.Component, Detail: Applied{p, row.Round}, Before: before,
		After: p})
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// analyse begins a new round if the analysis is another. Its pairs are all due.
func (r *projectRow) analyse(tx *table.Tx, p Project) error {
	name := p.Analysis.String()
	switch {
	case r.Rev > 0 && r.def.Analysis.String() == name:
		if !bytes.Equal(r.def.Analysis.Settings, p.Analysis.Settings) {
			return fault.New(fault.Invalid, "analysis.settings: those of %s cannot be changed, because its results "+
				"would not go together; give the analysis another version", name)
		}
		return nil
	case slices.Contains(r.Past, name):
		return fault.New(fault.Invalid, "analysis.version: this project had %s before; give the analysis a new version",
			name)
	case len(r.Past) >= MaxAnalyses:
		return fault.New(fault.Invalid, "analysis: a project can have %d analyses; make another project", MaxAnalyses)
	}
	first := r.Round == 0
	r.Past = append(r.Past, name)
	r.Round++
	r.Catalog++
	r.Grown = r.Catalog
	for shard := range uint32(countShards) {
		if first {
			k := placesKey(p.Name, shard)
			tx.Insert(&placesRow{Head: newHead(k)})
		}
		k := roundKey(p.Name, r.Round, shard)
		tx.Insert(&roundRow{Head: newHead(k)})
	}
	return nil
}

// Pause stops assigning work of a project; what is assigned goes on.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, "project.paused", by.Actor+": "+by.Reason, by)
}

// Resume assigns work again.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	err := s.setPaused(ctx, name, "project.resumed", "", by)
	if err == nil {
		s.wake(ctx, name)
	}
	return err
}

// Because is the detail of what a person did for a reason.
type Because struct {
	Reason string `json:"reason"`
}

func (s *Store) setPaused(ctx context.Context, name, eventType, why string, by By) error {
	err := checkReason(by)
	if err != nil {
		return err
	}
	for range maxTries {
		err = s.trySetPaused(ctx, name, eventType, why, by)
		if !fault.Is(err, fault.Stale) {
			break
		}
	}
	return err
}

func (s *Store) trySetPaused(ctx context.Context, name, eventType, why string, by By) error {
	row, err := s.projectRow(ctx, name)
	if err != nil {
		return err
	}
	if (row.Paused == "") == (why == "") {
		return fault.New(fault.Conflict, "the project %s is already so: nothing was changed", name)
	}
	row.Paused = why
	row.Number++
	tx := s.Table.Begin(s.NewID())
	tx.Save(row)
	err = event.Append(tx, subject(event.ResearchProject, name), row.Number, event.New{Type: eventType, Time: s.now(),
		Actor: by.Actor, Component: by.Component, Detail: Because{by.Reason}})
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// checkReason requires a reason of a person who acts.
func checkReason(by By) error {
	if strings.TrimSpace(by.Reason) == "" {
		return fault.New(fault.Invalid, "reason is missing; say why")
	}
	if utf8.RuneCountInString(by.Reason) > MaxReason {
		return fault.New(fault.Invalid, "reason has more than %d characters", MaxReason)
	}
	return nil
}
