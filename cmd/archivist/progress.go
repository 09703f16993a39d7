package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
)

// progress is how far a reindex of everything is. It is kept in a file of the user's,
// so that an interrupted run goes on.
type progress struct {
	Parts []part       `json:"parts"`
	Sum   v1.Reindexed `json:"sum"`

	mu     sync.Mutex
	file   string
	to     io.Writer // where it is shown
	inLine bool      // it is a terminal: in one line
	began  time.Time
	before int // objects of earlier runs
	shown  time.Time
}

// part is a part of the storage root: places from Cursor to To. Objects lie by a
// digest, so that parts are of one size.
type part struct {
	Cursor string `json:"cursor"` // "" at the end
	To     string `json:"to"`     // "" for no bound
	At     int    `json:"at"`     // of 16^3 folders, those that are done
}

// reindexParts is the number of parts, one for each first digit of a place.
const reindexParts = 16

// openProgress reads the progress of an interrupted run against an API, or begins anew.
func openProgress(api string, again bool, to io.Writer, inLine bool) (*progress, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to keep the progress in: %w", err)
	}
	p := &progress{file: filepath.Join(dir, "archivist", fmt.Sprintf("reindex-%x.json", sha256.Sum256([]byte(api)))),
		to: to, inLine: inLine, began: time.Now()}
	data, err := os.ReadFile(p.file)
	if err == nil && !again {
		if err := json.Unmarshal(data, p); err != nil || len(p.Parts) != reindexParts {
			return nil, fmt.Errorf("%s is not the progress of a reindex; --again begins anew", p.file)
		}
		p.before = p.Sum.Objects
		return p, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i := range reindexParts {
		at := part{Cursor: fmt.Sprintf("%x", i), To: fmt.Sprintf("%x", i+1), At: i << 8}
		if i == reindexParts-1 {
			at.To = ""
		}
		p.Parts = append(p.Parts, at)
	}
	return p, os.MkdirAll(filepath.Dir(p.file), 0o700)
}

// add takes in an answer, writes the progress down, and shows it.
func (p *progress) add(at *part, page v1.Reindexed) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	at.Cursor = page.Cursor
	if n, err := strconv.ParseUint(page.Cursor[:min(3, len(page.Cursor))], 16, 16); err == nil && len(page.Cursor) > 3 {
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

// show tells how far it is: on a terminal in one line, else now and then.
func (p *progress) show() {
	now := time.Now()
	if !p.inLine && now.Sub(p.shown) < 10*time.Second {
		return
	}
	p.shown = now
	if p.inLine {
		fmt.Fprintf(p.to, "\r\x1b[K%s", p.text(now.Sub(p.began)))
	} else {
		fmt.Fprintln(p.to, p.text(now.Sub(p.began)))
	}
}

// text is the progress for people, after so much time of this run.
func (p *progress) text(took time.Duration) string {
	share := 0.0
	for i, at := range p.Parts {
		done := float64(at.At - i<<8)
		if at.Cursor == "" {
			done = 256
		}
		share += done / (256 * reindexParts)
	}
	text := fmt.Sprintf("%d objects, %d had rows missing, %d not brought back; about %.0f %%", p.Sum.Objects, p.Sum.Changed, len(p.Sum.Failed), 100*share)
	rate := float64(p.Sum.Objects-p.before) / max(took.Seconds(), 0.001)
	if share == 0 || rate == 0 {
		return text
	}
	left := time.Duration(float64(p.Sum.Objects) / share * (1 - share) / rate * float64(time.Second))
	return fmt.Sprintf("%s, %.0f a second, %s left", text, rate, left.Round(time.Second))
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = time.Time{}
	p.show()
	fmt.Fprintln(p.to)
}

// forget removes the file of a run that is complete.
func (p *progress) forget() error {
	if err := os.Remove(p.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
