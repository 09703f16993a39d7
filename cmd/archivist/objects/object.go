package objects

import (
	"fmt"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// objectListCmd lists the objects of a collection, or all. It can also find one by the depositor's own id, which is
// unique in its collection.
type objectListCmd struct {
	Collection string `short:"c" help:"Only objects of this collection." placeholder:"NAME"`
	LocalID    string `help:"Only the object that has this local id in the collection." placeholder:"ID"`
	Title      string `help:"Only objects whose title begins so." placeholder:"TEXT"`
	Date       string `help:"Only objects whose date begins so: a year, a month or a day." placeholder:"DATE"`
	Format     string `help:"Only objects with a file of this media type or PRONOM id." placeholder:"FORMAT"`
	Sort       string `help:"Order: title, date or modified." placeholder:"FIELD"`
	direction
	command.Limit
}

func (objectListCmd) Prints() any { return v1.Object{} }

// direction turns an order around.
type direction struct {
	Order string `help:"Direction of --sort: ascending or descending." placeholder:"DIRECTION"`
}

// Run lists the last changed objects of a collection first: they are needed most often. Other lists are by title or
// date, or as --sort says.
func (c *objectListCmd) Run(a *command.App) error {
	filter := v1.Filter{
		Collection: c.Collection,
		LocalID:    c.LocalID,
		Title:      c.Title,
		Date:       c.Date,
		Format:     c.Format,
		Sort:       c.Sort,
		Order:      c.Order,
		Limit:      c.More(),
	}
	return command.List(a, c.Limit, objectColumns...)(a.Client.Objects(a.Ctx, filter))
}

// objectColumns have the depositor's own ids next to the ARK. Programs get the time of the last fixity check at
// the end.
var objectColumns = []terminal.Column[v1.Object]{
	{Title: "ark", Text: func(o v1.Object) string { return o.ARK }},
	{Title: "version", Text: func(o v1.Object) string { return command.VersionText(o.Version) }},
	{
		Title: "title",
		Text: func(o v1.Object) string {
			if marks := marked(o); len(marks) > 0 {
				return "(" + strings.Join(marks, ", ") + ") " + o.Title
			}
			return o.Title
		},
		Raw:   func(o v1.Object) string { return o.Title },
		Share: 1,
	},
	{
		Title: "local ids",
		Text:  func(o v1.Object) string { return strings.Join(o.LocalIDs, ", ") },
		Share: 1,
	},
	{
		Title: "modified",
		Text:  func(o v1.Object) string { return command.Minute(o.Modified) },
		Raw:   func(o v1.Object) string { return o.Modified },
		Extra: true,
	},
	{Title: "fixity", Text: func(o v1.Object) string { return o.FixityOutcome }},
	{Text: func(o v1.Object) string { return o.FixityChecked }},
}

// marked are the decisions about an object that a reader of a list should not miss. What its collection says of all its
// objects is not among them.
func marked(o v1.Object) (marks []string) {
	if o.Withdrawn != nil {
		marks = append(marks, "withdrawn")
	}
	if o.Embargo != nil {
		marks = append(marks, "embargo")
	}
	for _, k := range o.Kept {
		if k.Kind == "legal-hold" && k.Of == "object" {
			marks = append(marks, "legal hold")
		}
	}
	return marks
}

// objectShowCmd shows the versions of an object, and which job stored each.
type objectShowCmd struct {
	named
}

// objectWithVersions is the output for an object.
type objectWithVersions struct {
	v1.Object
	Versions []v1.Version `json:"versions"`
}

func (objectShowCmd) Prints() any { return objectWithVersions{} }

// Run makes two requests: the object, and its versions, oldest first.
func (c *objectShowCmd) Run(a *command.App) error {
	id, err := c.ark(a)
	if err != nil {
		return err
	}

	o, err := a.Client.Object(a.Ctx, id)
	if err != nil {
		return err
	}

	versions, err := a.Client.Versions(a.Ctx, o.ARK)
	if err != nil {
		return err
	}
	return a.Print(objectWithVersions{o, versions}, func(p terminal.Page) {
		fields := []string{"ark", o.ARK, "title", o.Title, "collection", o.Collection,
			"local ids", strings.Join(o.LocalIDs, ", "),
			"created", o.Created, "modified", o.Modified, "stored at", o.Stored, "fixity checked",
			fixityText(o), "withdrawn", withdrawalText(o), "embargo", embargoText(o)}
		for _, k := range o.Kept {
			fields = append(fields, "kept", keptText(k))
		}
		p.Fields(fields...)
		fmt.Fprintln(p)
		terminal.Table(p, versions, versionColumns...)
	})
}

// withdrawalText is why an object is withdrawn; "" if it is not.
func withdrawalText(o v1.Object) string {
	if o.Withdrawn == nil {
		return ""
	}
	return decidedText(o.Withdrawn.At, o.Withdrawn.By, o.Withdrawn.Reason)
}

// embargoText is until when the files of an object are not given out, and why; "" if they are.
func embargoText(o v1.Object) string {
	if o.Embargo == nil {
		return ""
	}
	return "until " + o.Embargo.Until + ", said " + decidedText(o.Embargo.At, o.Embargo.By, o.Embargo.Reason)
}

// decidedText says when, by whom, if that is known, and why something was decided.
func decidedText(at, by, reason string) string {
	if by != "" {
		at += ", by " + by
	}
	return at + ": " + reason
}

// keptText is why content of an object may not be deleted.
func keptText(k v1.Kept) string {
	text := "legal hold"
	if k.Until != "" {
		text = "until " + k.Until
	}

	switch {
	case k.Of == "collection":
		text += ", of the collection"
	case k.At != "":
		text += fmt.Sprintf(", said %s by %s", k.At, k.By)
	}

	if k.Reason != "" {
		text += ": " + k.Reason
	}
	return text
}

// versionColumns have the digest of the version's inventory for programs: it proves the content of the version,
// since the inventory has the digests of all files.
var versionColumns = []terminal.Column[v1.Version]{
	{Title: "version", Text: func(v v1.Version) string { return command.VersionText(v.Version) }},
	{Title: "created", Text: func(v v1.Version) string { return v.Created }},
	{Title: "files", Text: func(v v1.Version) string { return strconv.Itoa(v.Files) }},
	{
		Title: "size",
		Text:  func(v v1.Version) string { return terminal.Size(v.Bytes) },
		Raw:   func(v v1.Version) string { return strconv.FormatInt(v.Bytes, 10) },
	},
	{Title: "job", Text: func(v v1.Version) string { return v.Job }},
	{Text: func(v v1.Version) string { return v.InventoryDigest }},
}

// objectFilesCmd lists the files that object get can download.
type objectFilesCmd struct{ version }

func (objectFilesCmd) Prints() any { return v1.File{} }

// Run lists the files of the newest version unless another is named.
func (c *objectFilesCmd) Run(a *command.App) error {
	_, files, err := c.files(a)
	if err != nil {
		return err
	}
	return a.Print(files, func(p terminal.Page) { terminal.Table(p, files, fileColumns...) })
}

// fileColumns have the sha512 for programs: it is the digest of the OCFL inventory.
var fileColumns = []terminal.Column[v1.File]{
	{Title: "path", Text: func(f v1.File) string { return f.Path }, Share: 1},
	{
		Title: "size",
		Text:  func(f v1.File) string { return terminal.Size(f.Size) },
		Raw:   func(f v1.File) string { return strconv.FormatInt(f.Size, 10) },
	},
	{Title: "type", Text: func(f v1.File) string { return f.MediaType }, Share: 1},
	{Title: "sha256", Text: func(f v1.File) string { return f.Digests["sha256"] }, Share: 1},
	{Text: func(f v1.File) string { return f.Digests["sha512"] }},
}
