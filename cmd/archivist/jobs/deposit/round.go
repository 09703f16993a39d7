package deposit

import (
	"cmp"
	"context"
	"sync"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/fault"
)

// round asks the API how some contents are sent, sends them as far as the answer goes, and has those verified that are
// complete then.
type round struct {
	*Sender
	plan     plan.Plan
	contents []plan.Content

	done     map[string]bool   // what the upload has now, by sum
	problems map[string]string // what the archive says of contents that were sent
	// progress is set if something was sent, or is there. Otherwise refusal is what the storage has answered.
	progress bool
	refusal  string
}

// play plays the round. The error is that of a content that cannot be sent at all, or of the API.
func (r *round) play(ctx context.Context) error {
	r.done, r.problems = map[string]bool{}, map[string]string{}
	var items []v1.SendFile
	err := r.Again(ctx, func() (err error) {
		items, err = r.Client.ListFiles(ctx, r.plan.Upload, r.listed())
		return err
	})
	if err != nil {
		return err
	}

	var requests []*request
	var works []*work
	for i, item := range items {
		if i >= len(r.contents) || item.SHA256 != r.contents[i].SHA256 {
			return fault.New(fault.Unavailable, "the API does not answer in the order of the "+
				"files; is this program of the same release?")
		}
		if item.Stored {
			r.done[item.SHA256], r.progress = true, true
			r.Progress.Spare(r.contents[i].Size)
			continue
		}
		w := &work{Content: r.contents[i], left: 1}
		works = append(works, w)
		requests = append(requests, r.requests(w, item)...)
	}
	r.have(len(r.done), len(r.plan.Contents))

	if err := r.send(ctx, requests); err != nil {
		return err
	}
	return r.verify(ctx, works)
}

// listed are the contents of the round, for the API.
func (r *round) listed() (out []v1.ListedFile) {
	for _, c := range r.contents {
		out = append(out, c.ListedFile)
	}
	return out
}

// requests are those that the API names for a content: all that are missing, or the next ones.
func (r *round) requests(w *work, item v1.SendFile) (out []*request) {
	if item.Put != nil {
		out = append(out, &request{of: w, url: item.Put.URL, headers: item.Put.Headers,
			size: w.Size, whole: true})
	}

	parts := item.Parts
	if parts == nil {
		return out
	}
	sizeOf := func(number int) int64 {
		from := int64(number-1) * parts.PartSize
		return max(0, min(parts.PartSize, w.Size-from))
	}

	w.left = parts.Count - len(parts.Stored)
	if !r.resumed[w.SHA256] {
		r.resumed[w.SHA256] = true
		for _, number := range parts.Stored {
			r.Progress.Spare(sizeOf(number))
		}
	}
	for _, p := range parts.URLs {
		out = append(out, &request{of: w, url: p.URL, from: int64(p.Number-1) * parts.PartSize,
			size: sizeOf(p.Number)})
	}
	return out
}

// send makes the requests, some at a time. The first that fails for good ends all of them.
func (r *round) send(ctx context.Context, all []*request) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	inParallel(r.Parallel, func(do func(func())) {
		for _, q := range all {
			do(func() {
				if ctx.Err() != nil {
					return
				}
				refusal, err := r.request(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					cancel(err)
				case refusal != "":
					r.refusal = refusal
				default:
					q.of.left--
					r.progress = true
				}
			})
		}
	})
	return context.Cause(ctx)
}

// verify has the contents verified of which all requests have succeeded.
func (r *round) verify(ctx context.Context, works []*work) error {
	var sums []string
	for _, w := range works {
		if w.left == 0 {
			sums = append(sums, w.SHA256)
		}
	}
	if len(sums) == 0 {
		return nil
	}

	var items []v1.StoredFile
	err := r.Again(ctx, func() (err error) {
		items, err = r.Client.StoredFiles(ctx, r.plan.Upload, sums)
		return err
	})
	if err != nil {
		return err
	}

	n := 0
	for _, item := range items {
		if item.Stored {
			r.done[item.SHA256], r.progress = true, true
			n++
		} else {
			r.problems[item.SHA256] = cmp.Or(item.Problem, "it is not stored")
		}
	}
	r.have(n, len(r.plan.Contents))
	return nil
}
