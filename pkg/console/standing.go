package console

import (
	"html/template"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/explain"
)

// standing is who stands before a job: in words, and as a picture.
type standing struct {
	v1.ExplainedLine
	Picture template.HTML
	What    string // the gate, or the lock
	Others  string // how many come before it beside those that are named; "": none
	Nobody  bool   // none comes before it
}

// standingOf is who stands before a job, nil if it is in no line. base is the address of the
// console.
func standingOf(x v1.Explanation, base string) *standing {
	if x.Line == nil || x.Ahead == nil {
		return nil
	}
	s := &standing{ExplainedLine: *x.Line, What: "the gate " + x.Line.Name, Nobody: *x.Ahead == 0}
	if x.Line.Before == string(explain.ForLock) {
		s.What = "the lock of " + x.Line.Name
	}
	switch more := *x.Ahead - len(x.Line.First); {
	case x.MoreAhead:
		s.Others = "at least " + number(more) + " more"
	case more > 0:
		s.Others = number(more) + " more"
	}
	s.Picture = s.draw(x, base)
	return s
}

// Ids of nodes that are no jobs. Ids of jobs have no blanks.
const (
	nodeStop = "what stops it"
	nodeEnd  = "the gate or lock"
	nodeMore = "the others"
	nodeNone = "of another collection "
)

// draw draws the line from its beginning: what stops it, the gate or the lock, those who stand
// before the job in the order in which it is their turn, and the job itself.
func (s *standing) draw(x v1.Explanation, base string) template.HTML {
	var nodes []v1.GraphNode
	var links []v1.GraphLink
	add := func(n v1.GraphNode) { // behind the last
		if len(nodes) > 0 {
			last := nodes[len(nodes)-1].ID
			links = append(links, v1.GraphLink{From: last, To: n.ID, Kind: "depends"})
		}
		nodes = append(nodes, n)
	}

	if s.Stop != "" {
		add(v1.GraphNode{ID: nodeStop, Label: s.Stop, State: "blocked"})
	}
	add(v1.GraphNode{ID: nodeEnd, Label: s.Before, Note: briefly(s.Name), Round: true})
	for i, b := range s.First {
		n := v1.GraphNode{ID: b.ID, Label: briefly(b.ID), State: b.State}
		switch {
		case b.ID == "":
			n.ID, n.Label, n.Note = nodeNone+number(i), "a job", "of another collection"
		case b.Kind == explain.Batch:
			n.Note = "batch"
		case b.Has:
			n.Note = "has the lock"
		}
		add(n)
	}
	if s.Others != "" {
		add(v1.GraphNode{ID: nodeMore, Label: "+ " + s.Others})
	}
	add(v1.GraphNode{ID: x.ID, Label: "this job", Note: briefly(x.ID), State: x.State})

	kinds := map[string]string{}
	for _, b := range s.First {
		kinds[b.ID] = b.Kind
	}
	name := "Who stands before job " + x.ID
	return pictureOf(name, s.words(x), nodes, links, func(id string) string {
		if kinds[id] == "" {
			return ""
		}
		return base + subjectPage(kinds[id], id)
	})
}

// words is what the picture shows.
func (s *standing) words(x v1.Explanation) string {
	all := []string{"In line for " + s.What}
	if s.Stop != "" {
		all[0] += ": " + s.Stop
	}
	for i, b := range s.First {
		one := b.Kind + " " + b.ID + " is " + b.State
		if b.ID == "" {
			one = "a job of another collection"
		}
		if b.Has {
			one += ", and has the lock"
		}
		all = append(all, number(i+1)+": "+one)
	}
	if s.Others != "" {
		all = append(all, s.Others)
	}
	return strings.Join(append(all, "At the end: this job, which is "+x.State), ". ") + "."
}

// briefly is the end of an id, by which the jobs of a picture can be told apart; the list below it
// has them whole.
func briefly(id string) string {
	const most = 14
	letters := []rune(id)
	if len(letters) <= most || strings.Contains(id, " ") {
		return id
	}
	return "…" + string(letters[len(letters)-most+1:])
}
