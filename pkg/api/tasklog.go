package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// LogInput names a page of the output of an attempt.
type LogInput struct {
	AttemptInput
	From   string `query:"from" maxLength:"20" pattern:"^[0-9]*$"`
	Before string `query:"before" maxLength:"20" pattern:"^([0-9]*|end)$"`
}

// logPage bounds the bytes of a page of output. A gateway takes 6 MiB.
const logPage = 1 << 20

// taskLog is a page of what an attempt has written: stored parts, whose names are numbers of six
// digits, so that they sort as they were written. Next is the last part of the page, from which the
// following request goes on. The attempt is read before its parts are listed: if it had ended by then,
// no part is missing, and Ended may be said.
func (a *API) taskLog(ctx context.Context, in *LogInput) (out v1.TaskLog, err error) {
	out.Parts = []v1.TaskLogPart{}
	if in.From != "" && in.Before != "" {
		return out, fault.New(fault.Invalid, "from, before: expected only one of them")
	}
	t, ok, err := a.attempt(ctx, in.AttemptInput)
	if err != nil || !ok {
		return out, err
	}

	out.Attempt, out.Next = t.Number, in.From
	folder := t.Prefix(in.ID) + runner.LogFolder
	if in.Before != "" {
		return out, a.logBefore(ctx, t, folder, in.Before, &out)
	}
	all, err := a.logAfter(ctx, folder, in.From, &out)
	out.Ended = all && t.Ended > 0
	return out, err
}

// logAfter adds a page of the output after a place, "" for the begin, and reports whether that is all there is now.
func (a *API) logAfter(ctx context.Context, folder, from string, out *v1.TaskLog) (all bool, err error) {
	after := ""
	if from != "" {
		after = folder + from
	}
	page, more, err := a.Work.ListAfter(ctx, folder, after)
	if err != nil {
		return false, err
	}

	size := 0
	for _, part := range page {
		if size >= logPage {
			return false, nil
		}

		data, _, err := a.Work.Read(ctx, part.Key)
		if err != nil {
			return false, err
		}

		size += len(data)
		out.Parts, err = logParts(out.Parts, data)
		if err != nil {
			return false, err
		}

		out.Next = strings.TrimPrefix(part.Key, folder)
	}
	return more == "", nil
}

// logParts adds what a stored part says. A stored part is a sequence of JSON values; Time has
// nanoseconds.
func logParts(to []v1.TaskLogPart, data []byte) ([]v1.TaskLogPart, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	for d.More() {
		var p runner.Part
		err := d.Decode(&p)
		if err != nil {
			return to, err
		}
		to = append(to, v1.TaskLogPart{
			Time:   p.Time.UTC().Format(time.RFC3339Nano),
			Stream: p.Stream,
			Text:   p.Text,
		})
	}
	return to, nil
}

// The bounds of a page of output that ends before a place: bytes, unless its only part has more, and
// parts, of which some are read at once.
const (
	logBack     = 64 << 10
	partsBack   = 50
	partsAtOnce = 10
)

// logBefore is a page that ends before a part, or at the end, with as much as there is place for.
func (a *API) logBefore(ctx context.Context, t revision.Attempt, folder, before string,
	out *v1.TaskLog) error {
	last, err := a.logLast(ctx, folder, before)
	if err != nil {
		return err
	}
	page, _, err := a.Work.ListAfter(ctx, folder, logKey(folder, last-partsBack))
	if err != nil {
		return err
	}

	for i, part := range page { // what follows
		if strings.TrimPrefix(part.Key, folder) > logName(last) {
			page = page[:i]
			break
		}
	}
	first, size := len(page), int64(0)
	for first > 0 && (size == 0 || size+page[first-1].Size <= logBack) {
		first--
		size += page[first].Size
	}
	page = page[first:]
	if out.Parts, err = a.readParts(ctx, page); err != nil {
		return err
	}

	out.Next, out.Ended = logName(last), t.Ended > 0 && before == logEnd
	if len(page) > 0 {
		if name := strings.TrimPrefix(page[0].Key, folder); name > logName(1) {
			out.First = name
		}
	}
	return nil
}

// logEnd stands for the place behind all parts.
const logEnd = "end"

// logName is the name of a part, and logKey its key; a number below 1 is before all of them.
func logName(n int) string { return fmt.Sprintf("%06d", max(n, 0)) }

func logKey(folder string, n int) string { return folder + logName(n) }

// endPart is the greatest number that the name of a part can have.
const endPart = 999_999

// logLast is the number of the part before another one, or of the last one; 0 if there is none.
func (a *API) logLast(ctx context.Context, folder, before string) (int, error) {
	if before == logEnd {
		return a.logNewest(ctx, folder)
	}
	n, err := strconv.Atoi(before)
	if err != nil || n > endPart {
		return 0, fault.New(fault.Invalid, "before: found %q; expected the name of a part, or end", before)
	}
	return max(n-1, 0), nil
}

// logNewest is the number of the last part, 0 if there is none. Parts have the numbers from 1 on, and
// keys are listed forwards only: so the end is looked for by doubling, and then by halving. That is
// one call for the first thousand parts, and twenty at most.
func (a *API) logNewest(ctx context.Context, folder string) (int, error) {
	last, none, known := 0, 0, false // a part that there is; a number behind which there is none
	for at := 0; ; {
		page, more, err := a.Work.ListAfter(ctx, folder, logKey(folder, at))
		if err != nil {
			return 0, err
		}
		if len(page) == 0 {
			none, known = at, true
		} else if last, err = numberOf(page[len(page)-1].Key, folder); err != nil || more == "" {
			return last, err
		}

		at = min(2*last, endPart)
		if known {
			at = (last + none) / 2
		}
		if known && none <= last {
			return last, nil
		}
	}
}

// numberOf is the number of a part by its key.
func numberOf(key, folder string) (int, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(key, folder))
	if err != nil || n < 1 || n > endPart {
		return 0, fmt.Errorf("%s is no part of an output", key)
	}
	return n, nil
}

// readParts reads parts, in their order.
func (a *API) readParts(ctx context.Context, page []bucket.Listed) ([]v1.TaskLogPart, error) {
	texts := make([][]byte, len(page))
	side, inTime := errgroup.WithContext(ctx)
	side.SetLimit(partsAtOnce)
	for i, part := range page {
		side.Go(func() (err error) {
			texts[i], _, err = a.Work.Read(inTime, part.Key)
			return err
		})
	}
	if err := side.Wait(); err != nil {
		return nil, err
	}

	all := []v1.TaskLogPart{}
	for _, text := range texts {
		var err error
		if all, err = logParts(all, text); err != nil {
			return nil, err
		}
	}
	return all, nil
}
