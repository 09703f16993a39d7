package stage

import (
	"context"
	"io"
	"iter"

	"archivist/pkg/aip"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/ocfl"
	"archivist/pkg/provenance"
	"archivist/pkg/spill"
	"archivist/pkg/systemfile"
	"archivist/pkg/workspace"
)

// systemFiles are those of a version. Follows is the ETag of the root inventory that
// they were written for. If the producer's files are few, they are there too.
type systemFiles struct {
	Follows  string      `json:"follows"`
	Files    []ocfl.File `json:"files"`
	Producer []ocfl.File `json:"producer,omitempty"`
}

// packager writes the system files of one version. A second try writes the same bytes,
// but never to the keys of another.
type packager struct {
	s       *Stages
	job     *ingest.Job
	attempt string
	out     systemFiles
}

// write writes every system file. Small ones are carried along.
func (p *packager) write(ctx context.Context, v systemfile.Version, sorted *spill.Sorter[aip.Entry]) error {
	list, err := p.file(ctx, aip.ListName, func(w io.Writer) error { return aip.WriteList(w, p.producer(sorted)) })
	if err != nil {
		return err
	}
	p.out.Files = append(p.out.Files, list)
	v.Archive = provenance.Archive{NAAN: p.s.NAAN, Version: p.s.Version}
	v.Entries = listed(ctx, p.s.Work.TextOf(list))
	manifest := p.s.Work.Text(workspace.ManifestKey(p.job))
	v.Manifest = func() (io.ReadCloser, error) { return manifest(ctx) }
	for _, f := range v.Files() {
		file, err := p.file(ctx, f.Path, f.Write)
		if err != nil {
			return err
		}
		p.out.Files = append(p.out.Files, file)
	}
	return nil
}

// file writes one system file.
func (p *packager) file(ctx context.Context, name string, write func(io.Writer) error) (ocfl.File, error) {
	key := workspace.AttemptKey(p.job.ID, p.attempt, name)
	w, d := p.s.Work.Create(ctx, key, workspace.SmallFile), fetch.NewDigester()
	if err := write(io.MultiWriter(w, d)); err != nil {
		w.Abort()
		return ocfl.File{}, err
	}
	small, large, err := w.Close()
	f := ocfl.File{Path: name, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Data: small}
	if large {
		f.Source = key
	}
	return f, err
}

// producer gives the producer's files in order of their paths, and notes few of them.
func (p *packager) producer(sorted *spill.Sorter[aip.Entry]) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		for r, err := range sorted.Sorted() {
			if err == nil && p.job.Files <= workspace.SegmentFiles {
				p.out.Producer = append(p.out.Producer, r.Value.File)
			}
			if !yield(r.Value, err) || err != nil {
				return
			}
		}
	}
}

// listed reads a list of files as often as it is asked.
func listed(ctx context.Context, list ocfl.Text) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		body, err := list(ctx)
		if err != nil {
			yield(aip.Entry{}, err)
			return
		}
		defer body.Close()
		for e, err := range aip.ReadList(body) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
