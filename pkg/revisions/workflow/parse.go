package workflow

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Parse reads the files of one revision: each is a list of tasks, in YAML or JSON. Other files are
// left out. If anything is wrong, there is no Definition, but all that is wrong, sorted by file and
// place; of a file that is no YAML or JSON only the first thing.
//
// The files may be given in any order, and may be hostile: size, number, nesting and tokens are
// bounded, and a panic of the YAML library is a problem of the file. No file is a Definition
// without tasks.
func Parse(files []File) (*Definition, []Problem) {
	p, tokens := parsing{byName: map[string]*draft{}}, maxTokens
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		if !readable(f.Path) {
			continue
		}

		s := &source{path: f.Path, tokens: tokens}
		p.sources = append(p.sources, s)
		if len(p.sources) > MaxFiles {
			s.refuse(nil, "more than %d files below %s", MaxFiles, Folder)
			break
		}

		if root := s.read(f.Data); root != nil && root.kind != empty {
			p.file(s, root)
		}

		tokens = s.tokens
	}

	p.check()
	d := p.definition()
	if problems := p.problems(); len(problems) > 0 {
		return nil, problems
	}
	return d, nil
}

// readable reports whether files of the name are read.
func readable(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// IsFile reports whether a path, from the root of an archive, is that of a file with tasks.
func IsFile(name string) bool { return strings.HasPrefix(name, Folder+"/") && readable(name) }

// file reads the tasks of a file. COMMIT counts here, so one more than MaxTasks is read; names
// checks the number exactly.
func (p *parsing) file(s *source, root *node) {
	if root.kind != sequence {
		s.refuse(root, "expected a list of tasks, each with a name, not %s", root.said())
		return
	}
	for _, n := range root.values {
		if len(p.drafts) > MaxTasks {
			s.refuse(n, "more than %d tasks", MaxTasks)
			return
		}
		if d := s.task(n); d != nil {
			p.drafts = append(p.drafts, d)
		}
	}
}

// problems are all problems of all files, in their order; the size of all tasks together comes
// last.
func (p *parsing) problems() []Problem {
	var all []Problem
	for _, s := range p.sources {
		slices.SortStableFunc(s.problems, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		all = append(all, s.problems...)
		if s.left > 0 {
			all = append(all,
				Problem{File: s.path, Message: fmt.Sprintf("%d more problems", s.left)})
		}
	}

	if p.large != nil {
		all = append(all, *p.large)
	}
	return all
}

// definition is what the drafts define, in one order, so that equal content is equal; of no use if
// there are problems. It also checks the size of all.
func (p *parsing) definition() *Definition {
	d := &Definition{}
	for _, draft := range p.drafts {
		t := draft.task
		p.allow(&t)
		sortEdges(t.Depends)
		slices.Sort(t.Cancels)
		slices.Sort(t.Inputs)
		if t.Name == Commit {
			d.Commit = t.Depends
			continue
		}
		d.Tasks = append(d.Tasks, t)
	}

	slices.SortFunc(d.Tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Name, b.Name))
	})

	if size := len(d.canonical()); size > MaxSize {
		p.large = &Problem{File: Folder,
			Message: fmt.Sprintf("all tasks together have %d bytes; at most %d are "+
				"accepted; keep long scripts as files of the archive, and run these", size,
				MaxSize)}
	}
	return d
}

// sortEdges puts edges into one order: those of the revision first, then by task. A task has one of
// each at most.
func sortEdges(edges []Edge) {
	slices.SortFunc(edges, func(a, b Edge) int {
		if a.Prev != b.Prev {
			if b.Prev {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Task, b.Task)
	})
}
