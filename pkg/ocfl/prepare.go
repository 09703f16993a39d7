package ocfl

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/fault"
	"archivist/pkg/spill"
)

// Draft is a version that is to be written.
type Draft struct {
	ID  string // of the object
	Job string // whose keys the new content gets
	// Attempt is unique to who prepares: what is prepared again has keys of its own, so
	// that what was removed of an earlier attempt is not named. Without a slash or dot.
	Attempt string
	// First says that the object had no version when its system files were written. It is
	// not looked for again: the conditions of the commit find out.
	First bool
	Files iter.Seq2[File, error]
	// Counts says which logical paths make a difference: a draft whose files of these
	// paths are those of the head is no change. nil means those below producer/.
	Counts func(path string) bool
	Version
}

// Content is a file whose bytes the object does not have yet.
type Content struct {
	File
	To string `json:"to"` // content path: "v1/content/{job}.{attempt}/producer/a.pdf"
}

// Prepared is a version whose inventory is written down, outside of the root.
type Prepared struct {
	ID       string `json:"id"`
	Number   int    `json:"number"`
	Digest   string `json:"digest"`             // sha512 of the inventory
	Follows  string `json:"follows,omitempty"`  // ETag of the root inventory that it follows; "": there is none
	After    string `json:"after,omitempty"`    // its sha512
	Contents int    `json:"contents"`           // files whose bytes are new
	NoChange bool   `json:"noChange,omitempty"` // the head has the same files, as far as they count: no version is needed
	Written  bool   `json:"written,omitempty"`  // the job's version stands already
}

// fixityNames are the algorithms that OCFL has names for beside sha512 (OCFL
// 1.1, section 2, "Digest Algorithms"); others stay in the list of files.
var fixityNames = []string{"md5", "sha1", "sha256"}

// preparer merges an object's inventory, as it is read, with a draft.
type preparer struct {
	draft Draft
	done  Prepared
	copy  func(Content) error

	out    *bufio.Writer
	files  *spill.Sorter[known]
	fixity map[string]*spill.Sorter[[]string]
	state  *os.File // the new version's state, written while the manifest is
	opened bool     // the list of versions is begun

	was, is hash.Hash // of the files that count in the head and in the draft
	head    int
}

// known is what is known of a digest: where the object has it, or a file of the draft.
type known struct {
	Has  []string `json:"has,omitempty"`
	File *File    `json:"file,omitempty"`
}

// Prepare writes the inventory that the object will have with the draft to out,
// and gives copy each file whose bytes are new. The files' order does not count.
// It changes nothing in the root. Memory does not grow with the files, the disk
// of the system's temporary folder does.
func (r Root) Prepare(ctx context.Context, d Draft, out io.Writer, copy func(Content) error) (Prepared, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	state, err := os.CreateTemp("", "state")
	if err != nil {
		return Prepared{}, fmt.Errorf("ocfl: %w", err)
	}
	defer os.Remove(state.Name())
	defer state.Close()
	sum := sha512.New()
	if d.Counts == nil {
		d.Counts = func(path string) bool { return strings.HasPrefix(path, "producer/") }
	}
	p := &preparer{draft: d, copy: copy, out: bufio.NewWriterSize(io.MultiWriter(out, sum), 64<<10), files: spill.New[known](ctx),
		fixity: map[string]*spill.Sorter[[]string]{}, state: state, was: sha256.New(), is: sha256.New(), done: Prepared{ID: d.ID}}
	for _, name := range fixityNames {
		p.fixity[name] = spill.New[[]string](ctx)
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

// write merges what stands with the draft, section by section.
func (p *preparer) write(ctx context.Context, r Root) error {
	err := error(fault.New(fault.NotFound, "no inventory was looked for"))
	if !p.draft.First {
		err = p.follow(ctx, r)
	}
	if fault.Is(err, fault.NotFound) && p.head == 0 {
		if err = p.begin(0); err == nil {
			err = p.merge()
		}
	}
	if err == nil {
		err = p.end()
	}
	return err
}

// begin writes what comes before the manifest, once it is known which version the
// draft follows.
func (p *preparer) begin(head int) error {
	p.head, p.done.Number = head, head+1
	_, err := fmt.Fprintf(p.out, `{"id":%s,"type":%q,"digestAlgorithm":"sha512","head":"v%d","manifest":{`,
		quote(p.draft.ID), specification, p.done.Number)
	return err
}

// follow reads the inventory that the draft comes after. Its head comes before its
// manifest: it is one of ours.
func (p *preparer) follow(ctx context.Context, r Root) error {
	info, err := r.scan(ctx, Prefix(p.draft.ID)+inventoryName, visitor{
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
		begin: func(n int) error {
			fmt.Fprintf(p.out, `%s"v%d":{"state":{`, p.comma(), n)
			return nil
		},
		state: p.kept(),
		end:   p.meta,
		fixity: func(algorithm, digest string, paths []string) error {
			if p.fixity[algorithm] == nil {
				return fmt.Errorf("fixity has the algorithm %q, which this archive does not write", algorithm)
			}
			return p.fixity[algorithm].Add(digest, paths)
		},
	})
	p.done.Follows, p.done.After = info.ETag, info.digest
	return err
}

// recognise notes that the job's version stands already: content that it wrote is in
// the manifest. A version always has a system file of its own.
func (p *preparer) recognise(paths []string) {
	for _, path := range paths {
		if n, folder := writer(path); jobOf(folder) == p.draft.Job && n <= p.head {
			p.done.Written, p.done.Number = true, n
		}
	}
}

// same is what has one digest: where the object has it, the draft's names for it,
// one of these files, and all that is known of the digests of the bytes.
type same struct {
	digest string
	has    []string
	names  []string
	file   *File
	known  map[string]string
}

// merge writes the manifest, then the new version's state to a file.
func (p *preparer) merge() error {
	w := bufio.NewWriter(p.state)
	first, firstState := true, true
	var g same
	for r, err := range p.files.Sorted() {
		if err == nil && r.Key != g.digest {
			err = p.put(g, w, &first, &firstState)
			g = same{digest: r.Key, known: map[string]string{}}
		}
		if err != nil {
			return err
		}
		file := r.Value.File
		if file == nil {
			g.has = r.Value.Has
			continue
		}
		g.names = append(g.names, file.Path)
		g.file = file
		maps.Copy(g.known, file.Digests) // depositors may give md5 for one name and sha1 for another
	}
	if err := p.put(g, w, &first, &firstState); err != nil {
		return err
	}
	p.out.WriteString(`},"versions":{`)
	return w.Flush()
}

// put writes what has one digest.
func (p *preparer) put(g same, state *bufio.Writer, first, firstState *bool) error {
	if g.digest == "" {
		return nil
	}
	slices.Sort(g.names)
	if g.has == nil {
		g.file.Digests = g.known
		g.has = []string{p.path(g.digest, g.names[len(g.names)-1])}
		p.done.Contents++
		if err := p.copy(Content{*g.file, g.has[0]}); err != nil {
			return err
		}
	}
	for _, name := range fixityNames {
		if d := g.known[name]; d != "" {
			if err := p.fixity[name].Add(d, g.has); err != nil {
				return err
			}
		}
	}
	entry(p.out, first, g.digest, g.has)
	if len(g.names) > 0 {
		entry(state, firstState, g.digest, g.names)
		p.sumUp(p.is, g.digest, g.names)
	}
	return nil
}

// maxKey and maxSegment are how long a key in S3 and a name in the usual file
// systems can be, in bytes.
const (
	maxKey     = 1024
	maxSegment = 255
)

// path is where new content goes. Of equal files the last name counts, so that a
// system file is found below system/. A path that S3 or a file system cannot hold
// ends in the digest, where no logical path can be; the logical path stays.
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

// kept copies the states of the versions before.
func (p *preparer) kept() func(n int, digest string, paths []string) error {
	first, of := true, 0
	return func(n int, digest string, paths []string) error {
		if n != of {
			first, of = true, n
		}
		entry(p.out, &first, digest, paths)
		if n == p.head {
			p.sumUp(p.was, digest, paths)
		}
		return nil
	}
}

func (p *preparer) comma() string {
	if p.opened {
		return ","
	}
	p.opened = true
	return ""
}

// meta ends a version.
func (p *preparer) meta(_ int, v Version) error {
	return p.writeMeta(v)
}

func (p *preparer) writeMeta(v Version) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("ocfl: version of %s: %w", p.draft.ID, err)
	}
	_, err = p.out.WriteString("}," + string(data[1:]))
	return err
}

// end writes the new version and the fixity.
func (p *preparer) end() error {
	fmt.Fprintf(p.out, `%s"v%d":{"state":{`, p.comma(), p.head+1)
	if _, err := p.state.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(p.out, p.state); err != nil {
		return err
	}
	if err := p.writeMeta(p.draft.Version); err != nil {
		return err
	}
	p.out.WriteString(`},"fixity":{`)
	for i, name := range fixityNames {
		if i > 0 {
			p.out.WriteByte(',')
		}
		fmt.Fprintf(p.out, `%q:{`, name)
		first := true
		for digest, group := range grouped(p.fixity[name].Sorted()) {
			if group.err != nil {
				return group.err
			}
			// What a draft says again of stored bytes counts once.
			entry(p.out, &first, digest, slices.Compact(slices.Sorted(slices.Values(slices.Concat(group.values...)))))
		}
		p.out.WriteByte('}')
	}
	p.out.WriteString("}}")
	p.done.NoChange = !p.done.Written && p.head > 0 && string(p.was.Sum(nil)) == string(p.is.Sum(nil))
	if p.done.NoChange {
		p.done.Number = p.head
	}
	return p.out.Flush()
}

// entry writes one digest with its paths.
func entry(w *bufio.Writer, first *bool, digest string, paths []string) {
	if !*first {
		w.WriteByte(',')
	}
	*first = false
	w.WriteString(quote(digest) + ":[")
	for i, path := range paths {
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString(quote(path))
	}
	w.WriteByte(']')
}

func quote(s string) string {
	data, _ := jsontext.AppendQuote(nil, s) // names that are no UTF-8 were refused
	return string(data)
}

// sumUp takes the files of one digest that count into a sum over a state.
func (p *preparer) sumUp(h hash.Hash, digest string, paths []string) {
	for _, path := range paths {
		if p.draft.Counts(path) {
			fmt.Fprintf(h, "%s %s\n", digest, path)
		}
	}
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
