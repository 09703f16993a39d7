package stagetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// World is the stages of one deployment on twins in this process, with a source of
// content. Its methods fail the test themselves.
type World struct {
	*testing.T
	Machine *queuetest.Machine
	Stages  *stage.Stages
	S3      *buckettest.Twin
	Rows    *tabletest.Fake
	Client  *tabletest.Client // between the stages and Rows
	Source  *httptest.Server  // answers "content of " and the path
	Refuse  atomic.Bool       // to copy two.txt
}

// NewWorld makes a deployment for a test.
func NewWorld(t *testing.T) *World {
	w := &World{T: t, S3: buckettest.New(t.TempDir()), Rows: tabletest.New()}
	w.S3.Before = func(op, name string) int {
		if w.Refuse.Load() && op == "Copy" && strings.Contains(name, "producer/two.txt") {
			return http.StatusServiceUnavailable
		}
		return 0
	}

	server := httptest.NewServer(w.S3)
	w.Source = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("content of " + r.URL.Path))
	}))

	t.Cleanup(server.Close)
	t.Cleanup(w.Source.Close)
	w.Client = &tabletest.Client{
		DynamoDBAPI: w.Rows,
		Do:          func(_ string, call func() error) error { return call() },
		Ends:        true,
	}
	w.Machine = queuetest.New(tabletest.Table(w.Client), time.Now, 50)
	w.Stages = New(w.Machine, server.URL)
	return w
}

// Submit submits one file as the new state of the one object, changed by how, and
// runs what can run.
func (w *World) Submit(name string, how ...func(*ingest.Batch)) string {
	w.Helper()
	in := ingest.Batch{
		Collection: "bench",
		Mode:       "add",
		LocalIDs:   []string{"one object"},
		Payload: ingest.Payload{
			URL:      w.Source.URL + "/" + name,
			Type:     ingest.TypeFile,
			Filename: name,
		},
	}

	for _, h := range how {
		h(&in)
	}

	b, err := w.Machine.Queue.Submit(w.Context(), in, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}

	w.Drive()
	return ingest.JobID(b.ID, 1)
}

// Drive runs what can run.
func (w *World) Drive() {
	w.Helper()
	if err := w.Machine.Run(w.Context(), 12); err != nil {
		w.Fatal(err)
	}
}

// Job reads a job.
func (w *World) Job(id string) *queue.Job {
	w.Helper()
	j, err := w.Machine.Queue.Job(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return j
}

// Ended fails unless a job is Completed as a version.
func (w *World) Ended(id string, version int, noChange bool) *queue.Job {
	w.Helper()
	j := w.Job(id)
	if j.State != ingest.Completed || j.ObjectVersion != version || j.NoChange != noChange {
		w.Errorf("%s is %s, v%d, no change %v; expected v%d: %s", id, j.State, j.ObjectVersion,
			j.NoChange, version,
			j.Message)
	}
	return j
}

// Refused fails unless a job is Failed for good with a reason that contains a text.
func (w *World) Refused(id, says string) {
	w.Helper()
	if j := w.Job(id); j.State != ingest.Failed || !j.NotRecoverable ||
		!strings.Contains(j.Message, says) {
		w.Errorf("%s is %s: %q; expected it to be refused with %q", id, j.State, j.Message, says)
	}
}

// InventoryKeys begin the keys of the inventory's rows.
var InventoryKeys = []string{"OBJECT#", "LOCAL#", "ARK#"}

// Forget deletes the inventory's rows whose key begins with one of these; with
// none, all of them: objects, versions, local ids, reservations. Events stay.
func (w *World) Forget(keys ...string) (gone int) {
	w.Helper()
	if len(keys) == 0 {
		keys = InventoryKeys
	}

	for _, row := range w.Rows.All() {
		k := table.Key{PK: row["pk"].(*types.AttributeValueMemberS).Value,
			SK: row["sk"].(*types.AttributeValueMemberS).Value}
		if strings.HasPrefix(k.SK, "EV#") || !slices.ContainsFunc(keys,
			func(begin string) bool { return strings.HasPrefix(k.String(), begin) }) {
			continue
		}

		if err := w.Stages.Queue.Table.Rows.Delete("pk", k.PK).Range("sk",
			k.SK).Run(w.Context()); err != nil {
			w.Fatal(err)
		}

		gone++
	}
	return gone
}

// Reindexed brings back the rows of an object.
func (w *World) Reindexed(ark string) {
	w.Helper()
	changed, done, err := w.Stages.Reindexer().Object(w.Context(), ark, "me",
		w.Machine.Queue.Now().Add(time.Hour))
	if err != nil || !changed || !done {
		w.Fatalf("changed %v, done %v, %v", changed, done, err)
	}
}

// Of makes a submission with these identifiers.
func Of(ark string, local ...string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Primary, b.LocalIDs = ark, local }
}

// In makes a submission to this collection.
func In(collection string) func(*ingest.Batch) {
	return func(b *ingest.Batch) { b.Collection = collection }
}

// Titled makes a submission with this title.
func Titled(what string) func(*ingest.Batch) { return func(b *ingest.Batch) { b.What = what } }

// OnShoulder is an ark with its check character.
func OnShoulder(name string) string {
	return "ark:/99999/" + name + string(ark.CheckCharacter("99999/"+name))
}

// Mails lets the twins send mails, except to recipients for which refuse returns an error.
// It returns what was sent as "recipient: subject".
func (w *World) Mails(refuse func(to string) error) *[]string {
	var sent []string
	w.Stages.MailFrom, w.Stages.API = "archive@example.org", "https://api.example.org/prod"
	w.Stages.SendMail = func(_ context.Context, raw []byte) error {
		msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
		if err != nil {
			return err
		}
		to := strings.Trim(msg.Header.Get("To"), "<>")
		if err := refuse(to); err != nil {
			return err
		}
		sent = append(sent, to+": "+msg.Header.Get("Subject"))
		return nil
	}
	return &sent
}

// BatchOf is the batch of a job.
func (w *World) BatchOf(job string) ingest.Batch {
	w.Helper()
	b, err := w.Machine.Queue.Batch(w.Context(), w.Job(job).Batch)
	if err != nil {
		w.Fatal(err)
	}
	return b.Batch
}
