package jobs

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// errTwoForms refuses --csv beside --json.
var errTwoForms = command.Usage("give --csv or --json, not both")

// batchReportCmd streams a report: that of 30,000 jobs has more than 8 MB.
type batchReportCmd struct {
	ID     string `arg:"" name:"batch" help:"Id of a batch that has ended."`
	Number int    `help:"The report of this number, from 1; if not given, the newest." placeholder:"N"`
	CSV    bool   `name:"csv" help:"Print its jobs as CSV."`
}

func (batchReportCmd) Prints() any { return v1.Report{} }

// Run holds the whole report in memory only if some of its fields are asked for. There is no report before the
// batch has ended: the error is NotFound.
func (c *batchReportCmd) Run(a *command.App) error {
	if c.CSV && len(a.JSON) > 0 {
		return errTwoForms
	}
	if c.CSV {
		return a.Client.ReportCSV(a.Ctx, c.ID, c.Number, a.Out)
	}
	body, err := a.Client.Report(a.Ctx, c.ID, c.Number)
	if err != nil {
		return err
	}

	defer body.Close()
	// All fields are what the archive has sent: it is copied, byte for byte, not decoded and encoded again.
	all := command.FieldNames(reflect.TypeFor[v1.Report]())
	switch len(a.JSON) {
	case 0:
		return printReport(a.Page(), body)
	case len(all): // the document, unchanged
		_, err := io.Copy(a.Out, body)
		return err
	}

	var r v1.Report
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	// No text is printed here: only JSON comes to this point.
	return a.Print(r, nil)
}

// printReport prints a report of any size while it is received: job by job, with the text of the batch as it
// comes. What cannot be read to its end is an error, after the part that was printed.
func printReport(p terminal.Page, report io.Reader) error {
	dec := json.NewDecoder(report)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}

	for dec.More() {
		// The fields come in the order of the document; what is not known here is read over.
		name, err := dec.Token()
		if err != nil {
			return err
		}

		key := fmt.Sprint(name)
		switch {
		case slices.Contains(v1.ReportLists, key):
			_, err = v1.EachJob(dec, func(j v1.ReportJob) (more bool) {
				printJob(p, j)
				return true
			})
		case key == "warnings":
			var all []string
			err = dec.Decode(&all)
			warned(p, all)
		case key == "counts":
			var n v1.ReportCounts
			err = dec.Decode(&n)
			if p.ForPeople() {
				fmt.Fprintln(p)
			}
			cancelled := ""
			if n.Cancelled > 0 {
				cancelled = fmt.Sprintf("%d cancelled, ", n.Cancelled)
			}
			p.Fields("jobs",
				fmt.Sprintf("%d completed, %d failed, %s%d deleted, %d open", n.Completed, n.Failed,
					cancelled, n.Deleted, n.Open))
		case key == "changes":
			var n v1.ReportChanges
			err = dec.Decode(&n)
			p.Fields("changes",
				fmt.Sprintf("%d now preserved, %d newly failed, %d still failed, %d deleted",
					n.NowPreserved, n.NewlyFailed, n.StillFailed, n.Deleted))
		default:
			var value any
			err = dec.Decode(&value)
			if value != nil && !isFirst(key, value) {
				p.Fields(key, fmt.Sprint(value))
			}
		}

		if err != nil {
			return fmt.Errorf("the report cannot be read: %w", err)
		}
	}
	if _, err := dec.Token(); err != nil { // a document that is cut off has no end
		return fmt.Errorf("the report cannot be read: %w", err)
	}
	return nil
}

// isFirst reports whether a field is the number of the first report. Most batches have only
// that one, so its number says nothing.
func isFirst(key string, value any) bool { return key == "number" && value == 1.0 }

// printJob prints the result of a job with what the depositor can do next: state, id, object, warnings, message,
// next step. For programs it is one line.
func printJob(p terminal.Page, j v1.ReportJob) {
	if !p.ForPeople() {
		terminal.Table(p, []v1.ReportJob{j}, reportColumns...)
		return
	}

	change := ""
	if j.Change != "" {
		change = "  " + terminal.Printable(j.Change)
	}

	if j.Cancelled {
		change = "  cancelled" + change
	}

	fmt.Fprintf(p, "\n%s  %s%s\n", command.StateStyle(j.State).Of(terminal.Printable(j.State)),
		terminal.Printable(j.Job), change)

	texts := []string{strings.TrimSpace(j.Title + "  " + strings.Join(j.LocalIDs, ", "))}
	if j.Version > 0 {
		change := ""
		if j.NoChange {
			change = ", no change"
		}
		texts = append(texts, fmt.Sprintf("%s v%d%s, %s, %s", j.ARK, j.Version, change,
			terminal.Count(j.Files, "file"), terminal.Size(j.Bytes)))
	}

	for _, w := range j.Warnings {
		texts = append(texts, "warning: "+w)
	}

	for _, text := range append(texts, j.Message, j.Next, j.Problem) {
		if text != "" {
			p.Lines("  ", text)
		}
	}
}

// reportColumns are for programs only.
var reportColumns = []terminal.Column[v1.ReportJob]{
	{Text: func(j v1.ReportJob) string { return j.Job }},
	{Text: func(j v1.ReportJob) string { return j.State }},
	{Text: func(j v1.ReportJob) string { return strings.Join(j.LocalIDs, ", ") }},
	{Text: func(j v1.ReportJob) string { return j.ARK }},
	{Text: func(j v1.ReportJob) string { return command.VersionText(j.Version) }},
	{Text: func(j v1.ReportJob) string { return j.Title }},
	{Text: func(j v1.ReportJob) string { return j.Message }},
	{Text: func(j v1.ReportJob) string { return j.Change }},
}
