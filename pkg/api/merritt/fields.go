package merritt

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/nearest"
)

// Field is a field of the form: what it means here.
type Field struct {
	Name    string
	Means   string // for people
	Several bool   // it may be there several times
	set     func(in *Request, values []string) error
}

// Fields are the fields that a form can have, beside the file, in the order of docs/merritt.md.
var Fields = []Field{
	{Name: "profile", Means: "The collection. A name that ends in `_content` means the collection without this " +
		"ending if only that one has a profile.",
		set: to(func(in *Request) *string { return &in.Batch.Collection })},
	{Name: "submitter", Means: "The name or account of the submitter.",
		set: to(func(in *Request) *string { return &in.Batch.Submitter })},
	{Name: "type", Means: "The type of the payload, in any case; by default it is detected. Also `manifest`, " +
		"`batchManifest`, `batchManifestFile` and `batchManifestContainer`.", set: setType},
	{Name: "filename", Means: "The name of the file. By default the one of the part `file`.",
		set: to(func(in *Request) *string { return &in.Batch.Payload.Filename })},
	{Name: "size", Means: "The size of the file in bytes. What arrives is compared with it.",
		set: setSize},
	{Name: "digestType", Means: "The algorithm of the digest: adler-32, crc-32, md5, sha-1, " +
		"sha-256, sha-384 or " +
		"sha-512, in any case.",
		set: to(func(in *Request) *string { return &in.digest().Algorithm })},
	{Name: "digestValue", Means: "The digest of the file. What arrives is compared with it.",
		set: to(func(in *Request) *string { return &in.digest().Value })},
	{Name: "primaryIdentifier", Means: "The ARK of the object. Also `object`.", set: setPrimary},
	{Name: "object", Means: "As `primaryIdentifier`.", set: setPrimary},
	{Name: "localIdentifier", Means: "Local ids of the object, separated by semicolons.",
		Several: true,
		set: func(in *Request, values []string) error {
			in.identifiers().Local = split(values)
			return nil
		}},
	{Name: "creator", Means: "Who made the object.",
		set: to(func(in *Request) *string { return &in.metadata().Who })},
	{Name: "title", Means: "The title of the object.",
		set: to(func(in *Request) *string { return &in.metadata().What })},
	{Name: "date", Means: "The date of the object.",
		set: to(func(in *Request) *string { return &in.metadata().When })},
	{Name: "note", Means: "A note about the submission.",
		set: to(func(in *Request) *string { return &in.Batch.Note })},
	{Name: "notification", Means: "Mail addresses that get the report, separated by semicolons.",
		Several: true,
		set: func(in *Request, values []string) error {
			in.Batch.Notification = split(values)
			return nil
		}},
	{Name: "responseForm", Means: "The form of the answer: `xml` or `json`. By default the one of the header " +
		"`Accept`, or else `xml`.", set: checkFormat},
	{Name: "retainTargetURL", Means: "Only `false`: the target of an ARK always follows its object.",
		set: func(_ *Request, values []string) error {
			if strings.EqualFold(values[0], "false") {
				return nil
			}
			return fault.New(fault.Invalid, "retainTargetURL: found %q; an ARK is registered "+
				"with the address of its "+
				"object here, so leave it out", ingest.Cut(values[0], 100))
		}},
}

// Ignored are fields of Merritt's clients that change nothing of what is kept. The answer names them.
var Ignored = map[string]string{
	"notificationFormat": "reports are mailed as text, HTML and JSON",
	"synchronousMode":    "submissions are worked on after the answer",
	"batch":              "each submission is a batch of its own",
}

// unkept are fields of Merritt's that would describe the object, and have no place in a submission here.
func unkept(name string) bool {
	return name == "erc" || strings.HasPrefix(name, "DC.") || strings.HasPrefix(name, "DataCite.")
}

// Request makes of a form what it asks for. What cannot be done as it is asked is an Invalid that names the field.
func (f Form) Request(to Route) (in Request, err error) {
	in.Content = f.File
	in.Batch.Mode = ingest.ModeAdd
	if to.Update {
		in.Batch.Mode = ingest.ModeUpdate
	}

	values := map[string][]string{}
	for _, v := range f.fields {
		values[v.name] = append(values[v.name], v.value)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := in.set(name, values[name]); err != nil {
			return in, err
		}
	}

	if to.ARK != "" {
		if err := setPrimary(&in, []string{to.ARK}); err != nil {
			return in, err
		}
	}
	p := &in.Batch.Payload
	p.Filename = cmp.Or(p.Filename, f.Name)
	return in, in.complete()
}

// complete refuses a request that lacks what every submission has, or has half of a digest.
func (in *Request) complete() error {
	p := in.Batch.Payload
	switch d := p.Digest; {
	case in.Batch.Collection == "":
		return fault.New(fault.Invalid, "profile: it is missing; give the name of the collection")
	case p.Filename == "":
		return fault.New(fault.Invalid, "filename: the file has no name; give one")
	case d != nil && d.Algorithm == "":
		return fault.New(fault.Invalid, "digestType: it is missing, and there is a digestValue")
	case d != nil && d.Value == "":
		return fault.New(fault.Invalid, "digestValue: it is missing, and there is a digestType")
	}
	return nil
}

// set takes over the values of a field. A name that is not known is refused: it may be a misspelt one, e.g. of the
// local identifier, without which another object would be made.
func (in *Request) set(name string, values []string) error {
	i := slices.IndexFunc(Fields, func(f Field) bool { return f.Name == name })
	why, ignored := Ignored[name]
	switch {
	case ignored:
		in.Warnings = append(in.Warnings, name+" is ignored: "+why)
		return nil
	case unkept(name):
		return fault.New(fault.Invalid, "%s: a submission has no place for it here. Give "+
			"creator, title and date, or "+
			"send a container with a file mrt-erc.txt, mrt-dc.xml or mrt-datacite.xml",
			ingest.Cut(name, maxName))
	case i < 0:
		meant := ""
		if near := nearest.To(name, names()); near != "" {
			meant = "; did you mean " + near + "?"
		}
		return fault.New(fault.Invalid, "%q: the form of a submission has no such field%s", name,
			meant)
	case len(values) > 1 && !Fields[i].Several:
		return fault.New(fault.Invalid, "%s: it is there %d times; send it once", name, len(values))
	}
	return Fields[i].set(in, values)
}

// names are those of all fields.
func names() (all []string) {
	for _, f := range Fields {
		all = append(all, f.Name)
	}
	return all
}

// to sets a text of a request.
func to(at func(in *Request) *string) func(in *Request, values []string) error {
	return func(in *Request, values []string) error {
		*at(in) = values[0]
		return nil
	}
}

// split are the values of a field that has several, separated by semicolons.
func split(values []string) (out []string) {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ";") {
			one = strings.TrimSpace(one)
			if one != "" {
				out = append(out, one)
			}
		}
	}
	return out
}
