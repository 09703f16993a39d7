package property

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"archivist/pkg/ingest"
)

// Values from which well-formed submissions are made: few, so that they meet.
var (
	titles = []value{"", "A map", "Karte von Österreich", "地図", "Tom & <Jerry>", "title: with colon",
		"%20 100 % | pipe", "(:unkn)", " padded "}
	creators = []value{"", "Doe, Jane", "Ünal, Ö.", "(:unas)", "A; B"}
	dates    = []value{"", "2026-11-21", "ca. 1900", "(:null)"}
	ids      = []value{"a", "b", "c", "doi:10.5072/FK2", "käse 1", "http://example.org/x?y=z#1"}
	names    = []value{"a.txt", "b.txt", "A.TXT", "data/c.xml", "data/deep/d e.pdf", "e%7cf.txt", "g#h?.txt", "ü.txt",
		"sys+tem&.bin", "x|y.txt", "index.html"}
	contents = []value{"", "one", "two", "three\n", "<html>", "\x00\x01\xff"}
	kinds    = []string{ingest.TypeFile, ingest.TypeObjectManifest, ingest.TypeBatchManifest,
		ingest.TypeSingleFileBatch}
	hashes   = []string{"", "", "md5", "sha1", "sha256", "sha384", "sha512", "adler32", "crc32"}
	troubles = []trouble{notFound, unavailable, closed, cut, errorPage, silent}
)

// one draws true once in n times.
func one(t *rapid.T, n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == n-1 }

func pick[T any](t *rapid.T, from []T, label string) T { return rapid.SampledFrom(from).Draw(t, label) }

// histories draws what depositors submit: new submissions, and earlier ones with one
// change.
func histories(most int) *rapid.Generator[history] {
	return rapid.Custom(func(t *rapid.T) (h history) {
		for n := range rapid.IntRange(1, most).Draw(t, "submissions") {
			if n > 0 && rapid.Bool().Draw(t, "again") {
				h.Submissions = append(h.Submissions, again(t, pick(t, h.Submissions, "of")))
			} else {
				h.Submissions = append(h.Submissions, fresh(t))
			}
		}
		return h
	})
}

func fresh(t *rapid.T) submission {
	s := submission{Collection: "maps", Kind: pick(t, kinds, "kind"), Untyped: one(t, 3, "untyped"), Submitter: pick(t,
		creators, "submitter")}
	if one(t, 4, "other collection") {
		s.Collection = "books"
	}
	s.Form = described(t, 2)
	objects := 1
	if many(s.Kind) {
		objects = rapid.IntRange(1, 3).Draw(t, "objects")
		s.Check, s.Failing = claimed(t), fails(t)
		if !one(t, 12, "of one object") {
			s.Form.Local, s.Form.Primary = nil, 0
		} else if one(t, 3, "if version") {
			s.IfVersion = 2
		}
	} else if one(t, 8, "if version") {
		s.IfVersion = rapid.IntRange(1, 2).Draw(t, "version")
	}
	for range objects {
		s.Objects = append(s.Objects, anObject(t, s.Kind))
	}
	if one(t, 3, "mail") {
		s.Mail = []value{"jane@example.org"}
	}
	return settle(s)
}

// settle removes from a submission what makes its result depend on the order in which its
// objects are processed.
func settle(s submission) submission {
	seen := map[value]bool{}
	for i := range s.Objects {
		o := &s.Objects[i]
		o.Row.Local = slices.DeleteFunc(slices.Clone(o.Row.Local), func(id value) bool { return seen[id] })
		for _, id := range o.Row.Local {
			seen[id] = true
		}
		if i > 0 {
			o.Row.Primary = min(o.Row.Primary, 0)
		}
	}
	return s
}

func described(t *rapid.T, identified int) said {
	s := said{Who: pick(t, creators, "who"), What: pick(t, titles, "what"), When: pick(t, dates, "when")}
	for range rapid.IntRange(0, identified).Draw(t, "ids") {
		if id := pick(t, ids, "id"); !slices.Contains(s.Local, id) {
			s.Local = append(s.Local, id)
		}
	}
	if one(t, 6, "primary") {
		s.Primary = rapid.IntRange(-2, 3).Draw(t, "ark")
	}
	return s
}

func anObject(t *rapid.T, kind string) (o object) {
	if many(kind) {
		o.Row = described(t, 2)
	}
	files := 1
	if kind == ingest.TypeObjectManifest || kind == ingest.TypeBatchManifest {
		files = rapid.IntRange(1, 4).Draw(t, "files")
		o.Check, o.Failing = claimed(t), fails(t)
		for _, d := range []*said{&o.ERC, &o.DataCite, &o.DC} {
			if one(t, 5, "package") {
				*d = described(t, 0)
			}
		}
		if !o.ERC.empty() && !many(kind) && one(t, 3, "id in the package") {
			o.ERC.Local = []value{pick(t, ids, "id")}
		}
	}
	for range files {
		if f := aFile(t); !o.has(f.Name) {
			o.Files = append(o.Files, f)
		}
	}
	return o
}

func (o object) has(name value) bool {
	return slices.ContainsFunc(o.Files, func(f file) bool { return f.Name == name })
}

func aFile(t *rapid.T) file {
	return file{Name: pick(t, names, "name"), Content: pick(t, contents, "content"), Check: claimed(t),
		Failing: fails(t)}
}

func claimed(t *rapid.T) claim {
	c := claim{Algorithm: pick(t, hashes, "algorithm"), Size: pick(t, []size{"", rightSize, rightSize}, "size")}
	c.Wrong = c.Algorithm != "" && one(t, 20, "wrong digest")
	if one(t, 20, "wrong size") {
		c.Size = wrongSize
	}
	return c
}

func fails(t *rapid.T) failing {
	if !one(t, 6, "failing") {
		return failing{}
	}
	return failing{How: pick(t, troubles, "trouble"), Times: rapid.IntRange(0, 5).Draw(t, "times"),
		Head: pick(t, []trouble{fine, fine, notFound, silent, closed}, "head")}
}

// again is an earlier submission with no change or one change.
func again(t *rapid.T, s submission) submission {
	s.Objects = slices.Clone(s.Objects)
	i := rapid.IntRange(0, len(s.Objects)-1).Draw(t, "object")
	o := &s.Objects[i]
	to := &s.Form
	if many(s.Kind) {
		to = &o.Row
	}
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 1:
		to.What = pick(t, titles, "what")
	case 2:
		to.Local = append(slices.Clone(to.Local), value(fmt.Sprint("new-", rapid.IntRange(1, 2).Draw(t, "new"))))
	case 3:
		o.Files = slices.Clone(o.Files)
		o.Files[0].Content = pick(t, contents, "content")
	case 4:
		o.Files = slices.Clone(o.Files)
		if name := pick(t, names, "name"); !o.has(name) {
			o.Files[0].Name = name
		}
	case 5:
		to.Primary = 1
	case 6:
		s.IfVersion = rapid.IntRange(0, 2).Draw(t, "version")
	}
	if many(s.Kind) && s.IfVersion == 1 {
		s.IfVersion = 0
	}
	return settle(s)
}
