package stage

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
)

// maxBagFiles limits the files of a bag: what its manifests say of each is in memory while they are compared.
const maxBagFiles = 100_000

// bag validates the files of a container if they are a bag, by the digests that were computed when they were unpacked.
// It returns why the bag is refused, or "".
func (u *unpacking) bag(ctx context.Context) (refused string, err error) {
	files, err := u.bagOf(ctx, u.Work.Entries(ctx, u.job))
	switch {
	case err != nil || files == nil:
		return "", err
	case u.job.Files > maxBagFiles:
		return tooMany(u.job.Files) + ", or submit it with the type file", nil
	}

	report, err := bagit.Check(ctx, files, nil)
	if err != nil {
		return "", err
	}

	if n := len(report.Problems); n > 0 {
		return fmt.Sprintf("the bag is not valid (%s): %s. Correct it, then submit it again; to preserve it as it is, "+
			"submit it with the type file", ingest.Counted(n, "problem"), shown(report.Problems)), nil
	}

	profiles, refused, err := u.conforms(ctx, report)
	if err != nil || refused != "" {
		return refused, err
	}

	for _, w := range report.Warnings {
		warnOnce(u.job, ingest.Cut("bag: "+w.String(), maxProblem))
	}
	u.job.Unpacked.Bag = &ingest.Bag{
		Version:    report.Version,
		Algorithms: report.Algorithms,
		Files:      report.Files,
		Profiles:   profiles,
		Info:       described(report.Info),
	}
	return "", nil
}

func tooMany(files int) string {
	return fmt.Sprintf("the bag has %d files; at most %d can be validated. Split it", files, maxBagFiles)
}

// maxProfiles is how many of the profiles that a bag names are fetched.
const maxProfiles = 5

// conforms checks a bag by the profiles that it names, and returns those that it conforms to. A profile that is not
// there any more, or at a host that the collection refuses, is a warning: the content does not depend on it.
func (u *unpacking) conforms(ctx context.Context, report *bagit.Report) (to []string, refused string, err error) {
	for i, at := range report.Profiles() {
		if i == maxProfiles {
			warnOnce(u.job, fmt.Sprintf("bag: it names more than %d profiles; the others were not checked",
				maxProfiles))
			break
		}

		p, err := u.profiles.read(ctx, u.Fetch, u.job.Collection, at, u.Now())
		switch {
		case fault.Is(err, fault.Invalid):
			warnOnce(u.job, ingest.Cut(fmt.Sprintf("bag: the profile %s was not checked: %v", fetch.Redact(at), err),
				maxProblem))
			continue
		case err != nil:
			return to, "", fmt.Errorf("the profile %s of the bag: %v", fetch.Redact(at), err)
		}

		if problems := p.Check(report, string(u.Kind)); len(problems) > 0 {
			return to, fmt.Sprintf("the bag does not conform to %s (%s): %s. Correct it, then submit it again; to "+
				"preserve it as it is, submit it with the type file", fetch.Redact(at),
				ingest.Counted(len(problems), "problem"), shown(problems)), nil
		}
		to = append(to, fetch.Redact(at))
	}
	return to, "", nil
}

// shown are the first problems of a bag.
func shown(problems []bagit.Problem) string {
	texts := make([]string, min(len(problems), maxProblems))
	for i := range texts {
		texts[i] = ingest.Cut(problems[i].String(), maxProblem)
	}
	return strings.Join(texts, "; ")
}

// described is what bag-info.txt says of the content. Its other fields are about the bag.
func described(info []bagit.Field) (m ingest.Metadata) {
	for _, of := range []struct {
		to    *string
		names []string
	}{
		{&m.Who, []string{"Creator", "Source-Organization"}},
		{&m.What, []string{"Title", "External-Description"}},
		{&m.When, []string{"Date"}},
	} {
		for _, name := range of.names {
			for _, f := range info {
				if *of.to == "" && strings.EqualFold(f.Name, name) {
					*of.to = strings.ToValidUTF8(f.Value, "\uFFFD")
				}
			}
		}
		if ingest.CheckText("", *of.to, ingest.MaxMetadata) != nil {
			*of.to = "" // what a later step could not store
		}
	}
	return m
}

// ledgerBag is the bag that a job has unpacked. Its files are those of the ledger below a folder.
type ledgerBag struct {
	ctx  context.Context
	work workspace.Store
	all  iter.Seq2[aip.Entry, error]
	kept int // the one that is the container itself, from 1; 0: none is
	root string
	tags map[string]aip.Entry // the files that are opened
}

var _ bagit.Known = (*ledgerBag)(nil)

// bagOf is the bag that files of the job are; nil: they are none.
func (u *unpacking) bagOf(ctx context.Context, all iter.Seq2[aip.Entry, error]) (b *ledgerBag, err error) {
	b = &ledgerBag{ctx: ctx, work: u.Work, all: all, kept: u.kept, tags: map[string]aip.Entry{}}
	is := false
	b.root, is = bagit.Root(func(yield func(string) bool) {
		err = b.entries(func(e aip.Entry) error {
			yield(nameOf(e))
			return nil
		})
	})
	if !is || err != nil {
		return nil, err
	}
	return b, nil
}

// entries gives each file but the container itself.
func (b *ledgerBag) entries(each func(aip.Entry) error) error {
	n := 0
	for e, err := range b.all {
		n++
		if err == nil && n == b.kept {
			continue
		}
		if err == nil {
			err = each(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Each gives each file of the bag.
func (b *ledgerBag) Each(each func(name string, size int64, digests map[string]string) error) error {
	return b.entries(func(e aip.Entry) error {
		name := strings.TrimPrefix(nameOf(e), b.root)
		if !strings.HasPrefix(name, "data/") {
			b.tags[name] = e
		}
		return each(name, e.Size, e.Digests)
	})
}

// Open opens a tag file.
func (b *ledgerBag) Open(name string) (fs.File, error) {
	if len(b.tags) == 0 {
		if err := b.Each(func(string, int64, map[string]string) error { return nil }); err != nil {
			return nil, err
		}
	}

	e, ok := b.tags[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	body, _, err := b.work.Open(b.ctx, e.Source)
	if err != nil {
		return nil, err
	}
	return bagit.TagFile(name, body, e.Size), nil
}
