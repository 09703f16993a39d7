package stage

import (
	"context"
	"errors"
	"io"
	"net/url"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
)

// unpacking is the work of one try on a container, which is in the work bucket: its files are written next to it, and
// recorded in the ledger. How far it is, to the byte, is saved from time to time.
type unpacking struct {
	*attempt
	*workspace.Unpacking
	reader   *container.Reader
	limits   container.Limits
	refuse   func(url string) string // why the collection takes no content of a URL, or ""
	profiles *profiles
	keep     bool     // the container becomes a file, too
	kept     int      // which one, from 1; 0: none yet
	asked    []string // the algorithms of digests that a bag needs
	space    int64    // of the whole work bucket

	side     errgroup.Group // writes small files
	unsaved  int64          // bytes of files since the last save
	notes    []string       // about the names of files that are fetched
	fetching int            // files of the bag that are elsewhere, once all others are unpacked
}

// errTooLarge ends a try: the files need more than the whole work space.
var errTooLarge = errors.New("the files of the container need more than the whole work space")

// need corrects the job's space for files of so many bytes together. errTooLarge: there is not as much.
func (u *unpacking) need(files int64) error {
	u.job.SpaceNeeded = max(u.job.SpaceNeeded, ingest.AddSizes(u.Container.Size, files))
	if u.job.SpaceNeeded > u.space {
		return errTooLarge
	}
	return nil
}

// written waits for the small files that are being written.
func (u *unpacking) written() error {
	_ = u.side.Wait() // failures are kept
	return u.err
}

// save saves how far the container is unpacked.
func (u *unpacking) save(ctx context.Context) error {
	s, err := u.reader.State()
	if err != nil {
		return err
	}
	u.State, u.unsaved = &s, 0
	return u.Work.PutUnpacking(ctx, u.job.ID, u.Unpacking)
}

// fail ends the try: what is missing in the work bucket must not become a line of the ledger, whatever the error is.
func (u *unpacking) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
}

// entry is what the ledger has of a file.
func (u *unpacking) entry(file *container.File, sums *fetch.Digester, key string) aip.Entry {
	return aip.Entry{
		URL:       u.Container.URL + "#" + (&url.URL{Fragment: file.Name}).EscapedFragment(),
		Uploader:  u.Container.Uploader,
		MediaType: defaultType(file.Name),
		Modified:  file.Modified,
		RawName:   file.Raw,
		Warning:   file.Warning,
		File: ocfl.File{
			Path:    "producer/" + file.Name,
			Size:    sums.Size,
			Digests: sums.Sums(),
			CRC64:   sums.CRC64NVME(),
			Source:  key,
		},
	}
}

// look adds to a file's warning what its content says against its name, or fails the job if the collection refuses its
// format. whole is its content if that is in memory.
func (u *unpacking) look(ctx context.Context, e *aip.Entry, whole io.ReaderAt) {
	warning, refused, err := u.early.judge(ctx, nameOf(*e), e.Size, contentAt(u.Work, e.Source, whole))
	if err != nil {
		u.fail(err)
		return
	}
	e.Warning = joined([]string{e.Warning, warning})
	if refused == "" {
		refused = u.scan(ctx, e)
	}
	if refused != "" {
		u.fail(&container.RefusedError{Name: nameOf(*e), Why: refused})
	}
}

// scan has a file scanned. A scanner that does not answer ends the try.
func (u *unpacking) scan(ctx context.Context, e *aip.Entry) (refused string) {
	refused, err := u.scanner.check(ctx, e)
	if err != nil {
		u.fail(err)
	}
	return refused
}
