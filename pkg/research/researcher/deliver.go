package researcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"archivist/pkg/kernel/fault"
)

// deliver sends reports as they come, until stop is done. At first it sends all that are in the
// folder, also new ones of other researchers. While the server cannot be reached, it waits longer
// and longer, and reports stay on the disk.
func (r *Researcher) deliver(stop context.Context) {
	err := r.Reports.readmit()
	if err != nil {
		r.Log.Warn("reports that were refused are not sent again", "error", err)
	}

	failures, all := 0, true
	for stop.Err() == nil {
		err := r.deliverOnce(stop, all)
		d := look
		if err == nil {
			failures, all = 0, false
		} else if stop.Err() == nil {
			r.Log.Warn("reports were not taken; they are kept", "error", err)
			failures++
			d = waits.Delay(failures, r.Jitter)
		}
		_ = r.Wait(stop, d) // the loop asks whether stop is done
	}
}

// deliverAll sends what there is until it was taken, or ctx ends. It returns an Unavailable if
// reports are left on the disk, and an error of the first refusal if some were refused since the
// researcher began.
func (r *Researcher) deliverAll(ctx context.Context) error {
	for try := 1; ; try++ {
		err := r.deliverOnce(ctx, false)
		if err == nil {
			return r.refusal()
		}
		if r.Wait(ctx, waits.Delay(try, r.Jitter)) != nil {
			return fault.New(fault.Unavailable,
				"reports were not taken: %w; they are kept in %s, and sent when a "+
					"researcher with this cache starts", err, r.Reports.Dir)
		}
	}
}

// deliverOnce sends each report that there is, until one is not taken: the others would hardly be,
// either.
func (r *Researcher) deliverOnce(ctx context.Context, all bool) error {
	paths, err := r.Reports.files(reportOf, all)
	if err != nil {
		return err
	}

	for _, path := range paths {
		err = r.send(ctx, path)
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a report, and forgets it when it was taken. A report that is refused for good is set
// aside. One that is denied stays: the key of the researcher can be corrected, and the report is
// right. If the process ends between the answer and the removal, the report is sent again, and
// taken once.
func (r *Researcher) send(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another has sent it
	}

	if err != nil {
		return fmt.Errorf("the report %s cannot be read: %w", path, err)
	}

	var report Report
	err = json.Unmarshal(data, &report)
	if err != nil {
		return fmt.Errorf("the report %s cannot be read: %w", path, err)
	}

	receipt, err := r.Server.Report(ctx, report)

	// Refused for good: the reports behind it must not wait for it.
	if err != nil && final(err) && !fault.Is(err, fault.Denied) {
		return r.setAside(path, err)
	}

	if err != nil {
		return err
	}

	if receipt.Ended {
		r.mu.Lock()
		r.ended[report.Lease] = true
		r.mu.Unlock()
	}

	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// setAside keeps a report that was refused, so that the others go on.
func (r *Researcher) setAside(path string, cause error) error {
	r.Log.Error("a report was refused; it is kept, and sent again when a researcher with this cache starts", "error",
		cause, "file", path+refusedOf)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, cause)
	return os.Rename(path, path+refusedOf)
}

// refusal is an error if reports were refused, of the kind of the first.
func (r *Researcher) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refused) == 0 {
		return nil
	}
	first := r.refused[0]
	return fault.New(fault.Of(first), "%d reports were refused and are kept in %s; the first: %w",
		len(r.refused),
		r.Reports.Dir, first)
}
