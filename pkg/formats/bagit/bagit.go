// Package bagit checks bags: folders that say of each of their files what its digests are (source: RFC 8493, "The BagIt
// File Packaging Format (V1.0)", and its drafts since version 0.93).
//
//	report, err := bagit.Check(ctx, os.DirFS("delivery"), nil)
//	if err == nil && len(report.Problems) == 0 { … } // it is complete and valid
//
// What a bag says is compared with what is there, all of it: so a report has every problem, each with the file and the
// line. An error is one of reading, and says nothing of the bag.
package bagit

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Check checks a bag. The error is one of reading the files, or of the context. progress may be nil.
func Check(ctx context.Context, bag fs.FS, progress Progress) (*Report, error) {
	c, err := begin(ctx, bag)
	if err != nil || c.version == (version{}) {
		return &c.Report, err
	}
	if err := c.info(); err != nil {
		return nil, err
	}

	for _, name := range slices.Sorted(maps.Keys(c.present)) {
		if !strings.HasPrefix(name, payload+"/") {
			c.TagFiles = append(c.TagFiles, name)
		}
	}

	c.payload()
	if err := c.verify(ctx, progress); err != nil {
		return nil, err
	}
	c.oxum()
	return &c.Report, nil
}

// Fetches are the files that are missing in a bag, and that fetch.txt says where to find. With a problem, the bag is
// not valid, whatever these files are.
func Fetches(ctx context.Context, bag fs.FS) (files []Fetch, problems []Problem, err error) {
	c, err := begin(ctx, bag)
	for _, f := range c.fetches {
		if _, there := c.present[f.Path]; !there {
			f.Digests = map[string]string{}
			for algorithm, is := range c.digests[f.Path] {
				f.Digests[algorithm] = is.digest
			}
			files = append(files, f)
		}
	}
	return files, c.Problems, err
}

// begin begins a check: it reads what there is, and what should be. Without a version nothing else of the bag can be
// read, and it may be no bag at all.
func begin(ctx context.Context, bag fs.FS) (*check, error) {
	c := &check{FS: bag, present: map[string]int64{}, digests: map[string]map[string]said{},
		listed: map[string]map[string]bool{}, fetched: map[string]int{}}
	walk := func() error { return c.walk(ctx) }
	for _, step := range []func() error{c.declaration, walk, c.manifests, c.fetch} {
		if err := step(); err != nil || c.version == (version{}) {
			return c, err
		}
	}
	return c, nil
}

// walk finds all files. Links and devices are none: what they are elsewhere is not known.
func (c *check) walk(ctx context.Context) error {
	if k, ok := c.FS.(Known); ok {
		return k.Each(func(name string, size int64, _ map[string]string) error {
			c.present[name] = size
			return nil
		})
	}

	folder := false
	err := fs.WalkDir(c.FS, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case e.IsDir():
			folder = folder || name == payload
			return nil
		case !e.Type().IsRegular():
			c.problem(name, 0, "it is a link or a device; a bag has only files and folders")
			return nil
		}

		info, err := e.Info()
		if err != nil {
			return err
		}
		c.present[name] = info.Size()
		return nil
	})
	if err == nil && !folder {
		c.problem("", 0, "there is no folder %s, which each bag has", payload)
	}
	return err
}

// payload compares the files of the payload with what the manifests list.
func (c *check) payload() {
	var files []string
	for name, size := range c.present {
		if strings.HasPrefix(name, payload+"/") {
			files = append(files, name)
			c.Files++
			c.Bytes += size
		}
	}

	slices.Sort(files)
	for _, name := range files {
		lacking := slices.DeleteFunc(slices.Clone(c.Algorithms), func(a string) bool { return c.listed[a][name] })
		switch {
		case len(c.Algorithms) > 0 && len(lacking) == len(c.Algorithms):
			c.problem(name, 0, "no manifest lists it")
		case len(lacking) > 0 && c.version.atLeast(1, 0):
			c.problem(name, 0, "manifest-%s.txt does not list it; each manifest must list every file", lacking[0])
		}
		if system[path.Base(name)] {
			c.warning(name, 0, "it is a file that a system makes by itself; it changes without anybody's doing")
		}
	}

	for _, a := range c.Algorithms {
		for name := range c.listed[a] {
			c.exists(name, c.digests[name][a].at)
		}
	}
	sortProblems(c.Problems)
	c.Problems = slices.Compact(c.Problems)
}

// system are files that operating systems make, and remove, by themselves.
var system = map[string]bool{".DS_Store": true, "Thumbs.db": true, "desktop.ini": true}

// exists reports a file that a manifest lists and that is not there. Some tools change letters of names: a name that
// differs by case, or in how Unicode writes it, is a warning if the file is listed under its own name, too, with the
// same digest.
func (c *check) exists(name string, at Problem) {
	if _, there := c.present[name]; there {
		return
	}

	switch {
	case c.fetched[name] > 0:
		c.problem(name, 0, "it is not there yet: %s says where it is", fetchFile)
	case c.alike(name):
		c.warning(at.File, at.Line, "%s is listed twice, by names that some systems do not tell apart", name)
	default:
		c.problem(name, 0, "it is not there; %s lists it in line %d", at.File, at.Line)
	}
}

// alike reports whether another listed file that is there has a name that some systems do not tell apart, and the same
// digests.
func (c *check) alike(name string) bool {
	for other := range c.present {
		if other == name || fold(other) != fold(name) {
			continue
		}
		for a, s := range c.digests[name] {
			if c.digests[other][a].digest != s.digest {
				return false
			}
		}
		return true
	}
	return false
}
