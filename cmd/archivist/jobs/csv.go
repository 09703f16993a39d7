package jobs

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
)

// errTwoForms refuses --csv beside --json.
var errTwoForms = command.Usage("give --csv or --json, not both")

// receiptCSV writes the files of a receipt, each with what says where they are.
func receiptCSV(to io.Writer, r v1.Receipt) error {
	table := command.NewCSV(to, "job", "ark", "version", "created", "path", "size", "sha256", "sha512",
		"given algorithm", "given digest", "warning")
	for _, f := range r.Files {
		var given v1.Digest
		if f.Given != nil {
			given = *f.Given
		}
		table.Row(r.Job, r.ARK, strconv.Itoa(r.Version), r.Created, f.Path, strconv.FormatInt(f.Size, 10),
			f.Digests["sha256"], f.Digests["sha512"], given.Algorithm, given.Value, f.Warning)
	}
	return table.Close()
}

// jobLists are the fields of a report that list jobs.
var jobLists = []string{"failed", "cancelled", "completed", "deleted", "open"}

// reportCSV writes the jobs of a report while it is received.
func reportCSV(to io.Writer, report io.Reader) error {
	table := command.NewCSV(to, "job", "state", "ark", "version", "local ids", "title", "files", "bytes", "source",
		"recoverable", "message", "warnings")
	row := func(j v1.ReportJob) {
		table.Row(j.Job, j.State, j.ARK, strconv.Itoa(j.Version), strings.Join(j.LocalIDs, "; "), j.Title,
			strconv.Itoa(j.Files), strconv.FormatInt(j.Bytes, 10), j.Source, strconv.FormatBool(j.Recoverable),
			j.Message, strings.Join(j.Warnings, "; "))
	}

	dec := json.NewDecoder(report)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err == nil && slices.Contains(jobLists, fmt.Sprint(name)) {
			err = eachJob(dec, row)
		} else if err == nil {
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return fmt.Errorf("the report cannot be read: %w", err)
		}
	}
	return table.Close()
}

// eachJob reads the jobs of a list in a report, one at a time, so that the memory it needs does not depend on their
// number.
func eachJob(dec *json.Decoder, f func(v1.ReportJob)) error {
	if _, err := dec.Token(); err != nil {
		return err
	}

	for dec.More() {
		var j v1.ReportJob
		if err := dec.Decode(&j); err != nil {
			return err
		}
		f(j)
	}

	_, err := dec.Token()
	return err
}
