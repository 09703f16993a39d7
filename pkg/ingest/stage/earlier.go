package stage

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// result is how a job ended by an earlier report. It is saved as a byte per job, so the numbers are
// never changed.
type result byte

// The results. unknown: the job is not in the report, or was open.
const (
	unknown result = iota
	preserved
	recoverable // it failed, and a requeue could succeed
	final       // it failed for good
	deleted
	cancelled // it failed because its batch was cancelled
)

// earlier is what an earlier report has about each job of its batch.
type earlier struct {
	At      string `json:"at,omitempty"` // when it was made; "" = there is none
	Results []byte `json:"results"`      // by row, from 0; see result
}

// readEarlier reads the newest saved report of a batch, which may be of any size, and the
// results of its jobs. A batch has none if it could not be made, or was removed by hand.
func (r Report) readEarlier(ctx context.Context, b *ingest.Batch) (*earlier, error) {
	e := &earlier{Results: make([]byte, b.Unpacked)}
	if b.Report == "" {
		return e, nil
	}

	body, _, err := r.Work.Open(ctx, b.Report)
	if fault.Is(err, fault.NotFound) {
		return e, nil
	}

	if err != nil {
		return nil, fmt.Errorf("the earlier report: %w", err)
	}

	defer body.Close()
	if err := e.read(body); err != nil {
		return nil, fmt.Errorf("the earlier report %s: %w", b.Report, err)
	}
	return e, nil
}

// savedEarlier is readEarlier, once for all tries of a report of several pages. Later tries compare
// with the same one, and do not read it again.
func (r Report) savedEarlier(ctx context.Context, b *ingest.Batch) (*earlier, error) {
	e := &earlier{}
	err := r.Work.GetJSON(ctx, workspace.EarlierKey(b), e)
	if !fault.Is(err, fault.NotFound) {
		return e, err
	}
	if e, err = r.readEarlier(ctx, b); err != nil {
		return nil, err
	}
	return e, r.Work.PutJSON(ctx, workspace.EarlierKey(b), e, bucket.Condition{})
}

// read reads a report as a stream. So that memory does not grow with the batch, only one line is
// decoded at a time.
func (e *earlier) read(report io.Reader) error {
	dec := jsontext.NewDecoder(report)
	if _, err := dec.ReadToken(); err != nil {
		return err
	}

	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}

		switch key := name.String(); {
		case key == "at":
			err = jsonv2.UnmarshalDecode(dec, &e.At)
		// All other arrays of a report are lists of jobs.
		case dec.PeekKind() == '[' && key != "warnings":
			err = e.readList(dec, key == "cancelled")
		default:
			err = dec.SkipValue()
		}

		if err != nil {
			return err
		}
	}

	_, err := dec.ReadToken()
	return err
}

// readList reads one of the lists of jobs. ofCancelled is set for that of cancelled jobs.
func (e *earlier) readList(dec *jsontext.Decoder, ofCancelled bool) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}

	for dec.PeekKind() == '{' {
		var line struct {
			Job         string       `json:"job"`
			State       ingest.State `json:"state"`
			Recoverable bool         `json:"recoverable"`
		}

		if err := jsonv2.UnmarshalDecode(dec, &line); err != nil {
			return err
		}

		_, number, _ := strings.Cut(line.Job, "-")
		if row, err := strconv.Atoi(number); err == nil && row >= 1 && row <= len(e.Results) {
			e.Results[row-1] = byte(resultOf(line.State, line.Recoverable, ofCancelled))
		}
	}

	_, err := dec.ReadToken()
	return err
}

// resultOf is how a job has ended, by what both a row and a line of a report have.
func resultOf(s ingest.State, canRecover, wasCancelled bool) result {
	switch {
	case s == ingest.Completed:
		return preserved
	case s == ingest.Failed && wasCancelled:
		return cancelled
	case s == ingest.Failed && canRecover:
		return recoverable
	case s == ingest.Failed:
		return final
	case s == ingest.Deleted:
		return deleted
	}
	return unknown
}

// change is what has changed for a job, and whether its next step is another one than then.
func (e *earlier) change(j *ingest.Job) (c notify.Change, nextStep bool) {
	then, now := result(e.Results[j.Row-1]), resultOf(j.State, !j.NotRecoverable, j.Cancelled)
	failedThen := then == recoverable || then == final
	switch {
	case now == unknown:
		return "", false
	case now != recoverable && now != final && now == then:
		return "", false
	case now == preserved:
		return notify.NowPreserved, false
	case now == deleted:
		return notify.NowDeleted, false
	case failedThen:
		return notify.StillFailed, now != then
	}
	// Also one that was cancelled then, and has failed by itself since.
	return notify.NewlyFailed, false
}
