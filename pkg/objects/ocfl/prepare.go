package ocfl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/spill"
)

// fixityNames are those of our algorithms that OCFL names in addition to sha512 (OCFL 1.1,
// section 3.4); the digests of others stay in the list of files.
var fixityNames = []string{"md5", "sha1", "sha256"}

// preparer merges an object's inventory, as it is read, with a draft.
type preparer struct {
	draft Draft
	done  Prepared
	copy  func(Content) error
	head  int // of the object; 0: it has no version

	out    *encoder
	files  *spill.Sorter[known]
	state  *spill.Sorter[[]string]            // of the new version: it is known while the manifest is written
	fixity map[string]*spill.Sorter[[]string] // by algorithm; those of an object of other software are kept
	sorter func() *spill.Sorter[[]string]

	prev, next hash.Hash // over the files whose change counts, in the head and in the draft
}

// known is one fact about a digest: its path in the object, or a file of the draft.
type known struct {
	Has  []string `json:"has,omitempty"`
	File *File    `json:"file,omitempty"`
}

// Prepare writes to out the inventory that the object will have with the draft, and
// calls copy with each file whose bytes are new, and with each path of stored content that
// the draft's files need again: see Intact. The files may come in any order.
// Nothing in the root is changed. Memory does not grow with the number of files; the
// disk of the system's temporary folder does.
//
// If it fails, what was written to out is not an inventory. An error of the files, of out or of
// copy is returned as it is.
func (r Root) Prepare(ctx context.Context, d Draft, out io.Writer,
	copy func(Content) error) (Prepared, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sum := sha512.New()
	p := &preparer{
		draft:  d,
		done:   Prepared{ID: d.ID},
		copy:   copy,
		out:    newEncoder(io.MultiWriter(out, sum)),
		files:  spill.New[known](ctx),
		state:  spill.New[[]string](ctx),
		fixity: map[string]*spill.Sorter[[]string]{},
		sorter: func() *spill.Sorter[[]string] { return spill.New[[]string](ctx) },
		prev:   sha256.New(),
		next:   sha256.New(),
	}

	for _, name := range fixityNames {
		p.fixity[name] = p.sorter()
	}

	for f, err := range d.Files {
		if err == nil {
			err = p.files.Add(f.Digests["sha512"], known{File: &f})
		}
		if err != nil {
			return Prepared{}, err
		}
	}

	if err := p.write(ctx, r); err != nil {
		return Prepared{}, err
	}

	p.done.Digest = hex.EncodeToString(sum.Sum(nil))
	return p.done, nil
}

// write merges the object's inventory with the draft, section by section. The parts come in the
// order in which they can be read as a stream: the head before the manifest, the manifest before
// the states.
func (p *preparer) write(ctx context.Context, r Root) error {
	follows, err := p.follow(ctx, r)
	if err == nil && !follows {
		err = p.begin(0)
		if err == nil {
			err = p.merge()
		}
	}

	if err != nil {
		return err
	}
	return p.end()
}

// begin writes the part before the manifest, when the version before the draft is known.
func (p *preparer) begin(head int) error {
	p.head, p.done.Number = head, head+1
	p.out.text("id", p.draft.ID)
	p.out.text("type", specification)
	p.out.text("digestAlgorithm", "sha512")
	p.out.text("head", fmt.Sprintf("v%d", p.done.Number))
	p.out.begin("manifest")
	return p.out.err
}

// follow reads the inventory that the draft comes after, and returns whether there is
// one. Its head must be before its manifest, as in those that this package writes.
func (p *preparer) follow(ctx context.Context, r Root) (follows bool, err error) {
	if p.draft.First {
		return false, nil
	}
	info, err := r.scan(ctx, Prefix(p.draft.ID)+inventoryName, p.visitor())
	if fault.Is(err, fault.NotFound) && p.head == 0 {
		return false, nil
	}
	// The ETag is the condition of the commit: the version follows what was read here.
	p.done.Follows, p.done.After = info.ETag, info.digest
	return true, err
}

// visitor copies the object's inventory, and merges the draft into it.
func (p *preparer) visitor() visitor {
	return visitor{
		heads: p.begin,
		manifest: func(digest string, paths []string) error {
			p.recognise(paths)
			return p.files.Add(digest, known{Has: paths})
		},
		manifestEnd: func() error {
			if p.head == 0 {
				return errHead
			}
			return p.merge()
		},
		begin: p.out.beginVersion,
		state: func(n int, digest string, paths []string) error {
			if n == p.head {
				p.sumUp(p.prev, digest, paths)
			}
			return p.out.entry(digest, paths)
		},
		end: func(_ int, v Version) error { return p.out.endVersion(v) },
		fixity: func(algorithm, digest string, paths []string) error {
			if p.fixity[algorithm] == nil {
				p.fixity[algorithm] = p.sorter()
			}
			return p.fixity[algorithm].Add(digest, paths)
		},
	}
}

// recognise notes that the job's version is committed already: a content path of the
// manifest contains the job. Each version has content of its own, at least one system
// file, and the paths of every version contain its job. The version's message is not used.
func (p *preparer) recognise(paths []string) {
	for _, path := range paths {
		n, folder := writer(path)
		if jobOf(folder) == p.draft.Job && n <= p.head {
			p.done.Written, p.done.Number = true, n
		}
	}
}

// same is all content with one digest: its paths in the object, its names in the draft,
// one of the draft's files, and every digest of these bytes.
type same struct {
	digest  string
	has     []string
	names   []string
	file    *File
	digests map[string]string
}

// add adds a path of the object, or a file of the draft. Of equal files any one will do: their
// bytes are the same.
func (s *same) add(k known) {
	if k.File == nil {
		s.has = k.Has
		return
	}
	s.names = append(s.names, k.File.Path)
	s.file = k.File
	maps.Copy(s.digests, k.File.Digests) // depositors may give md5 for one name and sha1 for another
}

// merge writes the manifest, and notes the new version's state. It runs once all entries of the
// object's manifest are known: a file of the draft may have the bytes of any of them.
func (p *preparer) merge() error {
	var s same
	for r, err := range p.files.Sorted() {
		if err == nil && r.Key != s.digest {
			err = p.put(s)
			s = same{digest: r.Key, digests: map[string]string{}}
		}
		if err != nil {
			return err
		}
		s.add(r.Value)
	}

	if err := p.put(s); err != nil {
		return err
	}

	p.out.end()
	p.out.begin("versions")
	return p.out.err
}

// put writes the content with one digest into the manifest.
func (p *preparer) put(s same) error {
	if s.digest == "" {
		return nil
	}

	slices.Sort(s.names)
	if err := p.content(&s); err != nil {
		return err
	}

	for _, name := range fixityNames {
		if d := s.digests[name]; d != "" {
			if err := p.fixity[name].Add(d, s.has); err != nil {
				return err
			}
		}
	}

	if len(s.names) > 0 {
		p.sumUp(p.next, s.digest, s.names)
		if err := p.state.Add(s.digest, s.names); err != nil {
			return err
		}
	}
	return p.out.entry(s.digest, s.has)
}

// content decides where the content with one digest is, and calls copy with it unless only earlier
// versions name it.
func (p *preparer) content(s *same) error {
	if s.file == nil {
		return nil
	}

	s.file.Digests = s.digests
	if s.has == nil {
		s.has = []string{p.path(s.digest, s.names[len(s.names)-1])}
		p.done.Contents++
		return p.copy(Content{File: *s.file, To: s.has[0]})
	}

	for _, path := range s.has {
		p.done.Reused++
		if err := p.copy(Content{File: *s.file, To: path, Reused: true}); err != nil {
			return err
		}
	}
	return nil
}

// maxKey and maxSegment are how long a key in S3 and a name in the usual file
// systems can be, in bytes.
const (
	maxKey     = 1024
	maxSegment = 255
)

// path is where new content goes. Of equal files the last name is used, so that a system
// file is found below system/. A path that is too long for S3 or a file system is replaced
// by one that ends in the digest, which no logical path can have; the logical path stays.
func (p *preparer) path(digest, name string) string {
	to := fmt.Sprintf("v%d/content/%s/", p.done.Number, folderOf(p.draft.Job, p.draft.Attempt))
	long := len(Prefix(p.draft.ID))+len(to)+len(name) > maxKey
	for segment := range strings.SplitSeq(name, "/") {
		long = long || len(segment) > maxSegment
	}
	if long {
		name = "by-digest/" + digest
	}
	return to + name
}

// sumUp adds the files of one digest whose change counts to a sum over a state. Digests and paths
// are in order in both states, so equal states have equal sums. In an inventory of other software
// they may not be: then the version is stored although nothing changes.
func (p *preparer) sumUp(h hash.Hash, digest string, paths []string) {
	for _, path := range paths {
		if p.draft.counts(path) {
			fmt.Fprintf(h, "%s %s\n", digest, path)
		}
	}
}

// end writes the new version and the fixity. Only now both sums are complete.
func (p *preparer) end() error {
	if err := p.out.beginVersion(p.head + 1); err != nil {
		return err
	}

	for r, err := range p.state.Sorted() {
		if err == nil {
			err = p.out.entry(r.Key, r.Value)
		}
		if err != nil {
			return err
		}
	}

	if err := p.out.endVersion(p.draft.Version); err != nil {
		return err
	}

	p.out.end()

	if err := p.endFixity(); err != nil {
		return err
	}

	p.done.NoChange = !p.done.Written && p.head > 0 && bytes.Equal(p.prev.Sum(nil), p.next.Sum(nil))
	if p.done.NoChange {
		p.done.Number = p.head
	}
	return p.out.close()
}

// endFixity writes the fixity block, which is the last one.
func (p *preparer) endFixity() error {
	p.out.begin("fixity")
	for _, name := range slices.Sorted(maps.Keys(p.fixity)) {
		p.out.begin(name)
		for digest, all := range grouped(p.fixity[name].Sorted()) {
			if all.err != nil {
				return all.err
			}
			// A draft may repeat digests of stored bytes.
			paths := slices.Compact(slices.Sorted(slices.Values(slices.Concat(all.values...))))
			if err := p.out.entry(digest, paths); err != nil {
				return err
			}
		}

		p.out.end()
	}

	p.out.end()
	return p.out.err
}

type group[V any] struct {
	values []V
	err    error
}

// grouped gathers the records of one key.
func grouped[V any](records iter.Seq2[spill.Record[V], error]) iter.Seq2[string, group[V]] {
	return func(yield func(string, group[V]) bool) {
		key, values := "", []V(nil)
		for r, err := range records {
			if err != nil {
				yield("", group[V]{err: err})
				return
			}

			if r.Key != key && values != nil {
				if !yield(key, group[V]{values: values}) {
					return
				}
				values = nil
			}

			key, values = r.Key, append(values, r.Value)
		}

		if values != nil {
			yield(key, group[V]{values: values})
		}
	}
}
