package research

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// ProjectState is a project as it stands.
type ProjectState struct {
	Project
	Generation int64  // of the analysis
	Paused     string // why no work is assigned, or ""
}

// Project returns a project; a NotFound if it was not applied yet.
func (s *Store) Project(ctx context.Context, name string) (ProjectState, error) {
	r, err := s.projectRow(ctx, name)
	if err != nil {
		return ProjectState{}, err
	}
	return ProjectState{Project: r.def, Generation: r.Generation, Paused: r.Paused}, nil
}

// Apply makes a project, or changes it. A project that is as it is asked for is left alone. It
// returns an Invalid for a definition that cannot be run, or that changes the settings of an
// analysis without another version; an Unavailable if others keep changing the project.
//
// Projects are changed here and in setPaused without Store.change: nothing else belongs to these
// changes than the project's row, its event, and rows of counts.
func (s *Store) Apply(ctx context.Context, p Project, by By) error {
	err := p.Check()
	if err != nil {
		return err
	}

	// The queue of a project is made by the deployment, which alone can compare its time to live
	// with the lease.
	if !slices.Contains(s.Projects, p.Name) {
		return fault.New(fault.Invalid,
			"name: this deployment has no queue for the project %q, only for %s; deploy "+
				"with the setting researchProjects", p.Name,
			cmp.Or(strings.Join(s.Projects, ", "), "none"))
	}

	// Settings are checked here, not by the researchers, who would find out only after they have
	// downloaded an episode, each of them.
	check, ok := s.Analyses[p.Analysis.Name]
	if !ok {
		return fault.New(fault.Invalid, "analysis.name: there is no analysis %q", p.Analysis.Name)
	}

	err = check(settingsOf(p.Analysis))
	if err != nil {
		return err
	}

	err = s.Table.Again(ctx, "project "+p.Name, func() error { return s.tryApply(ctx, p, by) })
	if err != nil {
		return err
	}
	s.wake(ctx, p.Name)
	return nil
}

// tryApply is one try of Apply. A Stale means that another change of the project was first.
func (s *Store) tryApply(ctx context.Context, p Project, by By) error {
	row, err := s.projectRow(ctx, p.Name)
	if fault.Is(err, fault.NotFound) {
		k := subject(event.ResearchProject, p.Name).Key()
		row, err = &projectRow{Head: table.Head{
			PK:     k.PK,
			SK:     k.SK,
			ListPK: projectList,
			ListSK: p.Name,
		},
			Name: p.Name}, nil
	}

	if err != nil {
		return err
	}

	if done, err := row.Requests.Done(by); done || err != nil {
		return err
	}

	// Compared is the text with its defaults, as Check has set them: to write a default out changes
	// nothing.
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if row.Text == string(text) {
		return registry.Note(ctx, s.Table, s.NewID(), row, &row.Requests, by)
	}

	tx := s.Table.Begin(s.NewID())
	err = row.analyse(tx, p)
	if err != nil {
		return err
	}

	var before any // nil for a new project
	if row.Rev > 0 {
		before = row.def
	}

	row.Text, row.def, row.Requests = string(text), p, row.Requests.With(by)
	row.Number++
	tx.InsertOrSave(row)
	err = event.Append(tx, subject(event.ResearchProject, p.Name), row.Number, event.New{
		Type:      "project.applied",
		Time:      s.now(),
		Actor:     by.Actor,
		Component: by.Component,
		Detail:    Applied{p, row.Generation},
		Before:    before,
		After:     p,
	})
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// analyse begins a new generation if the analysis is another. Its pairs are all due: the catalog counts
// as grown, so the walk looks at every closed episode again. The rows of counts of a generation are made
// here, because what counts adds to rows that exist.
func (r *projectRow) analyse(tx *table.Tx, p Project) error {
	name := p.Analysis.String()
	switch {
	case r.Rev > 0 && r.def.Analysis.String() == name:
		if !bytes.Equal(settingsOf(r.def.Analysis), settingsOf(p.Analysis)) {
			return fault.New(fault.Invalid,
				"analysis.settings: those of %s cannot be changed, because its results "+
					"would not go together; give the analysis another version", name)
		}
		if r.def.quorum() != p.quorum() {
			return fault.New(fault.Invalid, "quorum: that of %s cannot be changed, because its results would not "+
				"count alike; give the analysis another version", name)
		}
		if r.def.Review != p.Review {
			return fault.New(fault.Invalid,
				"review: that of %s cannot be changed, because nobody would have "+
					"reviewed its earlier results; give the analysis another version", name)
		}
		return nil
	case slices.Contains(r.Past, name): // the place of a name in Past is its generation (change.insert)
		return fault.New(fault.Invalid,
			"analysis.version: this project had %s before; give the analysis a new version", name)
	case len(r.Past) >= MaxAnalyses:
		return fault.New(fault.Invalid,
			"analysis: a project can have %d analyses; make another project", MaxAnalyses)
	}

	first := r.Generation == 0
	r.Past = append(r.Past, name)
	r.Generation++
	r.Catalog++
	r.Grown = r.Catalog
	for shard := range uint32(countShards) {
		if first {
			k := placesKey(p.Name, shard)
			tx.Insert(&placesRow{Head: newHead(k)})
		}
		k := generationKey(p.Name, r.Generation, shard)
		tx.Insert(&generationRow{Head: newHead(k)})
	}
	return nil
}

// Pause stops assigning work of a project; what is assigned goes on, and results are stored. Pausing a paused project
// changes nothing. It is an Invalid without a reason.
func (s *Store) Pause(ctx context.Context, name string, by By) error {
	return s.setPaused(ctx, name, "project.paused", by.Actor+": "+by.Reason, by)
}

// Resume assigns work again. Of a project that is not paused it changes nothing. It is an Invalid without a reason.
func (s *Store) Resume(ctx context.Context, name string, by By) error {
	err := s.setPaused(ctx, name, "project.resumed", "", by)
	if err != nil {
		return err
	}
	s.wake(ctx, name)
	return nil
}

// setPaused pauses a project, with who did it and why, or resumes it if why is "".
func (s *Store) setPaused(ctx context.Context, name, eventType, why string, by By) error {
	err := by.Check()
	if err != nil {
		return err
	}
	return s.Table.Again(ctx, "project "+name, func() error { return s.trySetPaused(ctx, name, eventType, why, by) })
}

// trySetPaused is one try of setPaused. A Stale means that another change of the project was first.
func (s *Store) trySetPaused(ctx context.Context, name, eventType, why string, by By) error {
	row, err := s.projectRow(ctx, name)
	if err != nil {
		return err
	}

	if done, err := row.Requests.Done(by); done || err != nil {
		return err
	}
	if (row.Paused == "") == (why == "") {
		return registry.Note(ctx, s.Table, s.NewID(), row, &row.Requests, by)
	}

	row.Paused, row.Requests = why, row.Requests.With(by)
	row.Number++
	tx := s.Table.Begin(s.NewID())
	tx.Save(row)
	err = event.Append(tx, subject(event.ResearchProject, name), row.Number, event.New{
		Type:      eventType,
		Time:      s.now(),
		Actor:     by.Actor,
		Component: by.Component,
		Detail:    Because{by.Reason},
	})
	if err != nil {
		return err
	}
	return tx.Commit(ctx)
}
