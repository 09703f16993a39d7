package objects

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// progress is the progress of a reindex of all objects. It is stored in a file of the user after each response,
// so that an interrupted run can be resumed: on another computer it begins anew. Several parts add to it at
// once.
type progress struct {
	Parts []part `json:"parts"`
	// Sum is that of all responses so far, with what failed.
	Sum v1.Reindexed `json:"sum"`
	// Run is the id under which the progress is reported to the API.
	Run string `json:"run,omitempty"`

	told time.Time // when it was reported last

	mu   sync.Mutex
	file string
	line *terminal.Status
	// speed is in places of the storage root, of which all have about the same number of objects.
	speed terminal.Meter
}

// part is a part of the storage root: the keys after Cursor up to To. Objects are laid out by a digest, so all
// parts have about the same size.
type part struct {
	Cursor string `json:"cursor"` // "" at the end
	To     string `json:"to"`     // "" for no bound
	At     int    `json:"at"`     // how many of its 16^3 folders are done
}

// reindexParts is the number of parts, one for each first digit of a place, which is hexadecimal. --parallel
// says how many of them are worked on at once.
const reindexParts = 16

// openProgress reads the progress of an interrupted run on an API, or starts a new one; again ignores an earlier
// one. There is one file for each URL of an API, named after its SHA-256, because a URL has characters that
// names of files cannot have.
func openProgress(api string, again bool, line *terminal.Status) (*progress, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to keep the progress in: %w", err)
	}

	p := &progress{
		file: filepath.Join(dir, "archivist",
			fmt.Sprintf("reindex-%x.json", sha256.Sum256([]byte(api)))),
		line:  line,
		speed: terminal.Meter{Now: line.Now},
	}

	data, err := os.ReadFile(p.file)
	isThere := !errors.Is(err, fs.ErrNotExist)
	if err != nil && isThere {
		return nil, err
	}

	if isThere && !again {
		if err := json.Unmarshal(data, p); err != nil || len(p.Parts) != reindexParts {
			return nil, fmt.Errorf("%s is not the progress of a reindex; "+
				"--again starts from the beginning", p.file)
		}
		p.Run = cmp.Or(p.Run, rand.Text()) // one of an earlier release has none
		return p, nil
	}

	p.Run = rand.Text()

	for i := range reindexParts {
		// A part begins before its first key: a cursor is the last key that was read, and every key of the part
		// is longer than this one digit.
		at := part{Cursor: fmt.Sprintf("%x", i), To: fmt.Sprintf("%x", i+1), At: i << 8}
		if i == reindexParts-1 {
			at.To = ""
		}
		p.Parts = append(p.Parts, at)
	}
	return p, os.MkdirAll(filepath.Dir(p.file), 0o700)
}

// add adds a response to the progress, stores it, and shows it. The file is replaced as a whole, so a crash
// leaves the earlier one, and the response is asked for again.
func (p *progress) add(at *part, page v1.Reindexed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.Cursor = page.Cursor
	if n, err := strconv.ParseUint(page.Cursor[:min(3, len(page.Cursor))], 16, 16); err == nil &&
		len(page.Cursor) > 3 {
		at.At = int(n)
	}

	p.Sum.Objects += page.Objects
	p.Sum.Changed += page.Changed
	p.Sum.Failed = append(p.Sum.Failed, page.Failed...)
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}

	if err := os.WriteFile(p.file+".new", data, 0o600); err != nil {
		return err
	}

	if err := os.Rename(p.file+".new", p.file); err != nil {
		return err
	}

	p.show()
	return nil
}

// show shows the progress.
func (p *progress) show() {
	p.speed.Add(p.done())
	p.line.Show(p.text(), false)
}

// places is how many folders of objects the storage root has on its first level: three hexadecimal digits.
const places = 256 * reindexParts

// done is how many of the places are done: whole parts, and those before the cursor of each other part.
func (p *progress) done() (n int64) {
	for i, at := range p.Parts {
		if at.Cursor == "" {
			n += 256
		} else {
			n += int64(at.At - i<<8)
		}
	}
	return n
}

// text is the progress for people. Objects are laid out by a digest, so the share of
// places is about the share of objects.
func (p *progress) text() string {
	return fmt.Sprintf("%s  %d objects, %d restored, %d failed%s",
		terminal.Percent(p.done(), places),
		p.Sum.Objects, p.Sum.Changed, len(p.Sum.Failed), p.speed.Left(places))
}

// tellEvery is how often the progress is reported to the API.
const tellEvery = 15 * time.Second

// due reports whether the progress is to be reported now, and what. Others that ask at the same time need not.
func (p *progress) due(ended bool) (r v1.ReindexReport, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.line.Now()
	if !ended && now.Sub(p.told) < tellEvery {
		return r, false
	}
	p.told = now
	failed := p.Sum.Failed
	return v1.ReindexReport{Done: int(p.done()), Total: places, Objects: p.Sum.Objects, Changed: p.Sum.Changed,
		Failed: len(failed), Failures: failed[:min(len(failed), mostTold)], Ended: ended}, true
}

// mostTold is how many failures are reported; all of them are printed at the end.
const mostTold = 20

// tell reports the progress to the API, for others to see. If that fails, the reindex goes on: the next report says
// the same and more.
func (p *progress) tell(ctx context.Context, a *command.App, ended bool) {
	if r, is := p.due(ended); is {
		_, _ = a.Client.ReportReindex(ctx, p.Run, r)
	}
}

// end removes the status line before the result is printed.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line.End()
}

// forget removes the file of a run that is complete, so that the next run begins anew.
func (p *progress) forget() error {
	if err := os.Remove(p.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
