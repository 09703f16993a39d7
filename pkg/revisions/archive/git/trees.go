package git

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// maxDepth bounds how deep folders are: each has at least one character in a path of at most 4,095.
const maxDepth = 2048

// walk calls each with the files, links and submodules of a tree, with their paths from its root.
// It bounds their number: a small repository can have the same tree very often.
func (s *store) walk(ctx context.Context, t *object.Tree, prefix string,
	each func(path string, e object.TreeEntry) error) error {
	for _, e := range t.Entries {
		if err := s.count1(ctx, prefix); err != nil {
			return err
		}

		path := prefix + e.Name
		if e.Mode != filemode.Dir {
			if err := each(path, e); err != nil {
				return err
			}
			continue
		}

		below, err := s.tree(e.Hash)
		if err != nil {
			return err
		}

		if err := s.walk(ctx, below, path+"/", each); err != nil {
			return err
		}
	}
	return nil
}

// count1 counts an entry of a tree, and ends what takes too long: a tree in a tree, many times, is
// exponential.
func (s *store) count1(ctx context.Context, prefix string) error {
	s.walked++
	most := s.source.deps.Limits.Or(archive.DefaultLimits).Files
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.walked > most:
		return fault.New(fault.Invalid, "the revision has more than %d files and folders", most)
	case strings.Count(prefix, "/") > maxDepth:
		return fault.New(fault.Invalid, "the revision has folders in more than %d levels", maxDepth)
	}
	return nil
}

// definitions collects the files of definitions. Links are left out: they are not followed. Only
// the folder of definitions is read; without it there are none.
func (s *store) definitions(ctx context.Context, commit plumbing.Hash,
	found *archive.Workflows) error {
	t, err := s.root(commit)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(t.Entries, func(e object.TreeEntry) bool {
		return e.Name == workflow.Folder && e.Mode == filemode.Dir
	})
	if i < 0 {
		return nil
	}

	t, err = s.tree(t.Entries[i].Hash)
	if err != nil {
		return err
	}
	return s.walk(ctx, t, workflow.Folder+"/", func(path string, e object.TreeEntry) error {
		if e.Mode != filemode.Regular && e.Mode != filemode.Executable {
			return nil
		}
		return found.Add(path, func(most int64) ([]byte, error) {
			r, _, err := s.blob(e.Hash)
			if err != nil {
				return nil, err
			}
			defer r.Close()
			return io.ReadAll(io.LimitReader(r, most))
		})
	})
}

// changed are the paths that differ between two commits, sorted. Of a rename there are both paths.
func (s *store) changed(ctx context.Context, from, to plumbing.Hash) ([]string, error) {
	a, err := s.root(from)
	if err != nil {
		return nil, err
	}

	b, err := s.root(to)
	if err != nil {
		return nil, err
	}

	var paths []string
	if err := s.compare(ctx, a, b, "", &paths); err != nil {
		return nil, err
	}

	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// compare adds the paths that differ between two trees, below prefix. Entries with the same hash
// and mode are equal, whatever is in them, and are not looked into.
func (s *store) compare(ctx context.Context, a, b *object.Tree, prefix string,
	paths *[]string) error {
	before := map[string]object.TreeEntry{}
	for _, e := range a.Entries {
		before[e.Name] = e
	}

	for _, e := range b.Entries {
		// The zero entry, if there was none of the name.
		old := before[e.Name]
		delete(before, e.Name)
		// The same hash and mode: equal, with all that is below.
		if old == e {
			continue
		}
		if err := s.differ(ctx, old, e, prefix+e.Name, paths); err != nil {
			return err
		}
	}

	for name, old := range before {
		if err := s.differ(ctx, old, object.TreeEntry{}, prefix+name, paths); err != nil {
			return err
		}
	}
	return nil
}

// differ adds the paths of an entry that is not as it was; the zero entry is one that does not exist.
// A file that became a folder is both: its own path, and those in the folder.
func (s *store) differ(ctx context.Context, a, b object.TreeEntry, path string,
	paths *[]string) error {
	if err := s.count1(ctx, path); err != nil {
		return err
	}

	below := [2]*object.Tree{{}, {}}
	for i, e := range [2]object.TreeEntry{a, b} {
		switch {
		case e.Name == "":
		case e.Mode != filemode.Dir:
			*paths = append(*paths, path)
		default:
			t, err := s.tree(e.Hash)
			if err != nil {
				return err
			}
			below[i] = t
		}
	}
	return s.compare(ctx, below[0], below[1], path+"/", paths)
}

// checkout writes the files of a commit.
func (s *store) checkout(ctx context.Context, commit plumbing.Hash, folder string) error {
	t, err := s.root(commit)
	if err != nil {
		return err
	}

	w, err := archive.NewWriter(folder, s.source.deps.Limits)
	if err != nil {
		return err
	}

	err = s.walk(ctx, t, "",
		func(path string, e object.TreeEntry) error { return s.write(w, path, e) })
	if err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// write writes a file or a link of a checkout. Submodules are noted and left out; a path with a
// part .git is an Invalid, in any case of its letters.
func (s *store) write(w *archive.Writer, path string, e object.TreeEntry) error {
	isGit := func(part string) bool { return strings.EqualFold(part, ".git") }
	if slices.ContainsFunc(strings.Split(path, "/"), isGit) {
		return fault.New(fault.Invalid,
			"the path %q has a part .git, which Git does not allow", path)
	}

	if e.Mode == filemode.Submodule {
		if s.source.deps.Note != nil {
			s.source.deps.Note(s.location.String() + ": the submodule " + path +
				" is left out of the checkout")
		}
		return nil
	}

	r, size, err := s.blob(e.Hash)
	if err != nil {
		return err
	}

	defer r.Close()
	if e.Mode != filemode.Symlink {
		return w.File(path, e.Mode == filemode.Executable, r)
	}

	// Before it is read: the content of a link is its target.
	if size > maxTarget {
		return fault.New(fault.Invalid, "the link %q has a target of %d bytes", path, size)
	}

	target, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return w.Link(path, string(target))
}

// maxTarget bounds the target of a link in bytes, as Linux does.
const maxTarget = 4095
