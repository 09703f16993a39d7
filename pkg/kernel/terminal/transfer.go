package terminal

import (
	"sync"
	"time"
)

// Transfer shows how much of some bytes has been moved: in percent, with a title, the rate and the time that is left.
// Several goroutines may add to it.
type Transfer struct {
	mu    sync.Mutex
	line  *Status
	title string
	size  int64
	done  int64
	// spared is what was done before: it says nothing about the rate.
	spared int64
	speed  Meter
}

// redraw is how often it is shown at most: a terminal is slower than a network.
const redraw = 200 * time.Millisecond

// NewTransfer shows the transfer of size bytes on a line.
func NewTransfer(line *Status, title string, size int64) *Transfer {
	return &Transfer{line: line, title: title, size: size, speed: Meter{Now: line.Now}}
}

// Title changes the title.
func (t *Transfer) Title(title string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.title = title
	t.show()
}

// Add counts bytes that were moved. Those of a try that failed are taken back by a negative number.
func (t *Transfer) Add(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	t.show()
}

// Spare counts bytes that need not be moved.
func (t *Transfer) Spare(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += n
	t.spared += n
	t.show()
}

// Write counts bytes. It never fails: a line that cannot be shown must not end a transfer.
func (t *Transfer) Write(p []byte) (int, error) {
	t.Add(int64(len(p)))
	return len(p), nil
}

// show shows it, unless it was shown just now.
func (t *Transfer) show() {
	if t.speed.Since() < redraw {
		return
	}

	t.speed.Add(t.done - t.spared)
	text := Percent(t.done, t.size) + "  " + t.title
	if rate := t.speed.Rate(); rate > 0 {
		text += ", " + Size(int64(rate)) + "/s" + t.speed.Left(t.size-t.spared)
	}
	t.line.Show(text, false)
}

// End removes the line.
func (t *Transfer) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.End()
}
