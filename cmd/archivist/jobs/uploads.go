package jobs

import (
	"fmt"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// batchUploadsCmd lists uploads: the files of a submission before it is a batch, and until the batch has ended.
type batchUploadsCmd struct {
	Collection string      `short:"c" required:"" help:"Collection of the uploads." placeholder:"NAME"`
	State      uploadState `help:"Only uploads in this state, e.g. open." placeholder:"STATE"`
	command.Limit
}

func (batchUploadsCmd) Prints() any { return v1.Upload{} }

// Run lists the newest uploads first.
func (c *batchUploadsCmd) Run(a *command.App) error {
	return command.List(a, c.Limit, uploadColumns...)(a.Client.Uploads(a.Ctx,
		v1.Filter{Collection: c.Collection, State: string(c.State), Limit: c.More()}))
}

var uploadColumns = []terminal.Column[v1.Upload]{
	{Title: "upload", Text: func(u v1.Upload) string { return u.ID }},
	{Title: "state", Text: func(u v1.Upload) string { return u.State }, Style: command.StateStyle},
	{Title: "stored", Text: func(u v1.Upload) string {
		return fmt.Sprintf("%d of %d", u.Stored.Files, u.Files)
	}},
	{
		Title: "size",
		Text:  func(u v1.Upload) string { return terminal.Size(u.Bytes) },
		Raw:   func(u v1.Upload) string { return fmt.Sprint(u.Bytes) },
		Extra: true,
	},
	{
		Title: "ends",
		Text: func(u v1.Upload) string {
			if u.State != v1.UploadOpen {
				return ""
			}
			return command.Minute(u.Expires)
		},
		Raw:   func(u v1.Upload) string { return u.Expires },
		Extra: true,
	},
	{Title: "batch", Text: func(u v1.Upload) string { return u.Batch }},
}

// batchDiscardCmd ends an upload that nobody will submit: its files are removed, and no longer count.
type batchDiscardCmd struct {
	ID     string `arg:"" name:"upload" help:"Id of an upload (archivist batch uploads lists them)."`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (batchDiscardCmd) Prints() any { return v1.Upload{} }

// Run is refused for an upload that a batch has.
func (c *batchDiscardCmd) Run(a *command.App) error {
	return command.Show(a, showUpload)(a.Client.DiscardUpload(a.Ctx, c.ID, c.Reason))
}

func showUpload(p terminal.Page, u v1.Upload) {
	p.Fields("upload", u.ID, "state", u.State, "collection", u.Collection,
		"files", fmt.Sprintf("%d, %s", u.Files, terminal.Size(u.Bytes)),
		"stored", fmt.Sprintf("%d, %s", u.Stored.Files, terminal.Size(u.Stored.Bytes)),
		"batch", u.Batch, "note", u.Note)
}
