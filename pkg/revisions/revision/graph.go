package revision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/graph"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// graphBack is how many earlier revisions are looked through for instances that a task supersedes:
// each is a row to be read, and a picture of more is of no use.
const graphBack = 10

// Graph is a revision as a graph: its instances with their states, and those of other revisions
// that they wait for, supersede or are superseded by. The archive is named as in Explain. A
// revision that is not planned is a Conflict, one that does not exist a NotFound. Nodes are in the
// order of revisions.
func (s *Store) Graph(ctx context.Context, archive string, n int64) (graph.Graph, error) {
	p, err := s.Plan(ctx, archive, n)
	if err != nil {
		return graph.Graph{}, err
	}

	if p.Planned == 0 {
		return graph.Graph{}, fault.New(fault.Conflict,
			"revision %d of %s is not planned yet: read its preview", n, archive)
	}

	d := drawing{
		Plan:   p,
		others: map[string]Instance{},
		at:     map[string]int64{},
		graph:  graph.Graph{Name: "Revision " + revisionID(p.Archive, n)},
	}

	found, err := s.Table.Many(ctx, d.related())
	if err != nil {
		return graph.Graph{}, err
	}

	for _, raw := range found {
		r := &instanceRow{}
		err := decode(raw, r, &r.Text, &r.Instance)
		if err != nil {
			return graph.Graph{}, err
		}
		d.others[r.ID] = r.Instance
	}

	err = s.addFromBucket(ctx, d.related(), d.others)
	if err != nil {
		return graph.Graph{}, err
	}

	for _, in := range p.Tasks {
		d.node(in.ID, in)
	}

	for _, in := range p.Tasks {
		d.links(in)
	}

	slices.SortStableFunc(d.graph.Nodes,
		func(a, b graph.Node) int { return cmp.Compare(d.at[a.ID], d.at[b.ID]) })
	return d.graph, nil
}

// drawing is a graph that is being made.
type drawing struct {
	Plan
	others map[string]Instance // of other revisions, by id
	at     map[string]int64    // the revisions of what is drawn, by id
	graph  graph.Graph
}

// related are the keys of rows of instances of other revisions that may have to do with those of
// this one, each once. Not all of them exist.
func (d *drawing) related() (keys []table.Key) {
	known := map[table.Key]bool{}
	for _, in := range d.Tasks {
		known[taskSubject(in.ID).Key()] = true
	}

	add := func(id string) {
		k := taskSubject(id).Key()
		if id != "" && !known[k] {
			known[k] = true
			keys = append(keys, k)
		}
	}

	for _, in := range d.Tasks {
		for _, e := range in.Edges {
			add(e.ID)
		}
		for _, id := range d.candidates(in) {
			add(id)
		}
		add(in.superseder())
	}
	return keys
}

// candidates are the ids of instances that one may supersede, by task, those of the nearest
// revision first.
func (d *drawing) candidates(in Instance) (ids []string) {
	for _, task := range in.Cancels {
		for n := in.Revision - 1; n >= max(1, in.Revision-graphBack); n-- {
			ids = append(ids, instanceID(in.Archive, n, task, 0))
		}
	}
	return ids
}

// superseder is the instance that has superseded this one, "" if none has. Who cancelled one is in
// the same field, but is no instance.
func (in *Instance) superseder() string {
	if in.State != workflow.Superseded || !strings.HasPrefix(in.By, in.Archive+"/") {
		return ""
	}
	return in.By
}

// node draws an instance, once: the graph leaves out what it has.
func (d *drawing) node(id string, in Instance) {
	at, err := ParseID(id)
	if err != nil { // not one of an instance: it has no place
		at = ID{Task: id}
	}

	d.at[id] = at.N
	label := at.Task
	if at.Run > 0 {
		label += fmt.Sprintf(" (run %d)", at.Run)
	}

	note := ""
	if in.Lock != "" {
		note = "lock " + in.Lock
	}

	d.graph.Add(graph.Graph{Nodes: []graph.Node{{
		ID:    id,
		Label: label,
		Note:  note,
		State: string(in.State),
		Group: fmt.Sprintf("revision %d", at.N),
		Round: at.Task == workflow.Commit,
	}}})
}

// other draws an instance of another revision. Of one that is not in the table any more, end is
// what is known.
func (d *drawing) other(id string, end workflow.State) {
	in, known := d.others[id]
	if !known {
		in.State = end
	}
	d.node(id, in)
}

// links draws what an instance has to do with others: what it waits for, unless that follows from
// another link; of what it supersedes the nearest, and those that it really has superseded; and its
// superseder.
func (d *drawing) links(in Instance) {
	p := workflow.Planned{Task: in.Task}
	for _, e := range in.Edges {
		p.Awaits = append(p.Awaits, workflow.Await{Edge: e.Edge})
	}

	for i, e := range in.Edges {
		// Nothing was there to wait for; or another link says the same.
		if e.ID == "" || p.Implied(p.Awaits[i]) {
			continue
		}
		d.other(e.ID, e.End)
		d.link(graph.Link{From: e.ID, To: in.ID, Kind: graph.Then, Label: e.Condition()})
	}

	nearest := map[string]bool{}
	for _, id := range d.candidates(in) {
		other, there := d.others[id]
		// Of each task the nearest, and all that this one has superseded.
		if there && (!nearest[other.Task] || other.By == in.ID) {
			nearest[other.Task] = true
			d.other(id, "")
			d.link(graph.Link{From: in.ID, To: id, Kind: graph.Cancels, Label: "cancels"})
		}
	}

	if by := in.superseder(); by != "" {
		d.other(by, "")
		d.link(graph.Link{From: by, To: in.ID, Kind: graph.Cancels, Label: "cancels"})
	}
}

// link draws a link, once.
func (d *drawing) link(l graph.Link) { d.graph.Add(graph.Graph{Links: []graph.Link{l}}) }
