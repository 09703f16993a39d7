package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

type batchReportCmd struct {
	ID string `arg:"" help:"Id of the batch."`
}

func (c *batchReportCmd) Run(a *app) error {
	body, err := a.client.Report(a.ctx, c.ID)
	if err != nil {
		return err
	}
	defer body.Close()
	if a.json {
		_, err := io.Copy(a.out, body)
		return err
	}
	return printReport(a.out, body)
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
func printReport(w io.Writer, report io.Reader) error {
	dec := json.NewDecoder(report)
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the report is not JSON: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		switch name {
		case "failed", "completed", "open":
			err = printJobs(w, dec)
		case "counts":
			var n struct{ Failed, Completed, Open int }
			err = dec.Decode(&n)
			fields(w, "jobs", fmt.Sprintf("%d completed, %d failed, %d open", n.Completed, n.Failed, n.Open))
		default:
			var value any
			err = dec.Decode(&value)
			fields(w, name, value)
		}
		if err != nil {
			return fmt.Errorf("the report cannot be read: %w", err)
		}
	}
	return nil
}

func printJobs(w io.Writer, dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		var j reportJob
		if err := dec.Decode(&j); err != nil {
			return err
		}
		line := fmt.Sprintf("%s %s %s %s", strings.ToUpper(j.State), j.Job, j.Title, strings.Join(j.LocalIDs, ", "))
		fmt.Fprintln(w, printable(line))
		if j.Version > 0 {
			change := ""
			if j.NoChange {
				change = ", no change"
			}
			fmt.Fprintf(w, "  %s v%d%s, %d files, %s\n", printable(j.ARK), j.Version, change, j.Files, size(j.Bytes))
		}
		if j.Warnings > 0 {
			fmt.Fprintf(w, "  warning: the digest matched, the size differed: %d files\n", j.Warnings)
		}
		for _, s := range []string{j.Message, j.Next} {
			if s != "" {
				fmt.Fprintln(w, "  "+printable(s))
			}
		}
	}
	_, err := dec.Token()
	return err
}
