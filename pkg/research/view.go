package research

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Known is an episode or a clip as it stands.
//
// Views read rows one after the other while others change them: what they say may be of several
// moments, and decides nothing.
type Known struct {
	Subject
	Kind  Kind
	State State

	// Numbers of pairs of an episode with the clips that are live: all, and those in each state. A
	// pair is researched; or its results differ, so that a person has to decide; or it is under a
	// lease; or it waits, with fewer results than the quorum; or it is open.
	Pairs, Researched, Differing, Leased, Waiting, Open int64

	leasedWaiting int64 // of the leased ones, those with a result

	Waveform *Waveform // of an episode, by Get; nil if it is not known

	Full string // why no pair of an episode is assigned, although some are open

	Lost bool // its row is missing: only its key is known
}

// listPage is the most that a page of List has.
const listPage = 100

// List lists episodes or clips: of one state, or of all. The order is that of research; what is
// away is ordered by its key. What changes its state during the listing may be missing or come
// twice. A page costs at most one query for each state, and one request for all rows. It returns an
// Invalid for a state that does not exist, and a NotFound if there is no such project.
//
// A cursor is the state at hand, a colon, and the cursor of that state; "" begins, and ends the
// list.
func (s *Store) List(ctx context.Context, kind Kind, project string, state State,
	cursor string) (page []Known,
	next string, err error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return nil, "", err
	}

	states := statesOf[kind]
	if state != "" {
		if !slices.Contains(states, state) {
			return nil, "",
				fault.New(fault.Invalid, "state: found %q; expected one of %v", state, states)
		}
		states = []State{state}
	}

	// A page has entries of one state. States without entries are passed over.
	at, rest, _ := strings.Cut(cursor, ":")
	first := max(0, slices.Index(states, State(at)))
	for i := first; i < len(states); i++ {
		var names []string
		names, rest, err = s.names(ctx, cat, row, kind, states[i], rest)
		if err != nil {
			return nil, "", err
		}

		page, err = s.known(ctx, cat, row, kind, names)
		switch {
		case err != nil:
			return nil, "", err
		case rest != "":
			return page, string(states[i]) + ":" + rest, nil
		case len(page) > 0 && i+1 < len(states):
			return page, string(states[i+1]) + ":", nil
		case len(page) > 0:
			return page, "", nil
		}
	}
	return nil, "", nil
}

// names are a page of the keys of the episodes or clips in a state: clips that are live are in the
// catalog, episodes that are live in the line, and what is away in the index "list", which may lag.
func (s *Store) names(ctx context.Context, cat *catalog, row *projectRow, kind Kind, state State,
	cursor string) (names []string, next string, err error) {
	switch state {
	case Live:
		names, next = cat.page(cursor)
		return names, next, nil
	case Ready, Closed:
		var rows []lineRow
		next, err = s.Table.Page(ctx, table.Query{
			PK:     linePK(row.Name),
			Prefix: string(state) + "#",
			Limit:  listPage,
			Cursor: cursor,
		}, &rows)
		for _, r := range rows {
			names = append(names, r.Owner)
		}
		return names, next, err
	}

	var heads []table.Head
	next, err = s.Table.Page(ctx, table.Query{
		Index:  "list",
		PK:     awayPK(row.Name),
		Prefix: awaySK(kind, state),
		Limit:  listPage,
		Cursor: cursor,
	}, &heads)

	for _, h := range heads {
		names = append(names, h.ListSK[len(awaySK(kind, state)):])
	}
	return names, next, err
}

// page are the keys of clips that are live, in the order of research, behind the one of the cursor.
// The cursor is the order of the last clip of a page: if that has moved meanwhile, the page begins
// where it was.
func (c *catalog) page(cursor string) (names []string, next string) {
	for l := range c.from(cursor) {
		if l.order == cursor {
			continue
		}
		if len(names) == listPage {
			return names, next
		}
		names, next = append(names, l.key()), l.order
	}
	return names, ""
}

// known reads episodes or clips, in the order of their names. Those that do not exist are left out.
// A damaged row is an error.
func (s *Store) known(ctx context.Context, cat *catalog, row *projectRow, kind Kind,
	names []string) (all []Known,
	err error) {
	if len(names) == 0 {
		return nil, nil
	}

	of := map[Kind]event.Type{Episode: event.Episode, Clip: event.Clip}[kind]
	var at []table.Key
	for _, name := range names {
		at = append(at, mediaSubject(of, row.Name, name).Key())
	}

	rows, err := s.Table.Many(ctx, at)
	if err != nil {
		return nil, err
	}

	for i, k := range at {
		raw, ok := rows[k]
		if !ok {
			continue
		}

		one := Known{}
		if kind == Clip {
			one, err = knownClip(raw)
		} else {
			one, err = knownEpisode(raw, row, cat)
		}

		if err != nil {
			return nil, fmt.Errorf("%s %s of %s: %w", kind, names[i], row.Name, err)
		}

		all = append(all, one)
	}
	return all, nil
}

// knownClip is a clip as its row says.
func knownClip(raw table.Raw) (Known, error) {
	var r clipRow
	err := raw.Decode(&r)
	if err != nil {
		return Known{}, err
	}

	err = json.Unmarshal([]byte(r.Text), &r.media)
	if err != nil {
		return Known{}, err
	}
	return r.known(), nil
}

// known is the clip as it stands.
func (c *clipRow) known() Known {
	return Known{
		Subject: Subject{c.Name, c.media},
		Kind:    Clip,
		State:   cmp.Or(c.media.awayState(), Live),
	}
}

// knownEpisode is an episode as its row says.
func knownEpisode(raw table.Raw, row *projectRow, cat *catalog) (Known, error) {
	var r episodeRow
	err := raw.Decode(&r)
	if err != nil {
		return Known{}, err
	}

	err = r.unpack()
	if err != nil {
		return Known{}, err
	}
	return r.known(row, cat)
}

// known is the episode as it stands, by the catalog. Beside an error it has no leased pairs.
func (e *episodeRow) known(row *projectRow, cat *catalog) (Known, error) {
	e.begin(row.Generation)

	taken, err := e.taken()
	k := Known{
		Subject:    Subject{e.Name, e.media},
		Kind:       Episode,
		State:      cmp.Or(e.media.awayState(), State(class(e.Place))),
		Pairs:      int64(cat.live.GetCardinality()),
		Researched: int64(cat.live.AndCardinality(e.researched)),
	}

	if err != nil {
		return k, err
	}

	k.Differing = int64(cat.live.AndCardinality(e.differs))
	k.Leased = int64(cat.live.AndCardinality(taken)) - k.Researched - k.Differing
	k.leasedWaiting = int64(cat.live.AndCardinality(roaring.And(e.waiting, taken)))
	k.Waiting = int64(cat.live.AndCardinality(e.waiting)) - k.leasedWaiting
	k.Open = k.Pairs - k.Researched - k.Differing - k.Leased - k.Waiting
	if len(e.Leased) >= MaxLeases && k.Open+k.Waiting > 0 {
		k.Full = e.full()
	}
	return k, nil
}

// full says that the episode has MaxLeases leases.
func (e *episodeRow) full() string {
	return fmt.Sprintf("the episode has %d leases, which is the most that is possible", len(e.Leased))
}

// Get returns an episode or a clip; a NotFound if there is no such project, episode or clip.
func (s *Store) Get(ctx context.Context, kind Kind, project, key string) (Known, error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return Known{}, err
	}

	all, err := s.known(ctx, cat, row, kind, []string{key})
	if err != nil {
		return Known{}, err
	}

	if len(all) == 0 {
		return Known{}, missing(kind, project, key)
	}
	if kind == Episode {
		all[0].Waveform, err = s.waveform(ctx, project, &all[0])
	}
	return all[0], err
}

// All lists the projects of the deployment that are configured, by name. A deployment has few, so
// there are no pages. Projects of an earlier deployment that has no queue for them any more are
// left out.
func (s *Store) All(ctx context.Context) (all []ProjectState, err error) {
	names := slices.Sorted(slices.Values(s.Projects))
	for _, name := range names {
		p, err := s.Project(ctx, name)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
