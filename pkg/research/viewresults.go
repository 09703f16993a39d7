package research

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Results lists the results of an episode, all analyses, by analysis and clip, at most 100 to a
// page. An episode that does not exist has none. In a project with a review, those that count say
// which of their places are accepted.
func (s *Store) Results(ctx context.Context, project, episode,
	cursor string) (all []Result, next string, err error) {
	var rows []resultRow
	next, err = s.Table.Page(ctx, table.Query{PK: resultsPK(project, episode), Cursor: cursor},
		&rows)
	for i := range rows {
		r, failed := rows[i].result()
		if failed != nil {
			return nil, "", failed
		}
		all = append(all, r)
	}
	return all, next, cmp.Or(err, s.reviewed(ctx, project, all))
}

// ResultsOfClip lists the results of a clip that have hits or a problem, by analysis and episode,
// at most 100 to a page. Results without are found with their episodes. A page costs one query, and
// one request for its rows.
func (s *Store) ResultsOfClip(ctx context.Context, project, clip,
	cursor string) ([]Result, string, error) {
	all, next, err := s.found(ctx, project, clip, "", cursor)
	return all, next, cmp.Or(err, s.reviewed(ctx, project, all))
}

// found are the results of a clip in the index, of one analysis or of all (""). The index finds
// candidates; their rows are then read.
func (s *Store) found(ctx context.Context, project, clip, analysis,
	cursor string) (all []Result, next string,
	err error) {
	q := table.Query{
		Index:  "list",
		PK:     foundPK(project, clip),
		Limit:  table.MaxGets,
		Cursor: cursor,
	}

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

// Found is a place where a clip occurs, by the present analysis.
type Found struct {
	Hit
	Episode, Clip string // keys
	ClipTitle     string // may be empty
	At            int64  // when it was stored, in milliseconds since 1970

	// Of which result it is, and its number there, from 0.
	lease            string
	sequence, number int
}

// Bounds of a page of Offsets.
const (
	mostOffsets = 1000 // or the hits of one more clip
	mostClips   = 50   // each costs a query
)

// Offsets lists the places where clips occur, by the present analysis: of an episode, by clip; of
// all, by the number of the clip and the episode. Of results of a pair of several researchers, all
// are listed; in a project with a quorum only those that count, and in one with a review only those
// that a person has accepted. A page costs at most 50 queries. It may be empty without being the
// last: only Next "" is the end. It returns a NotFound if there is no such project or episode, and
// an Invalid for a cursor of another list.
func (s *Store) Offsets(ctx context.Context, project, episode, cursor string) (out Offsets,
	err error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return out, err
	}

	if episode == "" {
		out.All, out.Next, err = s.offsetsOfAll(ctx, row, cat, cursor)
	} else {
		out.All, out.Next, err = s.offsetsOfEpisode(ctx, row, episode, cursor)
	}

	if err != nil {
		return out, err
	}
	out.All, out.Waiting, err = s.accepted(ctx, row, cat, out.All)
	if err != nil {
		return out, err
	}
	return out, s.entitle(ctx, row, cat, out.All)
}

// Offsets are a page of places.
type Offsets struct {
	All     []Found
	Waiting int    // places that are left out because they wait for a person
	Next    string // the cursor of the next page; "" if there is none
}

// offsetsOfEpisode are a page of those of an episode. It may be empty without being the last: a
// page has so many results, and most results have no hits.
func (s *Store) offsetsOfEpisode(ctx context.Context, row *projectRow, episode,
	cursor string) (all []Found,
	next string, err error) {
	e, err := s.episodeRow(ctx, row.Name, episode)
	if err != nil {
		return nil, "", err
	}

	if e.Rev == 0 {
		return nil, "", missing(Episode, row.Name, episode)
	}

	var rows []resultRow
	next, err = s.Table.Page(ctx, table.Query{
		PK:     resultsPK(row.Name, episode),
		Prefix: row.def.Analysis.String() + "#",
		Limit:  mostOffsets,
		Cursor: cursor,
	}, &rows)

	for i := range rows {
		r, failed := rows[i].result()
		if failed != nil {
			return nil, "", failed
		}
		all = append(all, r.offsets()...)
	}
	return all, next, err
}

// offsetsOfAll walks the clips by their numbers. The cursor has the number of the next clip, and
// the place among its results: "NUMBER:CURSOR". Numbers never change, so clips that come during the
// listing are listed at its end, and none is missed.
func (s *Store) offsetsOfAll(ctx context.Context, row *projectRow, cat *catalog,
	cursor string) (all []Found,
	next string, err error) {
	number, rest, _ := strings.Cut(cursor, ":")
	first := uint64(0)
	if cursor != "" {
		first, err = strconv.ParseUint(number, 10, 32)
	}

	if err != nil {
		return nil, "", fault.New(fault.Invalid,
			"cursor: found %q; expected that of the page before", cursor)
	}

	calls := 0
	// rest is the place among the results of the clip at hand; it is "" when the next clip begins.
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

// offsets are the hits of a result, none if it has a problem.
func (r *Result) offsets() (all []Found) {
	for n, h := range r.Hits {
		all = append(all, Found{Hit: h, Episode: r.Episode, Clip: r.Clip, At: r.At, lease: r.Lease,
			sequence: r.Sequence, number: n})
	}
	return all
}

// entitle gives each offset the title of its clip as it is now: results do not have it.
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
