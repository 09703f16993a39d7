package status

import (
	"context"
	"fmt"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// research is what researchers have found that waits for a person, of each project.
func (s *Service) research(ctx context.Context, out *section) error {
	if s.Research == nil || len(s.Research.Projects) == 0 {
		out.State, out.Summary = v1.SectionAbsent, "this deployment has no research projects"
		return nil
	}

	all, unread, err := s.Research.Decisions(ctx)
	if err != nil {
		return err
	}
	out.cut(unread > 0, "%s not read", ingest.Counted(unread, "more project"))
	differ, places := int64(0), int64(0)
	for _, p := range all {
		if p.Paused != "" {
			out.add(v1.StatusLine{Text: p.Project + " is paused, " + ingest.Cut(p.Paused, 300),
				Count: 1, Command: "archivist research status " + p.Project})
		}
		differ, places = differ+p.Differ, places+p.Unreviewed
		if p.Differ > 0 {
			out.add(v1.StatusLine{Text: p.Project + ": pairs of which the results of " +
				"researchers differ, so that a person has to decide", Attention: true,
				Count: p.Differ, Command: "archivist research differences " + p.Project})
		}
		if p.Unreviewed > 0 {
			out.add(v1.StatusLine{Text: p.Project + ": places that researchers have found, and " +
				"a person has to accept or reject", Attention: true, Count: p.Unreviewed,
				Command: "archivist research reviews " + p.Project})
		}
	}
	out.Summary = fmt.Sprintf("%s, %s to review, %s", ingest.Counted(len(all), "project"),
		ingest.Counted(places, "place"), ingest.Counted(differ, "pair")+" to decide on")
	return nil
}
