// Package svn reads Subversion repositories as archives. Revisions are those of the repository,
// also those that touch nothing below the URL; files are those below the URL, and there are none
// while its path does not exist. The transaction of a revision is UUID@DATE: the repository's, and
// the revision's property svn:date. Both can be read by a hook, and differ after a repository was
// restored and used again.
//
// It speaks version 2 of Subversion's HTTP protocol, which servers have since 1.7: OPTIONS,
// PROPFIND and GET (Subversion's notes/http-and-webdav/http-protocol-v2.txt). No Go library does.
// Nothing is kept on a disk: a revision of a folder is listed by one request, and what is equal in
// two revisions is known by its version, without looking into it.
//
// Files are as they are stored: keywords and ends of lines are not expanded, externals not
// followed.
package svn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// Open is what is below the URL of a location, which has been checked. It asks nothing of the
// server.
func Open(l archive.Location, d Deps) (*Source, error) {
	u, err := url.Parse(l.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "url: it cannot be read as a URL")
	}
	d.Limits = d.Limits.Or(archive.DefaultLimits)
	return &Source{location: l, url: u, deps: d}, nil
}

// Head asks the server, and keeps what it says.
func (s *Source) Head(ctx context.Context) (int64, error) {
	r, err := s.ask(ctx)
	return r.head, err
}

// at is what is known of the repository, which has revision n. The server is asked only if nothing
// is known yet, or the revision is newer than what is. One that does not exist is a NotFound.
func (s *Source) at(ctx context.Context, n int64) (r repository, err error) {
	s.mu.Lock()
	r = s.known
	s.mu.Unlock()
	if r.uuid == "" || n > r.head {
		r, err = s.ask(ctx)
	}
	if err != nil {
		return r, err
	}

	if n < 1 || n > r.head {
		return r, archive.Missing(s.location, n, r.head)
	}
	return r, nil
}

// Revision reads the properties of a revision. The token is a property of its own, which a client
// can set with the commit (svn commit --with-revprop), or else a trailer of the message. Properties
// of revisions can be changed later, so nothing of this is kept.
func (s *Source) Revision(ctx context.Context, n int64) (out archive.Revision, err error) {
	r, err := s.at(ctx, n)
	if err != nil {
		return out, err
	}

	all, err := s.find(ctx, number(r.revision, n), "0", revisionProperties)
	if err != nil {
		return out, err
	}

	if len(all) != 1 {
		return out, s.strange("says nothing of revision %d", n)
	}

	p := all[0]
	message := p.Log.text()
	out = archive.Revision{
		Number:      n,
		Transaction: r.uuid + "@" + p.Date.text(),
		Author:      archive.Cut(p.Author, archive.MaxAuthor),
		Message:     archive.Cut(message, archive.MaxMessage),
		Token:       strings.TrimSpace(archive.Cut(p.Token.text(), archive.MaxAuthor)),
	}
	if out.Token == "" {
		out.Token = archive.Token(message)
	}

	if date := p.Date.text(); date != "" {
		out.Time, err = time.Parse(time.RFC3339Nano, date)
		if err != nil {
			return out, s.strange("has the date %q at revision %d", date, n)
		}
		out.Time = out.Time.UTC()
	}
	return out, nil
}

// entry is a file or folder of a revision.
type entry struct {
	path string // below the URL

	// Of its content: the path of the folder, and its name.
	href       string
	folder     bool
	executable bool
	special    bool   // its content may be a link
	sha1       string // "": the server does not know it
	version    string // differs if anything below differs; equal ones are equal
}

// same reports whether two entries have the same content. Folders with the same version have. Files
// of different versions can be equal: a copy, or one that was changed back.
func (e entry) same(o entry) bool {
	if e.version == o.version && e.version != "" {
		return true
	}
	return !e.folder && !o.folder && e.sha1 != "" && e.sha1 == o.sha1 &&
		e.executable == o.executable &&
		e.special == o.special
}

// folder lists a folder of a revision by path, and counts; left is how many entries there may still
// be in all, beyond which it is an Invalid. A folder that does not exist has no entries: the URL
// may be of a path that is not there in each revision. href is made of the name again, so that a
// server cannot lead to another path.
func (s *Source) folder(ctx context.Context, r repository, n int64, path string,
	left *int) ([]entry, error) {
	at := number(r.root, n) + escape(join(r.below, path))
	all, err := s.find(ctx, at, "1", fileProperties)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	var out []entry
	for _, p := range all {
		name, below, err := childOf(at, p.Href)
		if err != nil {
			return nil, s.strange("lists %q in the folder %q", p.Href, at)
		}

		if !below {
			continue // the folder itself, or a file that is one
		}

		*left--
		if *left < 0 {
			return nil, fault.New(fault.Invalid,
				"revision %d of %s has more than %d files and folders", n, s.location,
				s.deps.Limits.Files)
		}

		out = append(out, entry{
			path:       join(path, name),
			href:       strings.TrimSuffix(at, "/") + escape(name),
			folder:     p.Collection != nil,
			executable: p.Executable != nil,
			special:    p.Special != nil,
			sha1:       p.SHA1,
			version:    p.CheckedIn,
		})
	}

	slices.SortFunc(out, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// walk calls each with the files below a folder of a revision, in the order of paths within each
// folder.
func (s *Source) walk(ctx context.Context, r repository, n int64, path string, left *int,
	each func(entry) error) error {
	entries, err := s.folder(ctx, r, n, path, left)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if e.folder {
			err = s.walk(ctx, r, n, e.path, left, each)
		} else {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Workflows reads the files of definitions of a revision. Links are left out: they are not
// followed.
func (s *Source) Workflows(ctx context.Context, n int64) ([]workflow.File, error) {
	r, err := s.at(ctx, n)
	if err != nil {
		return nil, err
	}

	var found archive.Workflows
	left := s.deps.Limits.Files
	err = s.walk(ctx, r, n, workflow.Folder, &left, func(e entry) error {
		if e.special {
			return nil
		}
		return found.Add(e.path, func(most int64) ([]byte, error) { return s.read(ctx, e, most) })
	})
	return found.Sorted(), err
}

// read reads at most so many bytes of a small file.
func (s *Source) read(ctx context.Context, e entry, most int64) (data []byte, err error) {
	err = s.content(ctx, e, func(r io.Reader) error {
		data, err = io.ReadAll(io.LimitReader(r, most))
		return err
	})
	return data, err
}

// content calls use with the content of a file, again if a try fails: use must be able to begin
// anew, or refuse that.
func (s *Source) content(ctx context.Context, e entry, use func(io.Reader) error) error {
	return s.send(ctx, http.MethodGet, e.href, "", "",
		func(resp *http.Response) error { return use(resp.Body) })
}

// Changed compares the folders of two revisions, of those that may differ.
func (s *Source) Changed(ctx context.Context, base, n int64) ([]string, error) {
	r, err := s.at(ctx, max(base, n))
	if err != nil {
		return nil, err
	}

	if base < 0 || n < 1 {
		return nil, archive.Missing(s.location, min(base, n), r.head)
	}

	c := comparison{s: s, r: r, base: base, n: n, left: s.deps.Limits.Files}
	if err := c.folders(ctx, "", base > 0, true); err != nil {
		return nil, err
	}

	slices.Sort(c.paths)
	return slices.Compact(c.paths), nil
}

// comparison is one of two revisions. left bounds the entries of both together.
type comparison struct {
	s       *Source
	r       repository
	base, n int64
	left    int
	paths   []string
}

// folders compares a folder; was and is say in which revisions it is one. Entries that are equal
// are not looked into.
func (c *comparison) folders(ctx context.Context, path string, was, is bool) error {
	before, after := map[string]entry{}, map[string]entry{}
	for _, side := range []struct {
		there bool
		n     int64
		into  map[string]entry
	}{{was, c.base, before}, {is, c.n, after}} {
		if !side.there {
			continue
		}
		entries, err := c.s.folder(ctx, c.r, side.n, path, &c.left)
		if err != nil {
			return err
		}
		for _, e := range entries {
			side.into[e.path] = e
		}
	}

	for path, e := range after {
		old, there := before[path]
		delete(before, path)
		if there && old.same(e) {
			continue
		}
		if err := c.differ(ctx, path, old, e, there, true); err != nil {
			return err
		}
	}

	for path, old := range before {
		if err := c.differ(ctx, path, old, entry{}, true, false); err != nil {
			return err
		}
	}
	return nil
}

// differ adds a path that is not as it was, and what is below it, if it is or was a folder. A file
// that became a folder is both.
func (c *comparison) differ(ctx context.Context, path string, a, b entry, was, is bool) error {
	if was && !a.folder || is && !b.folder {
		c.paths = append(c.paths, path)
	}
	if a.folder || b.folder {
		return c.folders(ctx, path, a.folder, b.folder)
	}
	return nil
}

// atOnce is how many files are brought at the same time.
const atOnce = 8

// Checkout brings the files of a revision, and compares them with their digests. Files are
// requested while folders are still listed; the first error ends both.
func (s *Source) Checkout(ctx context.Context, n int64, folder string) error {
	r, err := s.at(ctx, n)
	if err != nil {
		return err
	}

	w, err := archive.NewWriter(folder, s.deps.Limits)
	if err != nil {
		return err
	}

	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	left := s.deps.Limits.Files
	err = s.walk(within, r, n, "", &left, func(e entry) error {
		group.Go(func() error { return s.write(within, w, n, e) })
		return nil
	})

	if failed := group.Wait(); failed != nil {
		err = failed // the walk ends because of it
	}

	if err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// maxTarget bounds the target of a link in bytes, as Linux does.
const maxTarget = 4095

// write writes a file or a link. The content of a link is "link TARGET" (a file with the property
// svn:special). A file is written once: after a part of it was received, a second try is an
// Unavailable, and the whole checkout has to be tried again.
func (s *Source) write(ctx context.Context, w *archive.Writer, n int64, e entry) error {
	if e.special {
		data, err := s.read(ctx, e, maxTarget+10)
		if err != nil {
			return err
		}
		if target, isLink := strings.CutPrefix(string(data), "link "); isLink {
			return w.Link(e.path, target)
		}
	}

	tried := false
	return s.content(ctx, e, func(r io.Reader) error {
		if tried { // a part of it is there
			return fault.New(fault.Unavailable, "%s: the file %s was not received as a whole",
				s.location, e.path)
		}

		tried = true
		sum := sha1.New()
		if err := w.File(e.path, e.executable, io.TeeReader(r, sum)); err != nil {
			return err
		}

		if got := hex.EncodeToString(sum.Sum(nil)); e.sha1 != "" && got != e.sha1 {
			return fault.New(fault.Invalid,
				"revision %d of %s is damaged: %s has the sha1 %s instead of %s", n,
				s.location, e.path, got, e.sha1)
		}
		return nil
	})
}
