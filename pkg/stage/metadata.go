package stage

import (
	"context"
	"io"

	"archivist/pkg/aip"
	"archivist/pkg/description"
	"archivist/pkg/ingest"
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
