package objects

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// preservationStatusCmd reads all objects of the collections: the archive keeps the last check of each object, and
// no sum of them.
type preservationStatusCmd struct {
	Collection []string `short:"c" help:"Only these collections; all if it is left out." placeholder:"NAME"`
}

// preservationStatus is how well the objects of a collection are preserved. A copy is verified if its last check
// found it right, and was of the newest version. The files in the storage bucket are a copy, too.
type preservationStatus struct {
	Collection string `json:"collection"`
	Objects    int    `json:"objects"`
	// The number of objects with so many verified copies, from 0.
	Verified []int `json:"verified"`
	// The number of objects of which a copy is damaged, or could not be read.
	Damaged int `json:"damaged"`
	// The number of objects whose newest version is not in the second bucket.
	NotCopied int `json:"notCopied"`
	// When the copy was checked whose last check is the oldest. Absent if one was never checked.
	OldestCheck string `json:"oldestCheck,omitempty"`
	// The objects that need attention, the worst first, at most 100.
	Attention []needsAttention `json:"attention"`
}

// needsAttention is why an object does.
type needsAttention struct {
	ARK      string `json:"ark"`
	Verified int    `json:"verified"`
	Why      string `json:"why"`
	damaged  bool
}

// mostAttention is the number of objects that are listed.
const mostAttention = 100

func (preservationStatusCmd) Prints() any { return preservationStatus{} }

// Run lists the collections, the sum last. Damage is no failure of the command: the exit code is 0.
func (c *preservationStatusCmd) Run(a *command.App) error {
	all, err := statusOfAll(a, c.Collection)
	if err != nil {
		return err
	}
	return a.Print(all, func(p terminal.Page) {
		rows := all
		if p.ForPeople() && len(all) > 1 {
			rows = append(slices.Clone(all), totalStatus(all))
		}
		terminal.Table(p, rows, statusColumns...)
		if p.ForPeople() {
			printAttention(p, all)
		}
	})
}

// statusOf reads the objects of a collection.
func statusOf(a *command.App, line *terminal.Status, collection string) (preservationStatus, error) {
	seen := map[string]judged{}
	whole := func() { line.Show(fmt.Sprintf("%s: %d objects are read", collection, len(seen)), false) }
	if _, err := read(a, collection, seen, whole); err != nil {
		return preservationStatus{}, err
	}

	// What has changed meanwhile has moved to the front of the list, perhaps past the place of the reading.
	for range mostReadings {
		changed, err := read(a, collection, seen, nil)
		if err != nil {
			return preservationStatus{}, err
		}
		if !changed {
			break
		}
	}
	return count(collection, seen), nil
}

// statusOfAll reads the objects of collections, of all of them if none is named.
func statusOfAll(a *command.App, only []string) (all []preservationStatus, err error) {
	names := slices.Clone(only)
	if len(names) == 0 {
		names, err = a.Client.Collections(a.Ctx)
		if err != nil {
			return nil, err
		}
	}

	all = []preservationStatus{}
	line := a.StatusTo(a.Errors)
	defer line.End()
	for _, name := range names {
		s, err := statusOf(a, line, name)
		if err != nil {
			return nil, err
		}
		if s.Objects > 0 || len(only) > 0 { // a collection can be without objects
			all = append(all, s)
		}
	}
	return all, nil
}

// mostReadings is how often the front of a list is read again in a collection that keeps changing.
const mostReadings = 5

// read reads the objects of a collection: all, with their progress, or those of the front that have changed. It
// reports whether any has.
func read(a *command.App, collection string, seen map[string]judged, whole func()) (changed bool, err error) {
	filter := v1.Filter{Collection: collection}
	err = a.Client.ObjectPages(a.Ctx, filter, func(page []v1.Object) (more bool) {
		more = whole != nil
		for _, o := range page {
			if seen[o.ARK].modified != o.Modified {
				changed, more = true, true
			}
			seen[o.ARK] = judge(o)
		}
		if whole != nil {
			whole()
		}
		return more
	})
	return changed, err
}

// judged is what counts of an object.
type judged struct {
	needsAttention
	modified, oldest string
	copied           bool // its newest version
}

// judge tells how well an object is preserved.
func judge(o v1.Object) judged {
	j := judged{modified: o.Modified, oldest: o.FixityChecked, needsAttention: needsAttention{ARK: o.ARK}}
	j.look("the stored files", o.Fixity, o.Version)
	if o.Copy == nil {
		return j
	}

	j.copied = o.Copy.Version == o.Version
	j.oldest = min(j.oldest, o.Copy.FixityChecked) // "" if one was never checked
	if !j.copied {
		j.why(fmt.Sprintf("the copy has version %d of %d", o.Copy.Version, o.Version))
	}
	j.look("the copy", o.Copy.Fixity, o.Version)
	return j
}

// look judges the last check of one of the copies.
func (j *judged) look(what string, f v1.Fixity, newest int) {
	switch {
	case f.FixityOutcome == "":
		j.why(what + ": not checked yet")
	case f.FixityOutcome != "ok":
		j.damaged = true
		j.why(fmt.Sprintf("%s: %s on %s", what, f.FixityOutcome, f.FixityChecked))
	case f.FixityVersion < newest:
		j.why(fmt.Sprintf("%s: version %d was checked, version %d not yet", what, f.FixityVersion, newest))
	default:
		j.Verified++
	}
}

func (j *judged) why(text string) {
	if j.Why != "" {
		j.Why += "; "
	}
	j.Why += text
}

// count counts the objects of a collection.
func count(collection string, seen map[string]judged) preservationStatus {
	s := preservationStatus{Collection: collection, Verified: make([]int, 3), Attention: []needsAttention{}}
	first := true
	for _, j := range seen {
		s.Objects++
		s.Verified[j.Verified]++
		if j.damaged {
			s.Damaged++
		}
		if !j.copied {
			s.NotCopied++
		}
		if first || j.oldest < s.OldestCheck {
			s.OldestCheck, first = j.oldest, false
		}
		if j.Why != "" {
			s.Attention = append(s.Attention, j.needsAttention)
		}
	}

	slices.SortFunc(s.Attention, worse)
	s.Attention = s.Attention[:min(len(s.Attention), mostAttention)]
	return s
}

// worse sorts the damaged first, then those with fewer verified copies.
func worse(a, b needsAttention) int {
	if a.damaged != b.damaged {
		if a.damaged {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.Verified, b.Verified), cmp.Compare(a.ARK, b.ARK))
}

// totalStatus is the sum of collections, for people only: a program that adds up would count it twice.
func totalStatus(all []preservationStatus) preservationStatus {
	sum := preservationStatus{Collection: "(all)", Verified: make([]int, 3)}
	for i, s := range all {
		if i == 0 {
			sum.OldestCheck = s.OldestCheck
		}
		sum.Objects += s.Objects
		sum.Damaged += s.Damaged
		sum.NotCopied += s.NotCopied
		for i, n := range s.Verified {
			sum.Verified[i] += n
		}
		sum.OldestCheck = min(sum.OldestCheck, s.OldestCheck)
	}
	return sum
}

// verified is a column with the number of objects that have so many verified copies.
func verified(n int, title string) terminal.Column[preservationStatus] {
	return terminal.Column[preservationStatus]{
		Title: title,
		Text:  func(s preservationStatus) string { return strconv.Itoa(s.Verified[n]) },
	}
}

var statusColumns = []terminal.Column[preservationStatus]{
	{Title: "collection", Text: func(s preservationStatus) string { return s.Collection }},
	{Title: "objects", Text: func(s preservationStatus) string { return strconv.Itoa(s.Objects) }},
	verified(2, "2 copies"),
	verified(1, "1 copy"),
	verified(0, "none"),
	{Title: "damaged", Text: func(s preservationStatus) string { return strconv.Itoa(s.Damaged) }},
	{Title: "not copied", Text: func(s preservationStatus) string { return strconv.Itoa(s.NotCopied) }},
	{
		Title: "oldest check",
		Text: func(s preservationStatus) string {
			if s.OldestCheck == "" && s.Objects > 0 {
				return "never"
			}
			return command.Minute(s.OldestCheck)
		},
		Raw: func(s preservationStatus) string { return s.OldestCheck },
	},
}

// shownAttention is the number of objects that people see; --json has more.
const shownAttention = 20

func printAttention(p terminal.Page, all []preservationStatus) {
	var worst []needsAttention
	for _, s := range all {
		worst = append(worst, s.Attention...)
	}
	if len(worst) == 0 {
		return
	}
	slices.SortFunc(worst, worse)

	fmt.Fprintln(p)
	terminal.Table(p, worst[:min(len(worst), shownAttention)], attentionColumns...)
	if more := len(worst) - shownAttention; more > 0 {
		fmt.Fprintf(p, "\nand more: archivist object preservation status --json collection,attention\n")
	}
	fmt.Fprintf(p, "\nWhat is wrong: archivist object fixity ARK [--in-copy]\n")
}

var attentionColumns = []terminal.Column[needsAttention]{
	{Title: "needs attention", Text: func(n needsAttention) string { return n.ARK }},
	{Title: "why", Text: func(n needsAttention) string { return n.Why }, Share: 1},
}
