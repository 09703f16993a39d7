package main

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

type batchReportCmd struct {
	ID string `arg:"" name:"batch" help:"Id of a batch that has ended."`
}

// reportFields are the fields of the report, which is a document of its own.
type reportFields struct {
	Batch      json.RawMessage `json:"batch"`
	Collection json.RawMessage `json:"collection"`
	Note       json.RawMessage `json:"note"`
	At         json.RawMessage `json:"at"`
	Message    json.RawMessage `json:"message"`
	Failed     json.RawMessage `json:"failed"`
	Completed  json.RawMessage `json:"completed"`
	Open       json.RawMessage `json:"open"`
	Counts     json.RawMessage `json:"counts"`
}

func (batchReportCmd) prints() any { return reportFields{} }

func (c *batchReportCmd) Run(a *app) error {
	body, err := a.client.Report(a.ctx, c.ID)
	if err != nil {
		return err
	}
	defer body.Close()
	if len(a.json) == len(fieldNames(reflect.TypeFor[reportFields]())) { // a report of any size
		_, err := io.Copy(a.out, body)
		return err
	}
	if a.json == nil {
		return printReport(a.page(), body)
	}
	var r reportFields
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	return a.print(r, nil)
}

// reportJob is a job's line of a report, as far as it is shown.
type reportJob struct {
	Job, State, ARK, Title, Message, Next, Receipt string
	Version, Files, Warnings                       int
	NoChange                                       bool
	LocalIDs                                       []string
	Bytes                                          int64
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
			var n struct{ Failed, Completed, Open int }
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
		var j reportJob
		if err := dec.Decode(&j); err != nil {
			return err
		}
		j.print(p)
	}
	_, err := dec.Token()
	return err
}

// print prints a job: for programs in one line.
func (j reportJob) print(p page) {
	ids := strings.Join(j.LocalIDs, ", ")
	if p.width == 0 {
		table(p, []reportJob{j},
			column[reportJob]{text: func(j reportJob) string { return j.Job }},
			column[reportJob]{text: func(j reportJob) string { return j.State }},
			column[reportJob]{text: func(j reportJob) string { return ids }},
			column[reportJob]{text: func(j reportJob) string { return j.ARK }},
			column[reportJob]{text: func(j reportJob) string { return versionText(j.Version) }},
			column[reportJob]{text: func(j reportJob) string { return j.Title }},
			column[reportJob]{text: func(j reportJob) string { return j.Message }})
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
	for _, text := range append(texts, j.Message, j.Next) {
		if text != "" {
			p.lines("  ", text)
		}
	}
}
