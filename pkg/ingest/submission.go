package ingest

import (
	"strings"

	"archivist/pkg/kernel/fault"
)

// CheckSubmission trims the identifiers of one object and removes duplicates. It returns an
// Invalid that names what is not allowed.
func CheckSubmission(primary *string, local *[]string, p Payload) error {
	ids, err := CleanLocalIDs(*local)
	if err != nil {
		return err
	}

	*primary, *local = strings.TrimSpace(*primary), ids
	switch {
	case len(*primary) > MaxLocalIDBytes:
		return fault.New(fault.Invalid, "the primary identifier has %d bytes; expected an ARK",
			len(*primary))
	case p.Size < 0:
		return fault.New(fault.Invalid,
			"the size of the payload is %d bytes; expected a positive number, or none", p.Size)
	}
	return nil
}

// Clean returns the description with trimmed elements, or an Invalid for an element that is
// not allowed. fields are the names of who, what, when and where in its message.
func (m Metadata) Clean(fields [4]string) (Metadata, error) {
	for i, text := range []*string{&m.Who, &m.What, &m.When, &m.Where} {
		*text = strings.TrimSpace(*text)
		if err := CheckText(fields[i], *text, MaxMetadata); err != nil {
			return m, err
		}
	}
	return m, nil
}

// Refused is a shortened job for a row that cannot be ingested: enough to find the row in
// the submission. It has no identifiers, so it takes no lock and no place in line.
func Refused(j Job) Job {
	const most = 2000
	return Job{
		ID:         j.ID,
		Batch:      j.Batch,
		Row:        j.Row,
		Collection: j.Collection,
		Submitter:  Cut(j.Submitter, most),
		By:         j.By,
		Mode:       j.Mode,
		Priority:   j.Priority,
		Payload: Payload{
			URL:      Cut(j.URL, most),
			Type:     j.Payload.Type,
			Filename: Cut(j.Filename, most),
			Uploader: j.Uploader,
		},
		Metadata: Metadata{What: Cut(j.What, most)},
	}
}
