package research

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Matrix is a part of the pairs of a project: some episodes, with some of the clips that are live.
type Matrix struct {
	Clips []Known // of columns from Clip on
	Clip  int     // the first of these, from 0 in the order of research
	Begin int     // the column of the first pair of each row
	Total int     // clips that are live

	Rows []MatrixRow
	More bool   // not all pairs with places that wait for a person are known
	Next string // the cursor of the next episodes; "" if there are none
}

// MatrixRow is an episode with a character for each of some clips.
type MatrixRow struct {
	Known
	Pairs string

	// Of these, the numbers from 0 of pairs with places that wait for a person.
	Unreviewed []int
}

// What a character of a row says of a pair. A digit is how many places were found.
const (
	cellOpen    = '.' // no result, and no lease
	cellLeased  = 'w' // somebody is at work, or will be
	cellWaits   = 'q' // it has fewer results than the quorum
	cellDiffers = 'd' // a person has to decide
	cellMore    = '+' // ten places or more
	cellDamaged = '!' // its row cannot be read: whether places wait for a person is not known
	cellUnknown = 'x' // it is researched; how many places were found, an earlier version did not keep
)

// Bounds of a part of the matrix: all of an episode is one row of the table, and each clip that is
// named another one.
const (
	matrixEpisodes = 50
	matrixNames    = 40
	matrixPairs    = 400
	matrixLooks    = 300
	matrixReviews  = 1000
)

// Matrix returns a part of the pairs: the next episodes in the order of List, 50 at most, with a
// block of up to 400 clips in the order of research, and the names of 40 of these from clip on. It
// costs as many calls as List, and two; in a project with a review up to four more. It returns a
// NotFound if there is no such project, and an Invalid for a cursor of another list.
//
// A cursor is the state at hand, how many entries of its page were shown, and the cursor of that
// page.
func (s *Store) Matrix(ctx context.Context, project, cursor string, clip int) (out Matrix,
	err error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return out, err
	}

	out.Total = int(cat.live.GetCardinality())
	out.Clip = min(max(clip, 0), max(0, out.Total-1))
	out.Begin = out.Clip / matrixPairs * matrixPairs
	var numbers []uint32
	var keys, names []string
	at := -1
	for l := range cat.from("") {
		at++
		if at < out.Begin || at >= out.Begin+matrixPairs {
			continue
		}
		numbers, keys = append(numbers, l.number), append(keys, l.key())
		if at >= out.Clip && len(names) < matrixNames {
			names = append(names, l.key())
		}
	}

	found, err := s.known(ctx, cat, row, Clip, names)
	if err != nil {
		return out, err
	}
	out.Clips = inColumns(found, names)
	if err := s.matrixRows(ctx, row, cat, cursor, numbers, &out); err != nil {
		return out, err
	}
	return out, s.matrixReviews(ctx, row, keys, &out)
}

// inColumns are clips by their keys, each in its column: one whose row is missing keeps it, since
// the pairs of the episodes count it.
func inColumns(found []Known, keys []string) (all []Known) {
	for _, key := range keys {
		i := slices.IndexFunc(found, func(k Known) bool { return k.Key == key })
		if i < 0 {
			all = append(all, Known{Subject: Subject{Key: key}, Kind: Clip, State: Live, Lost: true})
			continue
		}
		all = append(all, found[i])
	}
	return all
}

// matrixRows adds the rows from a cursor on.
func (s *Store) matrixRows(ctx context.Context, row *projectRow, cat *catalog, cursor string,
	clips []uint32,
	out *Matrix) error {
	names, next, err := s.matrixNames(ctx, row, cat, cursor)
	if err != nil {
		return err
	}

	var at []table.Key
	for _, name := range names {
		at = append(at, episodeKey(row.Name, name))
	}
	rows, err := s.read(ctx, at...)
	if err != nil {
		return err
	}

	out.Next = next
	for _, name := range names {
		e, err := rows.episode(row.Name, name)
		if err != nil {
			return err
		}
		if e.Rev == 0 {
			continue // it has moved meanwhile, or the index lags
		}

		one := MatrixRow{}
		if one.Known, err = e.known(row, cat); err != nil {
			return err
		}
		if one.Pairs, err = e.pairs(clips); err != nil {
			return err
		}
		out.Rows = append(out.Rows, one)
	}
	return nil
}

// matrixNames are the keys of the next episodes, of several states if one has too few.
func (s *Store) matrixNames(ctx context.Context, row *projectRow, cat *catalog,
	cursor string) (all []string,
	next string, err error) {
	states := statesOf[Episode]
	i, skip, rest := 0, 0, ""
	if cursor != "" {
		part := append(strings.SplitN(cursor, ":", 3), "", "")
		i = slices.Index(states, State(part[0]))
		skip, err = strconv.Atoi(part[1])
		rest = part[2]
		if i < 0 || err != nil || skip < 0 {
			return nil, "", fault.New(fault.Invalid,
				"cursor: found %q; expected that of the page before", cursor)
		}
	}

	for i < len(states) {
		names, more, err := s.names(ctx, cat, row, Episode, states[i], rest)
		if err != nil {
			return nil, "", err
		}

		skip = min(skip, len(names))
		end := min(len(names), skip+matrixEpisodes-len(all))
		all = append(all, names[skip:end]...)
		switch {
		case end < len(names):
			skip = end
		case more != "":
			skip, rest = 0, more
		default:
			i, skip, rest = i+1, 0, ""
		}
		if len(all) == matrixEpisodes && i < len(states) {
			return all, fmt.Sprintf("%s:%d:%s", states[i], skip, rest), nil
		}
	}
	return all, "", nil
}

// pairs has a character for each of the clips.
func (e *episodeRow) pairs(clips []uint32) (string, error) {
	leased := roaring.New()
	for _, h := range e.Leased {
		some, err := bits(h.Clips)
		if err != nil {
			return "", err
		}
		leased.Or(some)
	}

	all := make([]byte, len(clips))
	for i, n := range clips {
		switch {
		case e.researched.Contains(n):
			all[i] = e.placesShown(n)
		case e.differs.Contains(n):
			all[i] = cellDiffers
		case leased.Contains(n):
			all[i] = cellLeased
		case e.waiting.Contains(n):
			all[i] = cellWaits
		default:
			all[i] = cellOpen
		}
	}
	return string(all), nil
}

// placesShown is the character of a pair that is researched.
func (e *episodeRow) placesShown(clip uint32) byte {
	n := e.placesOf(clip)
	switch {
	case !e.tallied:
		return cellUnknown
	case n > 9:
		return cellMore
	}
	return byte('0' + n)
}

// cellAt is a pair of a part of the matrix: the numbers of its row and of its character.
type cellAt struct{ row, pair int }

// matrixReviews adds which pairs of the rows have places that wait for a person. Of the pairs with
// places, the rows of some say that; the index of what waits says it of others, and may lag.
func (s *Store) matrixReviews(ctx context.Context, row *projectRow, clips []string,
	out *Matrix) error {
	if !row.def.Review || len(out.Rows) == 0 {
		return nil
	}

	asked := out.withPlaces()
	known := asked[:min(len(asked), matrixLooks)]
	key := func(c cellAt) table.Key { return pairKey(row.Name, out.Rows[c.row].Key, clips[c.pair]) }
	var at []table.Key
	for _, c := range known {
		at = append(at, key(c))
	}
	rows, err := s.read(ctx, at...)
	if err != nil {
		return err
	}
	for _, c := range known {
		var p pairRow
		err := rows.decode(key(c), &p)
		if table.Damaged(err) {
			out.Rows[c.row].damaged(c.pair)
			continue
		}
		if err != nil {
			return err
		}
		if p.Generation == row.Generation && p.waiting() > 0 {
			out.Rows[c.row].Unreviewed = append(out.Rows[c.row].Unreviewed, c.pair)
		}
	}

	err = s.matrixIndexed(ctx, row, clips, asked[len(known):], out)
	for i := range out.Rows {
		slices.Sort(out.Rows[i].Unreviewed)
	}
	return err
}

// damaged says of a pair that its row cannot be read.
func (r *MatrixRow) damaged(pair int) {
	r.Pairs = r.Pairs[:pair] + string(cellDamaged) + r.Pairs[pair+1:]
}

// withPlaces are the pairs in which places were found: first those of the clips that are named.
func (m *Matrix) withPlaces() (all []cellAt) {
	named, to := m.Clip-m.Begin, m.Clip-m.Begin+len(m.Clips)
	for _, first := range []bool{true, false} {
		for i, r := range m.Rows {
			for n := range len(r.Pairs) {
				if is := n >= named && n < to; is == first && found(r.Pairs[n]) {
					all = append(all, cellAt{i, n})
				}
			}
		}
	}
	return all
}

// found reports whether a character of a row says, or does not exclude, that places were found.
func found(cell byte) bool {
	return cell > '0' && cell <= '9' || cell == cellMore || cell == cellUnknown
}

// matrixIndexed says of pairs, if there are any, whether they wait for a person by the index.
func (s *Store) matrixIndexed(ctx context.Context, row *projectRow, clips []string, asked []cellAt,
	out *Matrix) error {
	if len(asked) == 0 {
		return nil
	}
	var heads []table.Head
	next, err := s.Table.Page(ctx, table.Query{Index: "list", PK: reviewsPK(row.Name, row.Generation),
		Limit: matrixReviews}, &heads)
	if err != nil {
		return err
	}

	out.More = next != ""
	waits := map[string]bool{}
	for _, h := range heads {
		waits[h.ListSK] = true
	}
	for _, c := range asked {
		r := &out.Rows[c.row]
		if waits[r.Key+"/"+clips[c.pair]] {
			r.Unreviewed = append(r.Unreviewed, c.pair)
		}
	}
	return nil
}
