package research

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// Project is a set of episodes, a set of clips, and how each pair is researched, as it is
// configured in JSON or YAML. Zero values are defaults, which Check sets. Its fields are those of
// v1.ResearchDefinition.
type Project struct {
	Name        string   `json:"name"` // as Names; one that the deployment has a queue for
	Description string   `json:"description,omitempty"`
	Analysis    Analysis `json:"analysis"`
	MaxClips    int      `json:"maxClips,omitempty"` // of one work item; default MaxMaxClips
	Quorum      int      `json:"quorum,omitempty"`   // researchers that have to agree on a pair; 0 and 1: one is enough
	Review      bool     `json:"review,omitempty"`   // a person accepts or rejects each place that is found
	Feeds       []Feed   `json:"feeds,omitempty"`
}

// Analysis is what researchers do with a pair. Another name or version makes a new set of pairs:
// all are due again, and the earlier results stay. The settings of a version never change.
type Analysis = v1.ResearchAnalysis

// Feed is a podcast feed (RSS or Atom) whose entries are episodes or clips.
type Feed = v1.ResearchFeed

// settingsOf are the settings of an analysis as JSON, nil if it has none: the same for the same settings.
func settingsOf(a Analysis) []byte {
	if len(a.Settings) == 0 {
		return nil
	}
	text, _ := json.Marshal(a.Settings) // cannot fail: they were JSON
	return text
}

// versions are the versions of analyses.
var versions = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,29}$`)

// Check sets the defaults, and returns an Invalid for what cannot be run. It does not know whether
// the deployment has the project and the analysis; Store.Apply does.
func (p *Project) Check() error {
	p.MaxClips = cmp.Or(p.MaxClips, MaxMaxClips)
	switch {
	case !Names.MatchString(p.Name):
		return fault.New(fault.Invalid,
			"name: found %q; expected lower-case letters, digits and hyphens, at most 40, "+
				"beginning with a letter", definition.Clip(p.Name, 60))
	case !Names.MatchString(p.Analysis.Name):
		return fault.New(fault.Invalid, "analysis.name: found %q; expected the name of an analysis",
			definition.Clip(p.Analysis.Name, 60))
	case !versions.MatchString(p.Analysis.Version):
		return fault.New(fault.Invalid,
			"analysis.version: found %q; expected letters, digits, dots and hyphens, at "+
				"most 30", definition.Clip(p.Analysis.Version, 60))
	case len(p.Feeds) > MaxFeeds:
		return fault.New(fault.Invalid, "feeds: found %d; at most %d are possible", len(p.Feeds), MaxFeeds)
	}

	err := cmp.Or(definition.CheckDescription(p.Description),
		definition.Within("maxClips", p.MaxClips, 1, MaxMaxClips),
		definition.Within("quorum", p.Quorum, 0, MaxQuorum))
	if p.Quorum == 1 {
		p.Quorum = 0 // as it is stored
	}
	for i := range p.Feeds {
		err = cmp.Or(err, checkFeed(&p.Feeds[i], fmt.Sprintf("feeds[%d]", i)))
	}
	return err
}

// checkFeed sets the default, and checks a feed. field is its name in the definition, e.g. "feeds[0]",
// for errors.
func checkFeed(f *Feed, field string) error {
	f.EveryMinutes = cmp.Or(f.EveryMinutes, 60)
	err := cmp.Or(definition.Choice(field+".kind", f.Kind, string(Episode), string(Clip)),
		definition.Within(field+".everyMinutes", f.EveryMinutes, 5, 7*24*60),
		printable(field+".source", f.Source))
	if err != nil {
		return err
	}

	if f.Source == "" {
		return fault.New(fault.Invalid,
			"%s.source is missing; it is part of the identity of each entry", field)
	}

	if Curated.checkRecording(Curated{URL: f.URL}) != nil {
		return fault.New(fault.Invalid,
			"%s.url: found %q; expected an http or https address without a password", field,
			definition.Clip(f.URL, 100))
	}
	return nil
}
