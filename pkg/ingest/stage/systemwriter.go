package stage

import (
	"context"
	"io"
	"iter"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/systemfile"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/spill"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// systemWriter writes the system files of one version. Each try writes the same bytes to
// keys of its own.
type systemWriter struct {
	work    workspace.Store
	job     *ingest.Job
	attempt string
	out     workspace.SystemFiles
}

// write writes every system file. Small ones are kept in the list of the system files. The list of
// files comes first, since the others are made of it.
func (w *systemWriter) write(ctx context.Context, v systemfile.Version,
	sorted *spill.Sorter[aip.Entry]) error {
	list, err := w.file(ctx, aip.ListName,
		func(to io.Writer) error { return aip.WriteList(to, w.producer(sorted)) })
	if err != nil {
		return err
	}

	w.out.Files = append(w.out.Files, list)
	v.Entries = listed(ctx, w.work.TextOf(list))
	manifest := w.work.Text(workspace.ManifestKey(w.job))
	v.Manifest = func() (io.ReadCloser, error) { return manifest(ctx) }
	for _, f := range v.Files() {
		file, err := w.file(ctx, f.Path, f.Write)
		if err != nil {
			return err
		}
		w.out.Files = append(w.out.Files, file)
	}

	return nil
}

// file writes one system file. A large one goes to a key of this attempt, so another worker cannot
// change it.
func (w *systemWriter) file(ctx context.Context, name string,
	write func(io.Writer) error) (ocfl.File, error) {
	key := workspace.AttemptKey(w.job.ID, w.attempt, name)
	text, d := w.work.Create(ctx, key, workspace.SmallFile), fetch.NewDigester()
	if err := write(io.MultiWriter(text, d)); err != nil {
		text.Abort()
		return ocfl.File{}, err
	}

	small, large, err := text.Close()
	f := ocfl.File{Path: name, Size: d.Size, Digests: d.Sums(), CRC64: d.CRC64NVME(), Data: small}
	if large {
		f.Source = key
	}
	return f, err
}

// producer gives the producer's files in order of their paths. It notes them if they are
// few.
func (w *systemWriter) producer(sorted *spill.Sorter[aip.Entry]) iter.Seq2[aip.Entry, error] {
	return func(yield func(aip.Entry, error) bool) {
		for r, err := range sorted.Sorted() {
			// Then Store need not read the ledger again.
			if files, _ := w.job.Content(); err == nil && files <= workspace.SegmentFiles {
				w.out.Producer = append(w.out.Producer, r.Value.File)
			}
			if !yield(r.Value, err) || err != nil {
				return
			}
		}
	}
}

// listed iterates over a list of files; it can be read several times.
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
