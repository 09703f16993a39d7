package revision

import (
	"cmp"
	"context"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// An instance finds the outputs of dependencies that its definition names as inputs. Whose they are is decided
// once, before its first attempt: by its edges, or when a run is made. They are compared with the digest of
// their list, which is in the row of the instance that left them.

// handEdges decides by the edges whose outputs an instance gets that a revision has planned. All of them are
// decided by then.
func (in *Instance) handEdges() {
	if in.Run > 0 || len(in.Inputs) == 0 {
		return
	}

	inputs := make([]Input, 0, len(in.Inputs))
	for _, i := range in.Inputs {
		e := edgeOf(in.Edges, i.Name)
		inputs = append(inputs, Input{i.Name, cmp.Or(e.By, e.ID)}) // what has healed it, or what it is on
	}
	in.Inputs = inputs
}

// edgeOf is the edge that a definition writes so; empty if there is none.
func edgeOf(edges []Awaits, name string) Awaits {
	for _, e := range edges {
		if e.String() == name {
			return e
		}
	}
	return Awaits{}
}

// inputsOf decides whose outputs a run of a task finds: those that the planned instance of the revision would
// find now. What commits do not start waits for nothing; its dependencies are those of the revision. A Conflict
// means that one has not ended as is needed, for which a run does not wait. One of an earlier revision that has ended
// otherwise hands over nothing: else no run by hand could heal a task that hands its outputs on to itself.
func (s *Store) inputsOf(ctx context.Context, r *revisionRow, t *workflow.Task) (inputs []Input, err error) {
	if len(t.Inputs) == 0 {
		return nil, nil
	}

	planned, err := s.found(ctx, instanceID(r.Archive, r.Revision.Number, t.Name, 0))
	if err != nil {
		return nil, err
	}

	edges := planned.Edges
	if planned.State == "" {
		for _, e := range t.Depends {
			edges = append(edges, Awaits{Edge: e, ID: instanceID(r.Archive, r.Revision.Number, e.Task, 0)})
		}
	}

	for _, name := range t.Inputs {
		e := edgeOf(edges, name)
		id := e.By
		if id == "" && e.ID != "" {
			id, err = s.given(ctx, e)
		}

		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Input{name, id})
	}
	return inputs, nil
}

// given is the instance whose outputs an edge hands to a run: the planned one if it has succeeded, else a run of it
// that has since, else the planned one if its end is what the edge needs.
func (s *Store) given(ctx context.Context, e Awaits) (string, error) {
	at, err := ParseID(e.ID)
	if err != nil {
		return "", err
	}

	in, err := s.found(ctx, e.ID)
	if err != nil {
		return "", err
	}

	r, err := s.revisionRow(ctx, at.Ref, at.N)
	if err != nil {
		return "", err
	}

	healed := r.Healed[at.Task]
	if in.State == workflow.Success || e.On == workflow.Failed {
		healed = "" // it stands for itself
	}

	switch {
	case healed != "":
		return healed, nil
	case e.Judge(in.State) == workflow.Satisfied:
		return e.ID, nil
	case e.Prev && in.State.Over():
		return "", nil
	case in.State == "":
		return "", fault.New(fault.Conflict, "the task needs the outputs of %s, which there is not", e.ID)
	}
	return "", fault.New(fault.Conflict, "the task needs the outputs of %s, which must be %s, and is %s", e.ID, e.On,
		in.State)
}

// handed are the inputs of an instance as its runner gets them. An Invalid says which of them cannot be had.
func (s *Store) handed(ctx context.Context, in *Instance) (all []runner.Input, err error) {
	for _, i := range in.Inputs {
		given := runner.Input{Folder: strings.ReplaceAll(i.Name, ":", "/"), Of: i.ID}
		all = append(all, given)
		if i.ID == "" {
			continue
		}

		of, err := s.found(ctx, i.ID)
		switch {
		case err != nil:
			return nil, err
		case of.State == "":
			return nil, fault.New(fault.Invalid,
				"the input %s is lost: there is no instance %s", i.Name, i.ID)
		case of.Last == nil || of.Last.OutputCount == 0 || of.Last.Attempt != of.Attempt:
			continue // its newest attempt has left nothing
		case of.Last.List == "":
			return nil, fault.New(fault.Invalid,
				"the input %s cannot be checked: %s has no digest of its outputs; "+
					"run it again", i.Name, i.ID)
		}

		e := &all[len(all)-1]
		e.Prefix, e.Files, e.List = of.Prefix(), of.Last.OutputCount, of.Last.List
	}
	return all, nil
}
