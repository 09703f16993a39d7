package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/api/merritt"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/source"
)

// MerrittForm is a request of a client of Merritt.
type MerrittForm struct {
	Key     string `header:"Idempotency-Key" maxLength:"200"`
	RawBody []byte `contentType:"multipart/form-data"`

	contentType, accept string
}

// Resolve refuses a blank key, and keeps the headers about the form and its answer. huma calls it when the
// request is read.
func (in *MerrittForm) Resolve(ctx huma.Context) []error {
	in.contentType, in.accept = ctx.Header("Content-Type"), ctx.Header("Accept")
	return blankKey(ctx)
}

// MerrittObject is a MerrittForm whose path names the object.
type MerrittObject struct {
	MerrittForm
	Scheme string `path:"scheme" maxLength:"10"`
	NAAN   string `path:"naan" maxLength:"20"`
	Name   string `path:"name" maxLength:"200"`
}

// ark is the ARK in the path.
func (in *MerrittObject) ark() string {
	return strings.TrimSuffix(in.Scheme, ":") + ":/" + in.NAAN + "/" + in.Name
}

// MerrittState is the answer to a form that is accepted.
type MerrittState struct {
	ContentType string `header:"Content-Type"`
	BID         string `header:"BID" doc:"The id of the batch." example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	Body        []byte
}

// doors are the routes of Merritt's service poster, and those of its user interface, which its Ruby client uses: the
// path, the id and the summary of each.
var doors = [][3]string{
	{"/poster/submit", "posterSubmit", "Submit a form of Merritt"},
	{"/poster/add", "posterAdd", "Submit a form of Merritt, as with submit"},
	{"/poster/update", "posterUpdate", "Update an object by a form of Merritt"},
	{"/poster/submit/" + ofObjects, "posterSubmitObject", "Submit a form of Merritt for an object"},
	{"/poster/add/" + ofObjects, "posterAddObject", "Submit a form of Merritt for an object, as with submit"},
	{"/poster/update/" + ofObjects, "posterUpdateObject", "Update this object by a form of Merritt"},
	{"/object/ingest", "merrittIngest", "Submit a form of Merritt to its user interface"},
	{"/object/update", "merrittUpdate", "Update an object by Merritt's user interface"},
}

// ofObjects is the end of the paths that name an object.
const ofObjects = "{scheme}/{naan}/{name}"

// updates reports whether a form at a path is an update.
func updates(path string) bool { return strings.Contains(path, "/update") }

// doors registers the routes that clients of Merritt post to. The answers in Merritt's form are made here; the
// refusals, in asMerritt.
func (a *API) doors(h huma.API) {
	valid := validator(h)
	for _, d := range doors {
		op, update := operationAt(http.MethodPost, d[0], d[1], d[2]), updates(d[0])
		op.MaxBodyBytes, op.BodyReadTimeout = merritt.MaxForm, time.Minute
		op.Responses = map[string]*huma.Response{"200": {Description: "OK"}}
		if strings.HasSuffix(d[0], ofObjects) {
			huma.Register(h, op, func(ctx context.Context, in *MerrittObject) (*MerrittState, error) {
				to := merritt.Route{Update: update, ARK: in.ark()}
				return a.post(ctx, &in.MerrittForm, to, valid)
			})
			continue
		}
		huma.Register(h, op, func(ctx context.Context, in *MerrittForm) (*MerrittState, error) {
			return a.post(ctx, in, merritt.Route{Update: update}, valid)
		})
	}
}

// validator checks a submission by the same schema as the route of the API.
func validator(h huma.API) func(v1.BatchRequest) error {
	schemas := h.OpenAPI().Components.Schemas
	schema := schemas.Schema(reflect.TypeFor[v1.BatchRequest](), true, "BatchRequest")
	return func(in v1.BatchRequest) error {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			return err
		}
		var res huma.ValidateResult
		huma.Validate(schemas, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, value,
			&res)
		if len(res.Errors) == 0 {
			return nil
		}
		first := &huma.ErrorDetail{Message: res.Errors[0].Error()}
		if d, is := res.Errors[0].(huma.ErrorDetailer); is {
			first = d.ErrorDetail()
		}
		return fault.New(fault.Invalid, "%s: %s", first.Location, first.Message)
	}
}

// post makes a batch of a form.
func (a *API) post(ctx context.Context, posted *MerrittForm, to merritt.Route,
	valid func(v1.BatchRequest) error) (*MerrittState, error) {
	if _, err := merritt.Boundary(posted.contentType); err != nil {
		return nil, newRefusal(unsupportedMedia, err.Error())
	}

	form, err := merritt.Read(posted.contentType, posted.RawBody)
	if err != nil {
		return nil, a.problem(err)
	}
	in, err := form.Request(to)
	if err == nil {
		err = valid(in.Batch)
	}
	if err != nil {
		return nil, a.problem(err)
	}

	s := sending{Request: in, sum: upload.SumOf(in.Content)}
	row, err := a.send(ctx, &s, posted.Key)
	if err != nil {
		return nil, a.problem(err)
	}
	as := merritt.FormatOf(posted.contentType, posted.RawBody, posted.accept)
	return &MerrittState{as.Media() + "; charset=utf-8", row.Batch.ID, as.Encode(s.state(row))}, nil
}

// sending is a form on its way to a batch.
type sending struct {
	merritt.Request
	sum  string // SHA-256 of the content
	one  bool   // the payload is one object
	list []string
	// begins warns that the collection is new.
	begins string
}

// meaning is the form for the comparison of two: its fields and its content, without the upload that has it.
func (s *sending) meaning() ([]byte, error) {
	in := s.Batch
	in.Payload.File = s.sum
	return json.Marshal(in)
}

// send makes a batch of a form, by the same checks and steps as submit. All checks come before the content is stored.
func (a *API) send(ctx context.Context, s *sending, key string) (*queue.Batch, error) {
	if err := a.profileOf(ctx, s); err != nil {
		return nil, err
	}
	in := s.Batch
	in.Payload.Upload = source.NoUpload // for the checks that come before it is open
	b, err := batchOf(in)
	if err == nil {
		err = mayDeposit(ctx, b.Collection)
	}
	if err == nil {
		err = a.judge(ctx, &b, s)
	}
	if err != nil {
		return nil, err
	}

	meaning, err := s.meaning()
	if err != nil {
		return nil, err
	}
	k, err := a.sent(ctx, key, meaning)
	if k.row != nil || err != nil {
		return k.row, err
	}
	if err := a.admissible(ctx, &b); err != nil {
		return nil, err
	}
	s.begins, err = a.newCollection(ctx, b.Collection) // before the submission names it
	if err != nil {
		return nil, err
	}
	return a.take(ctx, s, k, meaning)
}

// profileOf takes the profile of a form for the collection. Names of Merritt's profiles end in "_content", those of its
// collections do not.
func (a *API) profileOf(ctx context.Context, s *sending) error {
	name := s.Batch.Collection
	short, is := strings.CutSuffix(name, "_content")
	if !is || !access.Names[access.Depositor].MatchString(short) {
		return nil
	}
	if _, known, err := a.Collections.Profile(ctx, name); known || err != nil {
		return err
	}
	_, known, err := a.Collections.Profile(ctx, short)
	if known {
		s.Batch.Collection = short
	}
	return err
}

// judge checks the content of a form: its size and its digest, and what a later step would refuse of it. Afterwards it
// is known whether it is one object, and the batch has a URL as it will have one.
func (a *API) judge(ctx context.Context, b *ingest.Batch, s *sending) error {
	b.URL = source.UploadURL(source.NoUpload, s.sum)
	if err := arrived(b, s.Content); err != nil {
		return err
	}
	kind, err := kindOf(b, s.Content)
	if err != nil {
		return err
	}
	profile, _, err := a.Collections.Profile(ctx, b.Collection)
	if err != nil {
		return err
	}

	_, many := payload.Lists[kind]
	s.one = !many
	switch {
	case many && b.ForOneObject() != "":
		return fault.New(fault.Invalid, "%s", b.ForOneObject())
	case !many && b.NothingToUpdate() != "":
		return fault.New(fault.Invalid, "primaryIdentifier: %s", b.NothingToUpdate())
	}

	return s.read(b, kind, profile)
}

// read reads the content as what it is: a manifest, with all of its problems, or a container.
func (s *sending) read(b *ingest.Batch, kind string, profile collection.Profile) error {
	// The upload of a form has the one file: no row of a manifest can be of it.
	why, digests, refuses := "", profile.RequireDigest, profile.Refuses("")
	switch list := payload.Lists[kind]; {
	case !s.one:
		_, s.list, why = payload.ReadList(s.Content, b, list.Kind, checkm.Options{InOrder: true,
			RequireDigest: digests && list.Row != ingest.TypeObjectManifest,
			Check:         payload.CheckRow(refuses)})
	case kind == ingest.TypeObjectManifest:
		m, problems, err := checkm.Read(bytes.NewReader(s.Content), checkm.Options{InOrder: true,
			RequireDigest: digests, Check: payload.CheckSource(refuses)}, nil)
		s.list, why = payload.Warnings(problems), payload.Rejected(m, problems, err, checkm.Object)
	case kind == ingest.TypeContainer && container.Detect(s.Content) == "":
		why = "it is no zip, tar, tar.gz or tar.bz2 file, and the type is container"
	}
	if why != "" {
		return fault.New(fault.Invalid, "file: %s", why)
	}
	return nil
}

// arrived compares the content with the size and the digest that the form says.
func arrived(b *ingest.Batch, content []byte) error {
	came := fetch.NewDigester(b.Algorithm)
	_, _ = came.Write(content) // it cannot fail
	if (b.Size > 0 || b.Empty) && b.Size != came.Size {
		return fault.New(fault.Invalid, "size: found %d; the file that arrived has %d bytes", b.Size,
			came.Size)
	}
	if why := payload.WrongDigest("the file", came, b.Payload); why != "" {
		return fault.New(fault.Invalid, "digestValue: %s", why)
	}
	return nil
}

// kindOf is the type of the payload: the one that the form names, or what its content is.
func kindOf(b *ingest.Batch, content []byte) (string, error) {
	if b.Payload.Type != "" {
		return b.Payload.Type, nil
	}
	seen := b.Payload
	seen.URL = "file"
	kind, err := payload.TypeOf(seen, content[:min(len(content), payload.Beginning)])
	if err != nil { // a web page in place of a file
		return "", fault.New(fault.Invalid, "%w", err)
	}
	return kind, nil
}

// mostSent is how often the same form makes another batch within a week.
const mostSent = 50

// formKeys are the keys of a form.
type formKeys struct {
	row    *queue.Batch // that the form has made before; nil: it is to make one
	batch  string       // of the batch to make
	upload string       // of the upload with its content
	again  bool         // another batch, which the form is not for any more, has the upload
}

// sent finds the batch that a form has made before; otherwise the keys by which it is to make one. Clients of
// Merritt send no keys, and send a form again when an answer is lost. So the same form by the same caller is the same
// submission while its batch is worked on, however long, which the upload knows; and for a day after that was
// submitted, which a key of each time knows. One that failed or was deleted is submitted again.
func (a *API) sent(ctx context.Context, key string, meaning []byte) (k formKeys, err error) {
	if key != "" {
		k.batch = keyOf(ctx, key)
		k.upload = k.batch
		k.row, err = a.Queue.Submitted(ctx, k.batch, meaning)
		return k, err
	}

	form := "form\x00" + named(identityOf(ctx)) + "\x00" + upload.SumOf(meaning)
	k.upload = keyOf(ctx, form)
	if err := a.waiting(ctx, &k); k.row != nil || err != nil {
		return k, err
	}

	keys := make([]string, mostSent)
	for n := range keys {
		keys[n] = keyOf(ctx, fmt.Sprintf("%s\x00%d", form, n))
	}
	used, err := a.Queue.Remembers(ctx, keys)
	if err != nil {
		return k, err
	}
	for n, use := range keys { // keys of earlier times end first: a free one may be before one that counts
		if !used[n] {
			k.batch = cmp.Or(k.batch, use)
			continue
		}
		row, err := a.Queue.Submitted(ctx, use, meaning)
		switch {
		case fault.Is(err, fault.Conflict): // its batch is removed; the form is in the key
		case err != nil:
			return k, err
		case row != nil && a.stands(&row.Batch):
			k.row = row
			return k, nil
		}
	}
	if k.batch == "" {
		return k, fault.New(fault.Conflict, "the same form was accepted %d times within a week; "+
			"send it with an Idempotency-Key of its own", mostSent)
	}
	return k, nil
}

// waiting finds the batch that has the upload of a form, if the form is for that still.
func (a *API) waiting(ctx context.Context, k *formKeys) error {
	id, err := a.Uploads.BatchOf(ctx, k.upload)
	if id == "" || err != nil {
		return err
	}
	k.again = true
	row, err := a.Queue.Batch(ctx, id)
	if err == nil && a.stands(&row.Batch) {
		k.row = row
	}
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// stands reports whether a batch is the answer to a form that is sent again.
func (a *API) stands(b *ingest.Batch) bool {
	if b.State == ingest.BatchCompleted {
		return a.Queue.Now().UnixMilli()-b.Created < (24 * time.Hour).Milliseconds()
	}
	return !b.HasEnded()
}

// take stores the content of a form as an upload, and submits it.
func (a *API) take(ctx context.Context, s *sending, k formKeys, meaning []byte) (*queue.Batch,
	error) {
	by := named(identityOf(ctx))
	kept, err := a.Uploads.Bring(ctx, upload.Request{Collection: s.Batch.Collection, By: by,
		Note: "the file of a form of Merritt", Key: k.upload, Meaning: meaning, Again: k.again}, s.Content)
	if err != nil {
		return nil, err
	}

	in := s.Batch
	in.Payload.Upload = kept.ID
	b, err := batchOf(in)
	if err != nil {
		return nil, err
	}
	b.Begins = s.begins
	if more, err := a.otherForms(ctx, &b); err == nil {
		s.Warnings = append(s.Warnings, more...)
	}
	row, err := a.accept(ctx, &b, k.batch, s.sum, meaning)
	if err == nil {
		return row, nil
	}
	// Perhaps the same form came twice at once, and the other request has the upload.
	if known, failed := a.Queue.Submitted(ctx, k.batch, meaning); known != nil && failed == nil {
		return known, nil
	}
	return nil, err
}

// statuses are the names of Merritt for batches that have ended.
var statuses = map[ingest.BatchState]string{ingest.BatchCompleted: "COMPLETED",
	ingest.BatchFailed:  "FAILED",
	ingest.BatchDeleted: "DELETED"}

// state is the answer about the batch of a form.
func (s *sending) state(row *queue.Batch) merritt.State {
	b, at := &row.Batch, ingest.Timestamp(row.Batch.Created)
	if row.Begins != "" {
		s.Warnings = append([]string{row.Begins}, s.Warnings...)
	}
	out := merritt.State{Batch: b.ID, Package: b.Filename, User: b.Submitter, At: at,
		Status:  "QUEUED",
		Message: strings.Join(append(s.Warnings, s.list...), "; ")}
	if ended, has := statuses[row.State]; has {
		out.Status = ended
	}
	if s.one {
		out.Jobs.Job = &merritt.Job{ID: ingest.JobID(b.ID, 1), Package: b.Filename,
			Primary: b.Primary,
			Local:   strings.Join(b.LocalIDs, "; "), Creator: b.Who, Title: b.What, Date: b.When,
			At: at}
	}
	return out
}
