package researcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Reports are the reports that were not yet taken: a file each, in a folder of each researcher.
// Several processes can have the same folder. A report that is sent twice is taken once, so no lock
// is needed.
//
// A file is LEASE-NUMBER.json, with "-final" before the ending if it is the last of its lease;
// names are escaped as in a URL. Files are sent in the order of their names, but the server takes
// them in any order.
type Reports struct {
	Dir  string // of the reports to one server
	Name string // of the researcher, which names its folder
	Now  func() time.Time
}

// Endings of the names of reports.
const (
	reportOf  = ".json"
	refusedOf = ".refused" // tried again when a researcher starts: the server may take it now
)

// orphaned is the age after which the report of another researcher is sent, too: it perhaps runs no
// more. One that runs sends its reports within a second, unless the server cannot be reached.
const orphaned = time.Minute

// Put keeps a report until it is taken. It is on the disk when Put returns. The same number of the
// same lease replaces the report before. An error is one of this computer.
func (p *Reports) Put(r Report) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	dir := filepath.Join(p.Dir, url.PathEscape(p.Name))
	err = os.MkdirAll(dir, 0o700)
	if err != nil {
		return local(err)
	}

	last := ""
	if r.Final {
		last = "-final"
	}

	name := fmt.Sprintf("%s-%04d%s", url.PathEscape(r.Lease), r.Sequence, last)
	return local(write(dir, name+reportOf, data))
}

// write makes a file appear with all its content, or not at all, whenever the process ends: it is
// renamed when it is complete. What is left of a crash is named new-*, and never read.
func write(dir, name string, data []byte) error {
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// files lists the reports with an ending: those of this researcher, and those of others that are
// old. all: of all.
func (p *Reports) files(ending string, all bool) (paths []string, err error) {
	own := filepath.Join(p.Dir, url.PathEscape(p.Name))
	found, err := filepath.Glob(filepath.Join(globbed(p.Dir), "*", "*"+ending))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			continue // another has sent it
		}
		if all || filepath.Dir(path) == own || p.Now().Sub(info.ModTime()) > orphaned {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// globbed is a path as a pattern that matches itself only.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readmit lets the reports that were refused be sent again, those of all researchers.
func (p *Reports) readmit() error {
	refused, err := p.files(refusedOf, true)
	for _, path := range refused {
		err = errors.Join(err, os.Rename(path, strings.TrimSuffix(path, refusedOf)))
	}
	return err
}

// look is how often the folder of reports is read.
const look = 200 * time.Millisecond

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
