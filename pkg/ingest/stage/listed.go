package stage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/payload"
	"archivist/pkg/objects/aip"
)

// innerManifest is a manifest in a container, of the files beside it. (Source: Merritt.)
const innerManifest = "mrt-manifest.txt"

// errFound ends a search.
var errFound = errors.New("found")

// listed compares the files of a container with the manifest among them, if there is one: each file it lists must be
// there and be the same, and each file that is there must be listed. It returns why the container is refused, or "".
func (u *unpacking) listed(ctx context.Context) (refused string, err error) {
	files, list := &ledgerBag{all: u.Work.Entries(ctx, u.job), kept: u.kept}, aip.Entry{}
	err = files.entries(func(e aip.Entry) error {
		if nameOf(e) != innerManifest {
			return nil
		}
		list = e
		return errFound
	})
	if err == nil || !errors.Is(err, errFound) {
		return "", err
	}

	rows, refused, err := u.innerRows(ctx, list)
	if err != nil || refused != "" {
		return refused, err
	}

	var wrong []string
	err = files.entries(func(e aip.Entry) error {
		name := nameOf(e)
		if name == innerManifest {
			return nil
		}
		row, is := rows[name]
		delete(rows, name)
		if why := differs(row, is, e); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s", ingest.Cut(name, maxProblem/4), why))
		}
		return nil
	})
	if err != nil {
		return "", err
	}

	for _, name := range slices.Sorted(maps.Keys(rows)) {
		wrong = append(wrong, ingest.Cut(name, maxProblem/4)+": it is listed, but not there")
	}
	if len(wrong) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the files are not those of %s (%s): %s. Correct the container, then submit it again",
		innerManifest, ingest.Counted(len(wrong), "problem"),
		strings.Join(wrong[:min(len(wrong), maxProblems)], "; ")), nil
}

// innerRows are the rows of the manifest in a container, by their names.
func (u *unpacking) innerRows(ctx context.Context, list aip.Entry) (rows map[string]checkm.Row, refused string,
	err error) {
	body, _, err := u.Work.Open(ctx, list.Source)
	if err != nil {
		return nil, "", err
	}

	defer body.Close()
	rows = map[string]checkm.Row{}
	m, problems, err := checkm.Read(body, checkm.Options{Inside: true}, func(r checkm.Row) error {
		if len(rows) <= maxBagFiles {
			rows[r.Name] = r
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}

	if why := payload.Rejected(m, problems, nil, checkm.Object); why != "" {
		return nil, innerManifest + ": " + why, nil
	}
	if len(rows) > maxBagFiles {
		return nil, fmt.Sprintf("%s has more than %d rows, which cannot be compared. Leave it out", innerManifest,
			maxBagFiles), nil
	}
	return rows, "", nil
}

// differs returns how a file is not the one of a row, or "". is says whether there is one.
func differs(row checkm.Row, is bool, e aip.Entry) string {
	computed := e.Digests[row.Algorithm]
	switch {
	case !is:
		return "it is not listed"
	case row.Size >= 0 && row.Size != e.Size:
		return fmt.Sprintf("it has %d bytes; the list says %d", e.Size, row.Size)
	case row.Digest != "" && computed == "":
		return "its " + row.Algorithm + " is not computed in a tar file; list its sha256, sha512, sha1 or md5"
	case row.Digest != computed && row.Digest != "":
		return fmt.Sprintf("its %s is %s; the list says %s", row.Algorithm, computed, row.Digest)
	}
	return ""
}
