package stage

import (
	"context"
	"fmt"
	"io"

	"archivist/pkg/aip"
	"archivist/pkg/anvl"
	"archivist/pkg/description"
	"archivist/pkg/erc"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/premis"
)

// describeJob settles the job's description from the records in its package, by their
// paths, and from what the submission said. The job's identifiers stay as they are;
// those that were found are in the result. refused says why the submission is refused,
// or is "".
func (s *Stages) describeJob(ctx context.Context, j *ingest.Job, files map[string]aip.Entry) (d description.Description, refused string,
	err error) {
	parts := map[string]description.Part{}
	for path, file := range files {
		parts[path] = description.Part{Size: file.Size, Open: func() (io.ReadCloser, error) {
			body, _, err := s.Work.Open(ctx, file.Source)
			return body, err
		}}
	}
	if j.Said == nil {
		said := j.Metadata
		j.Said = &said
	}
	d, refused, err = description.Settle(parts, *j.Said)
	if err == nil && refused == "" {
		d.Summarise(&j.Metadata)
	}
	return d, refused, err
}

// uncarried says which value of a job or its description cannot be written into the
// version's system files so that it is read the same, or "" if all can.
func uncarried(j *ingest.Job, d description.Description) (refused string) {
	is := func(name string, values ...string) {
		for _, v := range values {
			why := anvl.Carries(v)
			if why == "" {
				why = premis.Carries(v)
			}
			if why != "" && refused == "" {
				refused = fmt.Sprintf("the %s %.100q %s; correct it and submit again", name, v, why)
			}
		}
	}
	is("collection", j.Collection)
	is("submitter", j.Submitter)
	is("URL", fetch.Redact(j.URL))
	is("local id", j.LocalIDs...)
	is("creator (who)", d.Who...)
	is("title (what)", d.What...)
	is("date (when)", d.When...)
	for _, name := range erc.Elements {
		for _, v := range d.More[name] {
			if why := premis.Carries(v); why != "" && refused == "" {
				refused = fmt.Sprintf("the %s %.100q of the description %s; correct it and submit again", name, v, why)
			}
		}
	}
	return refused
}
