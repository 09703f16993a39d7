package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/text/unicode/norm"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
	"archivist/pkg/kernel/table"
)

// Submission is a request to submit a batch.
type Submission struct {
	Key  string `header:"Idempotency-Key" maxLength:"200"`
	Body v1.BatchRequest
}

// Resolve refuses a blank key. huma calls it when the request is read.
func (*Submission) Resolve(ctx huma.Context) []error { return blankKey(ctx) }

// Accepted is the response to a submission.
type Accepted struct {
	Status   int
	Location string `header:"Location" doc:"The batch's URL, relative." example:"batches/01M7ZBMEYHBB62YP6RY21T1GQ6"`
	Body     v1.Accepted
}

// submit checks a request and makes a batch of it, in the state Pending. Nothing is downloaded: that
// what the URL names can be used is found out later. With a key, a request that is repeated within 7
// days gets the same batch, also after a crash between commit and answer.
func (a *API) submit(ctx context.Context, in *Submission) (*Accepted, error) {
	b, err := batchOf(in.Body)
	if err == nil {
		err = mayDeposit(ctx, b.Collection)
	}
	if err != nil {
		return nil, a.problem(err)
	}

	key := keyOf(ctx, in.Key)

	// A key stands for the meaning of a request, not for its bytes: the order of names,
	// white space and empty fields are ignored.
	meaning, err := json.Marshal(in.Body)
	if err != nil {
		return nil, a.problem(err)
	}

	// A request that is repeated has its batch, whatever the profile says now.
	row, err := a.Queue.Submitted(ctx, key, meaning)
	if err == nil && row == nil {
		b.Begins, err = a.newCollection(ctx, b.Collection) // before the submission names it
	}
	if err == nil && row == nil {
		row, err = a.accept(ctx, &b, key, in.Body.Payload.File, meaning)
	}
	if err != nil {
		return nil, a.problem(err)
	}

	warnings, err := a.otherForms(ctx, &b)
	if err != nil { // the batch is accepted without this warning
		a.Log.Warn("the local ids were not compared in other Unicode forms", "batch", row.Batch.ID,
			"error", err)
	}
	if row.Begins != "" {
		warnings = append([]string{row.Begins}, warnings...)
	}
	// Relative to the request: the API does not know under which path a gateway serves it.
	return &Accepted{http.StatusAccepted, "batches/" + row.Batch.ID,
		v1.Accepted{ID: row.Batch.ID, State: string(row.State), Warnings: warnings}}, nil
}

// keyOf is an Idempotency-Key as it is kept. The keys of depositors are apart from all others, so that none is told of
// what another one has submitted.
func keyOf(ctx context.Context, key string) string {
	if x := identityOf(ctx); key != "" && !x.Is(operator) {
		return cmp.Or(x.Subject, "key "+x.Name+" "+has(x)) + "\x00" + key
	}
	return key
}

// accept makes the batch of a submission, if it is admissible. Its upload is claimed in the same transaction.
func (a *API) accept(ctx context.Context, b *ingest.Batch, key, file string, meaning []byte) (*queue.Batch, error) {
	if x := identityOf(ctx); x.Subject != "" {
		b.By = named(x)
	}
	var also []func(tx *table.Tx, batch string) error
	if b.Upload != "" {
		claim, err := a.claim(ctx, b, file)
		if err != nil {
			return nil, err
		}
		also = append(also, func(tx *table.Tx, batch string) error { return claim.Put(tx, batch, b.Actor()) })
	}

	if err := a.admissible(ctx, b); err != nil {
		return nil, err
	}

	row, err := a.Queue.Submit(ctx, *b, key, meaning, b.Actor(), also...)
	// Perhaps another submission has the upload: then that is why.
	if fault.Is(err, fault.Stale) && b.Upload != "" {
		if _, why := a.claim(ctx, b, file); why != nil {
			return nil, why
		}
	}
	return row, err
}

// otherForms warns of local ids that are known only in another Unicode normalization form: they look
// the same but name another object. Unicode knows two forms of, e.g., é; keyboards and file systems
// differ in which they make. The batch is accepted all the same, since the depositor may mean it.
func (a *API) otherForms(ctx context.Context, b *ingest.Batch) (warnings []string, err error) {
	for _, id := range b.LocalIDs {
		for _, form := range []string{norm.NFC.String(id), norm.NFD.String(id)} {
			if form == id {
				continue
			}

			known, err := a.Inventory.ByLocalID(ctx, b.Collection, form)
			if err != nil {
				return warnings, err
			}

			if known != "" {
				warnings = append(warnings, fmt.Sprintf(
					"identifiers.local: %q looks like a local id of %s, in another Unicode "+
						"normalization form (NFC or NFD); it names another object", id, known))
			}
		}
	}
	return warnings, nil
}

// batchOf converts a request and makes the checks that its schema cannot express. An
// Invalid error names the field.
func batchOf(in v1.BatchRequest) (ingest.Batch, error) {
	b := ingest.Batch{
		Collection: in.Collection,
		Mode:       cmp.Or(in.Mode, ingest.ModeAdd),
		IfVersion:  in.IfVersion,
		StopAfter:  in.StopAfterFailures,
		Submitter:  strings.TrimSpace(in.Submitter),
		Note:       strings.TrimSpace(in.Note),
		Callback:   in.Callback,
	}

	if err := ingest.CheckText("submitter", b.Submitter, ingest.MaxSubmitter); err != nil {
		return b, err
	}

	if err := ingest.CheckText("note", b.Note, ingest.MaxNote); err != nil {
		return b, err
	}

	for _, address := range in.Notification {
		if err := notify.CheckAddress(address); err != nil {
			return b, fault.New(fault.Invalid, "notification: %w", err)
		}
		if !slices.Contains(b.Mail, address) {
			b.Mail = append(b.Mail, address)
		}
	}

	if len(b.Mail) > ingest.MaxMails {
		return b, fault.New(fault.Invalid, "notification: %d addresses; at most %d are allowed",
			len(b.Mail),
			ingest.MaxMails)
	}

	var err error
	if b.Payload, err = payloadOf(in.Payload); err != nil {
		return b, err
	}

	if ids := in.Identifiers; ids != nil {
		if err := identify(&b, *ids); err != nil {
			return b, err
		}
	}

	if m := in.Metadata; m != nil {
		b.Metadata, err = ingest.Metadata{
			Who:   m.Who,
			What:  m.What,
			When:  m.When,
			Where: m.Where,
		}.Clean(
			[4]string{"metadata.who", "metadata.what", "metadata.when", "metadata.where"})
		if err != nil {
			return b, err
		}
	}

	return b, checkObjects(&b)
}

// checkObjects checks what a submission says of its object, if its payload is known to be one object or several.
func checkObjects(b *ingest.Batch) error {
	_, many := payload.Lists[b.Payload.Type]
	if why := b.NothingToUpdate(); why != "" && b.Payload.Type != "" && !many {
		return fault.New(fault.Invalid, "identifiers: %s", why)
	}
	if why := b.ForOneObject(); why != "" && many {
		return fault.New(fault.Invalid, "%s", why)
	}
	return nil
}

// identify puts the identifiers of a request into the batch. An ARK is kept in its one form, whatever
// form it was given in.
func identify(b *ingest.Batch, ids v1.Identifiers) (err error) {
	if b.LocalIDs, err = ingest.CleanLocalIDs(ids.Local); err != nil {
		return fault.New(fault.Invalid, "identifiers.local: %w", err)
	}

	if ids.Primary == "" {
		return nil
	}

	given, err := ark.Parse(ids.Primary)
	if err != nil {
		return fault.New(fault.Invalid, "identifiers.primary: %w", err)
	}

	b.Primary = given.String()
	return nil
}

// claim checks that a batch can have its upload, and makes the file of it the payload. Without a digest or a size in
// the submission, those of the upload count: they are the depositor's, too.
func (a *API) claim(ctx context.Context, b *ingest.Batch, file string) (*upload.Claim, error) {
	claim, err := a.Uploads.Claim(ctx, b.Collection, b.Upload, file)
	if err != nil {
		return nil, err
	}

	sum, size := claim.File.Sum(), claim.File.Size
	switch {
	case b.Algorithm == "sha256" && b.Digest != sum:
		return nil, fault.New(fault.Invalid, "payload.digest: the file of the upload has the SHA-256 %s", sum)
	case (b.Size > 0 || b.Empty) && b.Size != size:
		return nil, fault.New(fault.Invalid,
			"payload.size: found %d; the file of the upload has %d bytes", b.Size, size)
	}

	b.URL, b.Uploader, b.Size, b.Empty = claim.URL(), claim.By(), size, size == 0
	if b.Digest == "" {
		b.Algorithm, b.Digest = "sha256", sum
	}
	return claim, nil
}

// payloadOf is the payload of a request. The URL is checked by its form only, and shown in errors
// without its secrets. A size of 0 is not the same as none: it says that the file is empty. Without a
// name, the last part of the URL is the file's name, which has to be one that a manifest can have.
func payloadOf(in v1.Payload) (p ingest.Payload, err error) {
	if err := checkWhere(in); err != nil {
		return p, err
	}

	p = ingest.Payload{URL: in.URL, Upload: in.Upload, Type: in.Type, Filename: in.Filename}
	if in.Size != nil {
		p.Size, p.Empty = *in.Size, *in.Size == 0
	}

	if p.Filename == "" {
		if p.Filename, err = filenameOf(in); err != nil {
			return p, err
		}
	}

	if why := checkm.BadName(p.Filename); why != "" {
		return p, fault.New(fault.Invalid,
			"payload.filename: %q %s; give a name under which to store the file",
			ingest.Cut(p.Filename, 200), why)
	}

	if d := in.Digest; d != nil {
		p.Algorithm, p.Digest = checkm.Canonical(d.Algorithm), strings.ToLower(d.Value)
		n, known := checkm.Lengths[p.Algorithm]
		if !known || len(p.Digest) != n || strings.Trim(p.Digest, "0123456789abcdef") != "" {
			return p, fault.New(fault.Invalid,
				"payload.digest: %q is not a digest of the algorithm %q; "+
					"expected hexadecimal of adler32, crc32, md5, sha1, sha256, sha384 or sha512",
				ingest.Cut(d.Value, 200), ingest.Cut(d.Algorithm, 50))
		}
	}
	return p, nil
}

// filenameOf is the name of a payload that was given without one.
func filenameOf(in v1.Payload) (string, error) {
	switch {
	case in.Upload == "":
		return source.Base(in.URL), nil
	case strings.HasSuffix(in.Type, "manifest"):
		return "manifest.checkm", nil
	}
	return "", fault.New(fault.Invalid, "payload.filename: there is none; the files of an upload have no names, so "+
		"give the name under which to store this one")
}

// checkWhere checks that a payload is at a URL, or in an upload.
func checkWhere(in v1.Payload) error {
	switch {
	case in.URL != "" && in.Upload != "":
		return fault.New(fault.Invalid, "payload.upload: the payload has a url, too; give one of them")
	case in.Upload == "" && in.File != "":
		return fault.New(fault.Invalid, "payload.file: it names a file of an upload; give the upload, too")
	case in.Upload != "":
		return nil
	}

	if err := source.CheckPayload(in.URL); err != nil {
		return fault.New(fault.Invalid, "payload.url: found %q; %w", ingest.Cut(fetch.Redact(in.URL), 200), err)
	}
	if len(in.URL) > ingest.MaxURL {
		return fault.New(fault.Invalid, "payload.url: found %d bytes; expected at most %d", len(in.URL), ingest.MaxURL)
	}
	return nil
}

// admissible checks a submission against its collection's profile and the stored objects. It reads the
// table, so it comes after all checks of the request itself.
func (a *API) admissible(ctx context.Context, b *ingest.Batch) error {
	profile, _, err := a.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return err
	}

	if why := profile.Refuses(b.Upload)(b.Payload.URL); why != "" {
		return fault.New(fault.Invalid, "payload.url: %s", why)
	}

	if profile.RequireDigest && b.Payload.NeedsDigest() {
		return fault.New(fault.Invalid,
			"payload.digest: the collection %s requires a digest; give its algorithm and value",
			b.Collection)
	}

	if b.Callback != "" {
		if err := a.Collections.CheckCallback(b.Collection, profile, b.Callback); err != nil {
			return err
		}
	}

	if b.Primary == "" {
		return nil
	}

	why, err := a.Identity.Unusable(ctx, b.Collection, b.Primary)
	if err != nil {
		return err
	}

	if why != "" {
		return fault.New(fault.Invalid, "identifiers.primary: %s", why)
	}
	return nil
}
