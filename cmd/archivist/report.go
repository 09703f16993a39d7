package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
)

type batchReportCmd struct {
	ID string `arg:"" name:"batch" help:"Id of a batch that has ended."`
}

func (batchReportCmd) prints() any { return v1.Report{} }

func (c *batchReportCmd) Run(a *app) error {
	body, err := a.client.Report(a.ctx, c.ID)
	if err != nil {
		return err
	}
	defer body.Close()
	if len(a.json) == len(fieldNames(reflect.TypeFor[v1.Report]())) { // a report of any size
		_, err := io.Copy(a.out, body)
		return err
	}
	if a.json == nil {
		return printReport(a.page(), body)
	}
	var r v1.Report
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	return a.print(r, nil)
}

// printReport prints a report of any size line by line as it comes.
func printReport(p page, report io.Reader) error {
	dec := json.NewDecoder(report)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		key := fmt.Sprint(name)
		switch {
		case slices.Contains([]string{"failed", "completed", "open"}, key):
			err = printJobs(p, dec)
		case key == "counts":
			var n v1.ReportCounts
			err = dec.Decode(&n)
			if p.width > 0 {
				fmt.Fprintln(p)
			}
			p.fields("jobs", fmt.Sprintf("%d completed, %d failed, %d open", n.Completed, n.Failed, n.Open))
		default:
			var value any
			err = dec.Decode(&value)
			if value != nil {
				p.fields(key, fmt.Sprint(value))
			}
		}
		if err != nil {
			return fmt.Errorf("the report cannot be read: %w", err)
		}
	}
	return nil
}

func printJobs(p page, dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		var j v1.ReportJob
		if err := dec.Decode(&j); err != nil {
			return err
		}
		printJob(p, j)
	}
	_, err := dec.Token()
	return err
}

// printJob prints how a job ended: for programs in one line.
func printJob(p page, j v1.ReportJob) {
	ids := strings.Join(j.LocalIDs, ", ")
	if p.width == 0 {
		table(p, []v1.ReportJob{j},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return j.Job }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return j.State }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return ids }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return j.ARK }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return versionText(j.Version) }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return j.Title }},
			column[v1.ReportJob]{text: func(j v1.ReportJob) string { return j.Message }})
		return
	}
	fmt.Fprintf(p, "\n%s  %s\n", in(stateStyle(j.State), printable(j.State)), printable(j.Job))
	texts := []string{strings.TrimSpace(j.Title + "  " + ids)}
	if j.Version > 0 {
		change := ""
		if j.NoChange {
			change = ", no change"
		}
		texts = append(texts, fmt.Sprintf("%s v%d%s, %s, %s", j.ARK, j.Version, change, count(j.Files, "file"), size(j.Bytes)))
	}
	if j.Warnings > 0 {
		texts = append(texts, "warning: the digest matched, the size differed: "+count(j.Warnings, "file"))
	}
	for _, text := range append(texts, j.Message, j.Next, j.Problem) {
		if text != "" {
			p.lines("  ", text)
		}
	}
}
