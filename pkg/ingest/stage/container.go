package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
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

// mostUnsaved is how many bytes of files are unpacked again at most if a worker dies, beside those of one part.
const mostUnsaved = 256 << 20

// container downloads a container, and unpacks it.
func (d Download) container(ctx context.Context, claim *queue.Claim, a *attempt,
	profile collection.Profile) (res ingest.Result, err error) {
	j := claim.Job
	u := &unpacking{attempt: a, limits: profile.Limits(), refuse: profile.Refused, keep: profile.KeepsContainers(),
		profiles: d.Profiles, space: d.Space}
	u.side.SetLimit(a.parallel)
	u.Unpacking, err = a.Work.Unpacking(ctx, j.ID)
	if err == nil && u.Unpacking == nil {
		if res, err = d.receive(ctx, claim, u); err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
	}

	if err == nil {
		err = u.unpack(ctx)
	}

	refused, changed := new(container.RefusedError), new(changedError)
	switch {
	case errors.As(err, &changed):
		return d.startOver(ctx, claim, changed.why)
	case errors.As(err, &refused):
		return ingest.Fail(false, refused.Error()+". Correct the container, then submit it again"), nil
	case errors.Is(err, errTooLarge):
		return ingest.Fail(true, j.Exceeds(d.Space)), nil
	case len(u.problems) > 0 && (err == nil || errors.Is(err, errStopped)): // as in Run
		return u.failure(), nil
	case errors.Is(err, errStopped):
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	case err != nil:
		return ingest.Result{}, err
	}
	return d.unpacked(ctx, u)
}

// errTooLarge ends a try: the files need more than the whole work space.
var errTooLarge = errors.New("the files of the container need more than the whole work space")

// receive downloads the container, and compares it with what the depositor said of it.
func (d Download) receive(ctx context.Context, claim *queue.Claim, u *unpacking) (ingest.Result, error) {
	j, row := claim.Job, workspace.FileRow(claim.Job)
	noted := workspace.PartialKey(j.ID, "container")
	came, err := u.File(ctx, row, workspace.ContainerKey(j.ID, claim.Take()), noted)
	if errors.Is(err, fetch.ErrStop) {
		j.Checkpoint = "container: " + u.partly
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}
	if err != nil {
		return failed(j, fmt.Errorf("the container cannot be fetched: %w", err))
	}

	start, err := payload.Start(ctx, came.Text())
	if err != nil {
		return ingest.Result{}, err
	}

	if err := payload.CheckPage(j.Payload, start); err != nil {
		res, _ := failed(j, err)
		return res, d.Work.Delete(ctx, noted) // so that it is fetched again
	}

	u.Unpacking = &workspace.Unpacking{Kind: container.Detect(start)}
	if u.Kind == "" && j.Detected {
		return d.startOver(ctx, claim, fetch.Redact(j.URL)+": received a payload that is no container; it was one "+
			"when its type was detected")
	}
	if u.Kind == "" {
		return ingest.Fail(false, "the payload is no container: its content is not that of a zip, tar, tar.gz or "+
			"tar.bz2 file. Submit it again with its type"), nil
	}

	u.Container, err = describe(row, came, came.Key, "")
	if refused := new(refusedError); errors.As(err, &refused) {
		return ingest.Fail(false, "the container: "+refused.Error()+". Correct it, then submit it again"), nil
	}

	info, err := d.Work.Head(ctx, came.Key)
	if err != nil {
		return ingest.Result{}, err
	}

	u.ETag = info.ETag
	err = d.Work.BeginUnpacking(ctx, j.ID, u.Unpacking)
	if fault.Is(err, fault.Stale) { // another try has received it
		u.Unpacking, err = d.Work.Unpacking(ctx, j.ID)
	}
	return next, err
}

// unpack unpacks what is not unpacked yet. errStopped: the time is up. Of the container's own faults it returns a
// *container.RefusedError.
func (u *unpacking) unpack(ctx context.Context) error {
	if err := u.open(ctx); err != nil {
		return err
	}

	err := u.files(ctx)
	_ = u.side.Wait() // failures are noted
	if u.err != nil && !errors.Is(u.err, fetch.ErrStop) && (err == nil || errors.Is(err, errStopped)) {
		err = u.err
	}
	u.tell()
	return err
}

// open opens the container where the try before has stopped.
func (u *unpacking) open(ctx context.Context) (err error) {
	at := bucket.At{Context: ctx, Bucket: u.Work.Bucket, Key: u.Container.Source, ETag: u.ETag}
	u.reader, err = container.Open(u.Kind, at, u.Container.Size, u.limits, u.State)
	if err != nil {
		return err
	}

	// The names in a tar file are not known before it is read: it may be a bag by any manifest.
	u.asked = []string{"md5", "sha1"}
	_, size, known := u.reader.Total()
	if known {
		names := u.reader.Names()
		u.asked = bagit.Asked(names)
		if slices.Contains(names, innerManifest) {
			u.asked = slices.Sorted(maps.Keys(checkm.Lengths))
		}
	}

	if known || u.State == nil {
		return u.need(size)
	}
	return u.seen(ctx)
}

// seen tells the reader the names of the files of earlier tries.
func (u *unpacking) seen(ctx context.Context) error {
	for n := range u.finished() {
		segment, err := u.Work.Segment(ctx, u.job.ID, n)
		if err != nil {
			return err
		}
		for _, e := range segment {
			u.reader.Seen(nameOf(e))
		}
	}

	for _, e := range u.Files {
		u.reader.Seen(nameOf(*e))
	}
	if file, _ := u.reader.Current(); file != nil {
		u.reader.Seen(file.Name)
	}
	if u.Received != nil {
		u.reader.Seen(nameOf(*u.Received))
	}
	return nil
}

// finished is how many segments of the ledger are written, when the try begins.
func (u *unpacking) finished() int {
	done := u.State.Files - len(u.Files)
	if u.State.File != nil || u.Received != nil {
		done--
	}
	return done / workspace.SegmentFiles
}

// need corrects the job's space for files of so many bytes together. errTooLarge: there is not as much.
func (u *unpacking) need(files int64) error {
	u.job.SpaceNeeded = max(u.job.SpaceNeeded, ingest.AddSizes(u.Container.Size, files))
	if u.job.SpaceNeeded > u.space {
		return errTooLarge
	}
	return nil
}

// files unpacks one file after the other.
func (u *unpacking) files(ctx context.Context) (err error) {
	if u.State != nil {
		u.got = u.State.Files
	}
	if u.Received != nil {
		if err := u.complete(ctx); err != nil {
			return err
		}
	}

	for {
		file, read := u.reader.Current() // the one in whose middle the try before has stopped
		if file == nil {
			if err := u.between(ctx); err != nil {
				return err
			}

			file, err = u.reader.Next()
			if err == io.EOF {
				return u.last(ctx)
			}
			if err != nil {
				return err
			}
			u.got++
			if err := u.need(u.reader.Bytes() + file.Size); err != nil {
				return err
			}
		}

		if file.Size > u.Work.Limits.Part {
			err = u.large(ctx, file, read)
		} else {
			err = u.small(ctx, file)
		}
		if err != nil {
			return err
		}
	}
}

// between does what is due between two files: the end of a segment, a save, the end of the try.
func (u *unpacking) between(ctx context.Context) error {
	stop := u.stopped()
	full := len(u.Files) == workspace.SegmentFiles
	if !stop && !full && u.unsaved < mostUnsaved {
		return nil
	}

	if err := u.written(); err != nil {
		return err
	}

	if full {
		if err := u.segment(ctx); err != nil {
			return err
		}
	}

	err := u.save(ctx)
	if err == nil && stop {
		err = errStopped
	}
	return err
}

// written waits for the small files that are being written.
func (u *unpacking) written() error {
	_ = u.side.Wait() // failures are kept
	return u.err
}

// segment finishes a segment of the ledger.
func (u *unpacking) segment(ctx context.Context) error {
	n := (u.got - 1) / workspace.SegmentFiles
	err := u.Work.PutSegment(ctx, u.job.ID, n, u.Files)
	if fault.Is(err, fault.Stale) {
		err = u.same(ctx, n, u.Files)
	}
	u.Files = nil
	return err
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

// small unpacks a file that fits into memory. It is written beside the next ones.
func (u *unpacking) small(ctx context.Context, file *container.File) error {
	data := make([]byte, 0, file.Size+1)
	for {
		n, err := u.reader.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}

	e, key := &aip.Entry{}, workspace.FileKey(u.job.ID, u.got-1)
	u.Files, u.unsaved = append(u.Files, e), u.unsaved+int64(len(data))
	u.side.Go(func() error {
		sums := fetch.NewDigester(u.asked...)
		_, _ = sums.Write(data) // a digester never fails
		if err := u.Work.Put(ctx, key, data, bucket.Condition{}); err != nil {
			u.fail(err)
			return nil
		}
		*e = u.entry(file, sums, key)
		u.look(ctx, e, bytes.NewReader(data))
		return nil
	})
	return nil
}

// entry is what the ledger has of a file.
func (u *unpacking) entry(file *container.File, sums *fetch.Digester, key string) aip.Entry {
	return aip.Entry{
		URL:       u.Container.URL + "#" + (&url.URL{Fragment: file.Name}).EscapedFragment(),
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

// last ends the container.
func (u *unpacking) last(ctx context.Context) error {
	if err := u.written(); err != nil {
		return err
	}

	rows, err := u.elsewhere(ctx)
	if err != nil {
		return err
	}

	if u.keep {
		if name := nameOf(u.Container); u.reader.Taken(name) {
			return &container.RefusedError{Name: name, Why: "it has the name of the container, which the collection " +
				"keeps. Submit the container under another file name"}
		}
		if why := u.scan(ctx, &u.Container); why != "" {
			return &container.RefusedError{Name: nameOf(u.Container), Why: why}
		}
		if u.err != nil {
			return u.err
		}
		u.got++
		u.kept = u.got
		u.Files = append(u.Files, &u.Container)
	}

	switch {
	case len(rows) > 0:
		return u.fetch(ctx, rows)
	case len(u.Files) > 0:
		return u.segment(ctx)
	}
	return nil
}

// unkept tells of folders without files: neither S3 nor OCFL has folders.
func unkept(folders []string) string {
	if len(folders) == 0 {
		return ""
	}
	return ingest.Cut(fmt.Sprintf("folders without files are not kept: %s", strings.Join(folders, ", ")), maxProblem)
}

// nameOf is the name of a file below producer/.
func nameOf(e aip.Entry) string { return strings.TrimPrefix(e.Path, "producer/") }

// tell notes in the job how much is unpacked.
func (u *unpacking) tell() {
	if u.fetching > 0 {
		u.job.Checkpoint = u.progress()
		return
	}

	text := "unpacked: " + ingest.Counted(u.got, "file")
	if u.reader != nil {
		if files, _, known := u.reader.Total(); known {
			text = fmt.Sprintf("unpacked: %s of %s", ingest.Number(u.got), ingest.Counted(files, "file"))
		}
	}
	if u.partly != "" {
		text += ", " + u.partly
	}
	u.job.Checkpoint = text
}

// unpacked notes what the container was, and ends the download as for other files.
func (d Download) unpacked(ctx context.Context, u *unpacking) (ingest.Result, error) {
	j, c := u.job, u.Container
	j.Files, u.own = u.got, false
	j.Unpacked = &ingest.Container{
		Name:     nameOf(c),
		Kind:     string(u.Kind),
		Bytes:    c.Size,
		SHA256:   c.Digests["sha256"],
		Kept:     u.keep,
		Verified: c.Given,
		Fetched:  u.fetching,
	}

	j.FileWarnings = nil // those of an earlier try
	for _, check := range []func(context.Context) (string, error){u.listed, u.bag} {
		if refused, err := check(ctx); err != nil || refused != "" {
			return ingest.Fail(false, refused), err
		}
	}

	bag := j.FileWarnings
	res, err := d.finish(ctx, u.attempt)
	j.FileWarnings = slices.Concat(bag, j.FileWarnings)
	if j.Unpacked.Bag != nil {
		j.Checked = j.Unpacked.Bag.Files
	}
	warnings := append([]string{c.Warning}, u.notes...)
	if u.reader != nil {
		warnings = append(warnings, u.reader.Warning, unkept(u.reader.Empty()))
	}
	if warning := joined(warnings); warning != "" {
		j.Warned++
		j.FileWarnings = slices.Concat([]string{"container: " + warning}, j.FileWarnings)
	}
	j.SpaceNeeded = ingest.AddSizes(j.SpaceNeeded, c.Size)
	return res, err
}
