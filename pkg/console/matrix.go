package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// matrix is the page of the pairs of episodes and clips.
type matrix struct {
	Project              string
	Clips                []v1.ResearchMedia // in the order of columns
	columns              []int              // where they are in the order of the API
	From, To, Total      int                // the numbers of these clips, from 1, of all that are live
	Rows                 []matrixRow
	Picture              *heat // nil: the table alone shows all at a glance
	Legend               []cell
	More                 bool   // some places that wait for a person are not marked
	First, Before, Next  string // the addresses of other episodes
	BeforeClips, OnClips string // the addresses of other columns
}

// matrixRow is an episode with a cell for each clip.
type matrixRow struct {
	v1.ResearchMedia
	Cells []cell
}

// cell is what is known of a pair.
type cell struct {
	Class string // as the styles have it
	Text  string // in the cell
	Says  string // in words
}

// cells are what the characters of a row say, but for numbers.
var cells = map[byte]cell{
	'.': {"open", "·", "open"},
	'w': {"work", "…", "at work"},
	'q': {"half", "½", "another researcher is needed"},
	'0': {"no", "–", "none found"},
	'd': {"problem", "≠", "results differ"},
	'x': {"known", "R", "researched: see its results"},
	'!': {"problem", "!", "its row cannot be read: run the doctor"},
	'+': {"hit many", "10+", "10 places or more found"},
}

// legend are cells that say what each kind means.
var legend = []cell{cells['.'], cells['w'], cells['q'], cells['0'], {"hit", "1", "one place found"},
	{"hit some", "2", "2 to 4 places"}, {"hit many", "5", "5 places or more"},
	{"review", "2?", "places wait for a person"}, cells['d'], cells['x'],
	cells['!']}

// cellOf is what a character of a row says of its pair; unreviewed says that places of it wait for
// a person.
func cellOf(of byte, unreviewed bool) cell {
	is := cells[of]
	if n := int(of) - '0'; n > 0 && n < 10 {
		is = cell{"hit", strconv.Itoa(n), terminal.Count(n, "place") + " found"}
		if n > 1 {
			is.Class += " some"
		}
		if n > 4 {
			is.Class = "hit many"
		}
	}
	if unreviewed {
		return cell{"review", is.Text + "?", is.Says + ", to review"}
	}
	return is
}

// showMatrix shows which pairs are researched, and where clips occur. An episode is a row.
func (c *Console) showMatrix(v *visit) (view, error) {
	name, first := v.PathValue("project"), 0
	if text := v.field("clip"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1_000_000 {
			return view{}, fault.New(fault.Invalid,
				"clip: found %q; expected the number of a clip, from 1", cut(text))
		}
		first = n - 1
	}
	part, err := v.api.ResearchMatrix(v.Context(), name, v.field("from"), first)
	if err != nil {
		return view{}, err
	}

	m := matrix{Project: name, Clips: part.Clips, From: part.Clip + 1, To: part.Clip + len(part.Clips),
		Total: part.Total, Legend: legend, More: part.More}
	m.Before, m.Next = v.beside("from", part.Cursor)
	if v.field("from") != "" {
		m.First = "?" + query("clip", v.field("clip"))
	}
	if part.Clip > 0 {
		m.BeforeClips = v.more("clip", strconv.Itoa(max(part.Clip-clipsBeside, 0)+1))
	}
	if m.To < m.Total {
		m.OnClips = v.more("clip", strconv.Itoa(m.To+1))
	}
	m.columns = ordered(&part)
	m.rows(part)
	m.Picture = heatOf(part)
	clip := ""
	if first > 0 {
		clip = strconv.Itoa(first + 1)
	}
	return view{Title: "Episodes and clips of " + name, Body: m,
		Command: joined("archivist research matrix "+quoted(name), option("--clip", clip),
			option("--cursor", v.field("from")))}, nil
}

// clipsBeside is how many clips the API names at once.
const clipsBeside = 40

// Number is the number of a clip that is shown, from 1, of all that are live: that of the API and of the command.
func (m matrix) Number(column int) int { return m.From + m.columns[column] }

// ordered puts the rows of a part in the order of their titles, and the columns of the clips that it names, where
// nothing else orders them: the table and the picture are in the same order. It returns where each column was.
func ordered(part *v1.ResearchMatrix) (columns []int) {
	columns, from := inOrder(part.Clips), part.Clip-part.Begin
	clips := slices.Clone(part.Clips)
	for n, i := range columns {
		part.Clips[n] = clips[i]
	}
	var episodes []v1.ResearchMedia
	for _, r := range part.Rows {
		episodes = append(episodes, r.Episode)
	}
	rows := slices.Clone(part.Rows)
	for n, i := range inOrder(episodes) {
		part.Rows[n] = columnsOf(rows[i], columns, from)
	}
	return columns
}

// columnsOf is a row with its pairs in the order of columns, of which the first is at a place.
func columnsOf(r v1.ResearchMatrixRow, columns []int, from int) v1.ResearchMatrixRow {
	pairs, unreviewed := []byte(r.Pairs), slices.Clone(r.Unreviewed)
	if from+len(columns) > len(pairs) {
		return r
	}
	for n, i := range columns {
		pairs[from+n] = r.Pairs[from+i]
		if at := slices.Index(r.Unreviewed, from+i); at >= 0 {
			unreviewed[at] = from + n
		}
	}
	r.Pairs, r.Unreviewed = string(pairs), unreviewed
	return r
}

// rows adds the rows of a part.
func (m *matrix) rows(part v1.ResearchMatrix) {
	for _, r := range part.Rows {
		row := matrixRow{ResearchMedia: r.Episode}
		for i := range part.Clips {
			if at := part.Clip - part.Begin + i; at < len(r.Pairs) {
				row.Cells = append(row.Cells, cellOf(r.Pairs[at], slices.Contains(r.Unreviewed, at)))
			}
		}
		m.Rows = append(m.Rows, row)
	}
}

// inOrder are the numbers of what comes in the order of the API, in that order; what it leaves to
// keys is by title.
func inOrder(all []v1.ResearchMedia) []int {
	out := make([]int, len(all))
	for i := range out {
		out[i] = i
	}
	for from := 0; from < len(all); {
		a, to := all[from], from+1
		for to < len(all) && all[to].State == a.State && all[to].Priority == a.Priority &&
			all[to].Initial == a.Initial {
			to++
		}
		slices.SortStableFunc(out[from:to], func(i, j int) int {
			return compareTitles(cmp.Or(all[i].Title, all[i].ID), cmp.Or(all[j].Title, all[j].ID))
		})
		from = to
	}
	return out
}

// compareTitles orders titles as people do: "part 9" is before "part 10".
func compareTitles(a, b string) int {
	x, y := strings.FieldsFunc(spaced(a), unicode.IsSpace), strings.FieldsFunc(spaced(b),
		unicode.IsSpace)
	return slices.CompareFunc(x, y, func(p, q string) int {
		n, notN := strconv.Atoi(p)
		k, notK := strconv.Atoi(q)
		if notN == nil && notK == nil {
			return cmp.Compare(n, k)
		}
		return cmp.Compare(p, q)
	})
}

// spaced sets numbers apart from what is beside them.
func spaced(title string) string {
	var out strings.Builder
	number := false
	for _, r := range strings.ToLower(title) {
		if is := r >= '0' && r <= '9'; is != number {
			out.WriteByte(' ')
			number = is
		}
		out.WriteRune(r)
	}
	return out.String()
}

// heat is a picture of pairs: one unit each, an episode in a line.
type heat struct {
	Width, Height int
	Pixels        int // the height of the picture
	From, To      int // the numbers of its clips, from 1
	Layers        []heatLayer
}

// heatLayer is all pairs of a class.
type heatLayer struct{ Class, Path string }

// glance is how many pairs a person sees at once in a table.
const glance = 100

// heatOf draws the pairs of a part; nil if they are few.
func heatOf(part v1.ResearchMatrix) *heat {
	if len(part.Rows) == 0 || len(part.Rows)*len(part.Rows[0].Pairs) <= glance {
		return nil
	}
	h := &heat{Width: len(part.Rows[0].Pairs), Height: len(part.Rows),
		Pixels: max(6*len(part.Rows), 60),
		From:   part.Begin + 1, To: part.Begin + len(part.Rows[0].Pairs)}
	paths := map[string]*strings.Builder{}
	for y, r := range part.Rows {
		for x := 0; x < len(r.Pairs); {
			class, end := classAt(r, x), x+1
			for end < len(r.Pairs) && classAt(r, end) == class {
				end++
			}
			if paths[class] == nil {
				paths[class] = &strings.Builder{}
			}
			fmt.Fprintf(paths[class], "M%d %dh%dv1H%dz", x, y, end-x, x)
			x = end
		}
	}
	for _, l := range legend {
		if p := paths[l.Class]; p != nil {
			h.Layers = append(h.Layers, heatLayer{l.Class, p.String()})
			delete(paths, l.Class) // two kinds can have one class
		}
	}
	return h
}

// classAt is the class of a pair of a row.
func classAt(r v1.ResearchMatrixRow, at int) string {
	return cellOf(r.Pairs[at], slices.Contains(r.Unreviewed, at)).Class
}
