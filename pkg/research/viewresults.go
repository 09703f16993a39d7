package research

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// setFound lists a result that says something of its clip in the index of the clip: hits or a problem.
// Most results have neither.
func setFound(h *table.Head, r *Report) {
	if r.Clip != "" && (len(r.Hits) > 0 || r.Problem != nil) {
		h.ListPK = foundPK(r.Project, r.Clip)
		h.ListSK = fmt.Sprintf("%s#%s#%s#%06d", r.Analysis, r.Episode, r.Lease, r.Sequence)
	}
}

func foundPK(project, clip string) string { return "RESEARCHFOUND#" + project + "/" + clip }

// ResultsOfClip lists the results of a clip that have hits or a problem, by analysis and episode, at most
// 100 to a page. Results without are found with their episodes. A page costs one query, and one request for
// its rows.
func (s *Store) ResultsOfClip(ctx context.Context, project, clip, cursor string) ([]Result, string, error) {
	return s.found(ctx, project, clip, "", cursor)
}

// found are the results of a clip in the index, of one analysis or of all.
func (s *Store) found(ctx context.Context, project, clip, analysis, cursor string) (all []Result, next string,
	err error) {
	q := table.Query{Index: "list", PK: foundPK(project, clip), Limit: table.MaxGets, Cursor: cursor}
	if analysis != "" {
		q.Prefix = analysis + "#"
	}
	var heads []table.Head
	next, err = s.Table.Page(ctx, q, &heads)
	if err != nil || len(heads) == 0 {
		return nil, next, err
	}
	var at []table.Key
	for _, h := range heads {
		at = append(at, h.Key())
	}
	rows, err := s.Table.Many(ctx, at)
	if err != nil {
		return nil, "", err
	}
	for _, k := range at {
		var row resultRow
		err = rows[k].Decode(&row)
		if err != nil {
			return nil, "", fmt.Errorf("result %s: %w", k, err)
		}
		r, err := row.result()
		if err != nil {
			return nil, "", err
		}
		all = append(all, r)
	}
	return all, next, nil
}

func (r *resultRow) result() (Result, error) {
	out := Result{At: r.At}
	err := json.Unmarshal([]byte(r.Text), &out.Report)
	if err != nil {
		return out, fmt.Errorf("result %s: %w", r.Key(), err)
	}
	return out, nil
}

// Found is a place where a clip occurs, by the present analysis.
type Found struct {
	Hit
	Episode, Clip string // keys
	ClipTitle     string
	At            int64 // when it was stored, in milliseconds since 1970
}

// Bounds of a page of Offsets.
const (
	mostOffsets = 1000
	mostClips   = 50 // each costs a query
)

// Offsets lists the places where clips occur, by the present analysis: of an episode, by clip; of all, by
// the number of the clip and the episode. Of results of a pair of several researchers, all are listed. A page
// costs at most 50 queries.
func (s *Store) Offsets(ctx context.Context, project, episode, cursor string) (all []Found, next string, err error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return nil, "", err
	}
	if episode != "" {
		all, next, err = s.offsetsOfEpisode(ctx, row, episode, cursor)
	} else {
		all, next, err = s.offsetsOfAll(ctx, row, cat, cursor)
	}
	if err != nil {
		return nil, "", err
	}
	return all, next, s.entitle(ctx, row, cat, all)
}

// offsetsOfEpisode are a page of those of an episode. It may be empty without being the last.
func (s *Store) offsetsOfEpisode(ctx context.Context, row *projectRow, episode, cursor string) (all []Found,
	next string, err error) {
	e, err := s.episodeRow(ctx, row.Name, episode)
	if err == nil && e.Rev == 0 {
		err = missing(Episode, row.Name, episode)
	}
	if err != nil {
		return nil, "", err
	}
	var rows []resultRow
	next, err = s.Table.Page(ctx, table.Query{PK: resultsPK(row.Name, episode),
		Prefix: row.def.Analysis.String() + "#", Limit: mostOffsets, Cursor: cursor}, &rows)
	for i := range rows {
		r, failed := rows[i].result()
		if failed != nil {
			return nil, "", failed
		}
		all = append(all, r.offsets()...)
	}
	return all, next, err
}

// offsetsOfAll walks the clips by their numbers. The cursor has the number of the next clip, and the place
// among its results.
func (s *Store) offsetsOfAll(ctx context.Context, row *projectRow, cat *catalog, cursor string) (all []Found,
	next string, err error) {
	number, rest, _ := strings.Cut(cursor, ":")
	first := uint64(0)
	if cursor != "" {
		first, err = strconv.ParseUint(number, 10, 32)
	}
	if err != nil {
		return nil, "", fault.New(fault.Invalid, "cursor: found %q; expected that of the page before", cursor)
	}
	calls := 0
	for _, l := range cat.clips.Values() {
		for uint64(l.number) >= first {
			if calls == mostClips || len(all) >= mostOffsets {
				return all, fmt.Sprintf("%d:%s", l.number, rest), nil
			}
			calls++
			var results []Result
			results, rest, err = s.found(ctx, row.Name, l.key(), row.def.Analysis.String(), rest)
			if err != nil {
				return nil, "", err
			}
			for i := range results {
				all = append(all, results[i].offsets()...)
			}
			if rest == "" {
				break
			}
		}
	}
	return all, "", nil
}

func (r *Result) offsets() (all []Found) {
	for _, h := range r.Hits {
		all = append(all, Found{Hit: h, Episode: r.Episode, Clip: r.Clip, At: r.At})
	}
	return all
}

// entitle gives each offset the title of its clip.
func (s *Store) entitle(ctx context.Context, row *projectRow, cat *catalog, all []Found) error {
	names := map[string]bool{}
	for _, f := range all {
		names[f.Clip] = true
	}
	clips, err := s.known(ctx, cat, row, Clip, slices.Sorted(maps.Keys(names)))
	titles := map[string]string{}
	for _, c := range clips {
		titles[c.Key] = c.Title
	}
	for i := range all {
		all[i].ClipTitle = titles[all[i].Clip]
	}
	return err
}
