package stage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"archivist/pkg/ark"
	"archivist/pkg/erc"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
)

// inPackage are the descriptions that a package may bring, best first. They
// count at its top level only.
var inPackage = []struct {
	path string
	read func(io.Reader) (erc.Kernel, error)
}{
	{"producer/mrt-erc.txt", erc.ReadERC},
	{"producer/mrt-datacite.xml", erc.ReadDataCite},
	{"producer/mrt-dc.xml", erc.ReadDC},
}

func describes(path string) bool {
	for _, d := range inPackage {
		if d.path == path {
			return true
		}
	}
	return false
}

// maxDescription bounds a description in bytes.
const maxDescription = 1 << 20

// describeJob settles the job's description, element by element: the package's ERC,
// its DataCite, its Dublin Core, then what the manifest's row or the form said.
// An ark among its "where" is the primary identifier; the others are local ids.
// files are the package's descriptions by path. It returns why the submission is
// refused, or "".
func (s *Stages) describeJob(ctx context.Context, j *ingest.Job, files map[string]Entry) (refused string, err error) {
	k := erc.Kernel{}
	for _, d := range inPackage {
		file, has := files[d.path]
		if !has {
			continue
		}
		body, _, err := s.Work.Open(ctx, file.Source)
		if err != nil {
			return "", err
		}
		found, err := d.read(io.LimitReader(body, maxDescription))
		body.Close()
		if err != nil {
			return fmt.Sprintf("%s cannot be read: %v; mend it or leave it out", strings.TrimPrefix(d.path, "producer/"), err), nil
		}
		k = k.Or(found)
	}
	form := erc.Kernel{}
	for to, v := range map[*[]string]string{&form.Who: j.Who, &form.What: j.What, &form.When: j.When} {
		if !erc.Absent(v) {
			*to = []string{v}
		}
	}
	k = k.Or(form)
	j.Who, j.What, j.When = strings.Join(k.Who, "; "), strings.Join(k.What, "; "), strings.Join(k.When, "; ")
	return identifiers(j, k.Where), nil
}

// identifiers takes the "where" of a description into the job's identifiers.
func identifiers(j *ingest.Job, where []string) (refused string) {
	for _, w := range where {
		id, err := ark.Parse(w)
		if err != nil {
			if !strings.Contains(w, ";") && !slices.Contains(j.LocalIDs, w) {
				j.LocalIDs = append(j.LocalIDs, w)
			}
			continue
		}
		if j.Primary != "" && j.Primary != id.String() {
			return fmt.Sprintf("the package's description says %s, but the submission is for %s; make them agree", id, j.Primary)
		}
		j.Primary = id.String()
	}
	return ""
}

// fromBefore fills what nothing said from the description of the object's newest
// version.
func (s *Stages) fromBefore(ctx context.Context, j *ingest.Job) error {
	if j.Who != "" && j.What != "" && j.When != "" {
		return nil
	}
	o, err := s.Inventory.Object(ctx, j.Primary)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for from, to := range map[*string]*string{&o.Who: &j.Who, &o.Title: &j.What, &o.When: &j.When} {
		if *to == "" && !erc.Absent(*from) {
			*to = *from
		}
	}
	return nil
}
