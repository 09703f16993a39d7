package stage

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/systemfile"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/spill"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Packager writes the system files of a job's version. Process does so, and Store again
// if the object is at another version by then.
//
// They are written for the object as it is stored at that moment: a version's system
// files list all local ids that the object ever had, and repeat the parts of its
// description that the submission does not replace. The version that they were written
// for is saved with them.
type Packager struct {
	Root     ocfl.Root
	Work     workspace.Store
	Identity identity.Registrar
	Archive  provenance.Archive
}

// pack is the input of a job's version.
type pack struct {
	files       *spill.Sorter[aip.Entry] // the producer's, by their paths
	description description.Description
	follows     string   // of a correction or an update: the ETag of the root inventory with the files that it keeps
	merging     *merging // of an update
}

// gather sorts the files of the job's version by their paths, and makes its description from the records
// among them and from the submission. refused is why the submission is refused, or "".
func (p Packager) gather(ctx context.Context,
	j *ingest.Job) (made *pack, refused string, err error) {
	made = &pack{files: spill.New[aip.Entry](ctx)}
	records, refused, err := p.collect(ctx, j, made)
	if err == nil && refused == "" && j.Updates() {
		refused, err = p.merge(ctx, j, made)
	}

	if err != nil || refused != "" {
		return nil, refused, err
	}

	// Once: from Processing on, Metadata is the summary of what was made of it.
	if j.Said == nil {
		said := j.Metadata
		j.Said = &said
	}

	made.description, refused, err = description.Settle(records, *j.Said)
	if err == nil && refused == "" {
		if c := j.Unpacked; c != nil && c.Bag != nil {
			made.description.Complete(c.Bag.Info)
		}
		made.description.Summarise(&j.Metadata)
	}
	return made, refused, err
}

// collect puts the job's files into the version, and returns the records among them.
func (p Packager) collect(ctx context.Context, j *ingest.Job, made *pack) (records map[string]description.Part,
	refused string, err error) {
	entries := p.Work.Entries(ctx, j)
	switch {
	case j.Updates():
		made.merging = newMerging()
	case j.Corrects():
		entries, made.follows, refused, err = p.newest(ctx, j)
		if err != nil || refused != "" {
			return nil, refused, err
		}
		// Counted anew by each try, from the list of the stored version.
		j.Files, j.Bytes = 0, 0
	}

	records = map[string]description.Part{}
	j.Embargo = ""
	for e, err := range entries {
		if err == nil {
			refused, err = p.take(ctx, j, made, e)
		}

		if err != nil || refused != "" {
			return nil, refused, err
		}

		// What a correction says replaces what a record among the stored files says.
		if !j.Corrects() && description.IsSource(e.Path) {
			records[e.Path] = description.Part{Size: e.Size, Open: func() (io.ReadCloser, error) {
				body, _, err := p.Work.Open(ctx, e.Source)
				return body, err
			}}
		}
	}
	return records, "", nil
}

// take puts one of the job's files into the version.
func (p Packager) take(ctx context.Context, j *ingest.Job, made *pack, e aip.Entry) (refused string, err error) {
	switch {
	case j.Corrects():
		j.Files, j.Bytes = j.Files+1, j.Bytes+e.Size
	case e.Path == systemfile.Deletions && j.Updates(): // it is no content
		return made.merging.read(ctx, p, e)
	case e.Path == systemfile.Embargo:
		if refused, err = p.embargo(ctx, j, e); err != nil || refused != "" {
			return refused, err
		}
	case e.Path == systemfile.Deletions:
		warnOnce(j, "mrt-delete.txt deletes files in the mode update only; it is kept as a file")
	}
	if j.Updates() {
		made.merging.add(e)
	}
	return "", made.files.Add(e.Path, e)
}

// embargo reads what the package says of an embargo.
func (p Packager) embargo(ctx context.Context, j *ingest.Job, e aip.Entry) (refused string, err error) {
	body, _, err := p.Work.Open(ctx, e.Source)
	if err != nil {
		return "", err
	}
	defer body.Close()
	j.Embargo, refused, err = systemfile.ReadEmbargo(body)
	return refused, err
}

// newest are the files of the version that a correction or an update follows, and the ETag of its root inventory.
func (p Packager) newest(ctx context.Context, j *ingest.Job) (all iter.Seq2[aip.Entry, error],
	follows, refused string, err error) {
	stored, err := p.stored(ctx, j.Primary)
	switch {
	case err != nil:
		return nil, "", "", err
	case stored.Head == 0 && j.Updates():
		return nil, "", fmt.Sprintf("nothing of %s is stored, so there is nothing to update. Submit it with the "+
			"mode add", j.Primary), nil
	case stored.Head == 0:
		return nil, "", fmt.Sprintf("nothing of %s is stored, so there is nothing to correct", j.Primary), nil
	case !slices.Contains(stored.SystemFiles(stored.Head), aip.ListName):
		return nil, "", fmt.Sprintf("version %d of %s was stored by other software, without a list of its files. "+
			"Submit all its files, with the mode add", stored.Head, j.Primary), nil
	}
	return listed(ctx, aip.Head(p.Root, stored.Stored).List), stored.ETag(), "", nil
}

// stored reads an object in the storage root; one that is not there has no version. A damaged one
// is a *ocfl.DamagedError: a version that is built on it could not be told from the damage. One
// whose commit was interrupted is finished before the next commit.
func (p Packager) stored(ctx context.Context, ark string) (base, error) {
	v, err := p.Root.Judge(ctx, ark)
	if err != nil || v.Trust == ocfl.Unused {
		return newObject, err
	}
	return base{v.Object, v.OnRecord()}, v.Err()
}

// base is the stored object that a version is made for.
type base struct {
	*ocfl.Stored
	recorded bool // it has a row
}

// newObject is one of which nothing is stored.
var newObject = base{Stored: &ocfl.Stored{}}

// write writes the system files for the object as it is stored now. It refuses a job of
// another collection, and takes over what the object had. The job owns the object's lock. What it
// decides depends on that state: it is saved as Follows, and Store asks whether it still holds.
func (p Packager) write(
	ctx context.Context, claim *queue.Claim, stored base, made *pack,
) (ingest.Result, error) {
	j := claim.Job
	if (j.Corrects() || j.Updates()) && made.follows != stored.ETag() { // it got a version before this job had its lock
		j.Checkpoint = "reading the newest version"
		return ingest.Result{Outcome: ingest.StepContinue}, nil
	}

	// The row keeps the ids of its own submission: those of the object are added to the files only.
	all := *j // the job with what the object had
	v := systemfile.Version{
		Number:      stored.Head + 1,
		Job:         &all,
		Description: made.description,
		Archive:     p.Archive,
	}
	if made.merging != nil {
		v.Deleted = made.merging.deletions
	}
	if stored.Head > 0 {
		res, err := p.inherit(ctx, claim, stored, &v)
		if err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
	}

	if why := unexpected(j, stored.Head); why != "" {
		return ingest.Fail(false, why), nil
	}
	embargo(j, &v)

	// After all that can refuse the job: these rows stay.
	if refused, err := p.Identity.ReserveLocalIDs(ctx, j); err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}

	v.Description.Summarise(&j.Metadata)
	all.Metadata, j.Follows = j.Metadata, stored.ETag()
	w := &systemWriter{
		work:    p.Work,
		job:     &all,
		attempt: claim.Take(),
		out:     workspace.SystemFiles{Follows: j.Follows},
	}

	if err := w.write(ctx, v, made.files); err != nil {
		return ingest.Result{}, err
	}
	// Last: the list is what names the files.
	return next, p.Work.PutSystemFiles(ctx, j.ID, w.out)
}

// repack writes the system files of a job at Storing again: the object has a newer version. The
// step then continues in another message, and prepares the version for them.
func (p Packager) repack(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	made, refused, err := p.gather(ctx, claim.Job)
	if err != nil || refused != "" {
		return ingest.Fail(false, refused), err
	}

	stored, err := p.stored(ctx, claim.Job.Primary)
	if err != nil {
		return ingest.Result{}, err
	}

	res, err := p.write(ctx, claim, stored, made)
	if err != nil || res.Outcome != ingest.StepNext {
		return res, err
	}

	claim.Job.Checkpoint, claim.Job.Done = "preparing again", 0
	return ingest.Result{Outcome: ingest.StepContinue}, nil
}

// inherit decides whether the job may make a version of a stored object: it must be of the
// job's collection, without a version by a later submission. Then the job gets all local
// ids that the object had, and the description what it does not replace.
func (p Packager) inherit(
	ctx context.Context, claim *queue.Claim, stored base, v *systemfile.Version,
) (ingest.Result, error) {
	j, head := claim.Job, aip.Head(p.Root, stored.Stored)
	id, err := head.Identity(ctx)
	if err != nil {
		return ingest.Result{}, err
	}

	// By what the storage root says, under the lock of the object: rows can be lost.
	if !id.In(j.Collection) {
		return ingest.Fail(false, identity.Foreign(j.Primary)), nil
	}

	// It can be requeued with a confirmation.
	if why := overtaken(j, stored.Stored); why != "" {
		return ingest.Fail(true, why), nil
	}

	if why := withdrawn(j, id); why != "" {
		return ingest.Fail(false, why), nil
	}

	if is := id.Policies.Withdrawal; is != nil && !j.Corrects() {
		return ingest.Fail(true, fmt.Sprintf("%s is withdrawn since %s: %s. It gets no version with other files "+
			"before it is reinstated (archivist object reinstate %s --reason TEXT). Then requeue the job", j.Primary,
			is.At, is.Reason, j.Primary)), nil
	}

	leaveWithdrawn(j, id)
	v.Job.LocalIDs, v.Job.Withdrawn = id.After(j.LocalIDs, j.Withdrawn)
	var refused string
	v.Policies, refused = policy.Next(j.Policy, decided(j), id.Policies)
	if refused != "" {
		return ingest.Fail(false, j.Primary+": "+refused), nil
	}

	if !stored.recorded {
		res, err := p.Identity.BringBack(ctx, j.Primary, id, claim.Until)
		if err != nil || res.Outcome != ingest.StepNext {
			return res, err
		}
	}

	before, err := head.Description(ctx)
	v.Description.Inherit(before)
	return next, err
}

// decided is what a correction decides about its object.
func decided(j *ingest.Job) inventory.Decision {
	return inventory.Decision{
		Reason: j.Note,
		By:     j.Actor(),
		At:     ingest.Timestamp(j.Stamp),
		Until:  j.LastDay,
	}
}

// embargo decides what the package of a version says of an embargo.
func embargo(j *ingest.Job, v *systemfile.Version) {
	d := decided(j)
	d.Reason, d.Until = "mrt-embargo.txt in the submission says so", j.Embargo
	switch {
	case j.Embargo == "":
	case j.Embargo == systemfile.NoEmbargo:
		v.Policies, _ = policy.Next(ingest.LiftEmbargo, d, v.Policies)
	case !inventory.Lasts(d.Until, time.UnixMilli(j.Stamp)):
		warnOnce(j, "mrt-embargo.txt: the embargo has ended on "+d.Until+", so it changes nothing")
		v.Job.Embargo = "" // nothing is decided
	default:
		v.Policies, _ = policy.Next(ingest.Embargo, d, v.Policies)
	}
}

// withdrawn returns why a job's object is not that of its local ids any more, or "": a correction has withdrawn
// one between the stage Process and a requeue of the job.
func withdrawn(j *ingest.Job, id aip.Identity) string {
	for _, local := range j.Submitted() {
		if j.Known && slices.Contains(id.Withdrawn, local) {
			return fmt.Sprintf("the local id %q was withdrawn from %s since this job looked it up. Submit the content "+
				"again", local, j.Primary)
		}
	}
	return ""
}

// leaveWithdrawn takes the local ids that were found in the package from the job, as far as they were withdrawn
// from its object: only a submission that names one gives it back.
func leaveWithdrawn(j *ingest.Job, id aip.Identity) {
	submitted := len(j.Submitted())
	for i := len(j.LocalIDs) - 1; i >= submitted; i-- {
		if local := j.LocalIDs[i]; slices.Contains(id.Withdrawn, local) {
			j.LocalIDs, j.Found = slices.Delete(slices.Clone(j.LocalIDs), i, i+1), j.Found-1
			j.FileWarnings = append(j.FileWarnings, fmt.Sprintf("the package's description names the local id %q, "+
				"which was withdrawn from the object; it is not taken", local))
		}
	}
}

// unexpected returns why the object is not at the version that the submission expects, or
// "". head is 0 if there is no object.
func unexpected(j *ingest.Job, head int) string {
	if j.IfVersion == 0 || j.IfVersion == head {
		return ""
	}
	return fmt.Sprintf("the submission expects version %d of the object, which is at version %d. "+
		"Review what changed, then submit it again", j.IfVersion, head)
}

// overtaken returns a text if the object has a version by a later submission that the job
// has no confirmation to replace, or "".
func overtaken(j *ingest.Job, stored *ocfl.Stored) string {
	if stored.VersionBy(j.ID) > 0 {
		return ""
	}
	// Versions up to the permitted one were confirmed by a person.
	for n := stored.Head; n > j.Permitted; n-- {
		if by := stored.Job(n); ingest.SubmittedAfter(by, j.ID) {
			return ingest.Overtaken(j.ID, j.Primary, stored.Head, n, by) +
				". To do it nevertheless, requeue the job with confirm"
		}
	}
	return ""
}
