package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// output is the output of a run: it collects what the processes say, and stores it in parts. Those
// that write (add, say) never wait for the bucket; one goroutine stores. If the bucket is slow, up
// to MaxLog bytes are in memory.
type output struct {
	put func(ctx context.Context, n int, data []byte) error

	// The time of a part, by the runner's clock.
	now   func() time.Time
	every time.Duration

	// A part is full: it is stored before the next tick. It holds one signal.
	wake chan struct{}

	// Guards the fields up to the blank line; n and sending belong to the goroutine that stores.
	mu    sync.Mutex
	parts []piece // not yet stored
	bytes int     // of their texts
	size  int64   // of all texts so far
	cut   bool

	n       int    // the last stored part
	sending []byte // the next, if it could not be stored yet: its bytes are tried again as they are
}

// piece is a Part that can still grow: of the same stream, up to partSize.
type piece struct {
	Part
	text []byte
}

// logKey is the key of a part, numbered from 1. Keys sort as the parts do.
func logKey(prefix string, n int) string { return fmt.Sprintf("%s%s%06d", prefix, LogFolder, n) }

// begin stores parts as they come, each tick what there is, and at once what is a full part. The
// function that it returns stores the rest, within reserve, and returns how much is kept and
// whether it is cut. It is called once, when nothing writes any more.
func (o *output) begin(ctx context.Context) (end func() (size int64, cut bool)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(o.every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				o.store(ctx, 0)
			case <-o.wake:
				o.store(ctx, partSize)
			}
		}
	}()

	return func() (int64, bool) {
		close(stop)
		<-stopped
		ctx, cancel := context.WithTimeout(ctx, reserve)
		defer cancel()
		for range 5 {
			if o.store(ctx, 0) {
				return o.size, o.cut
			}
			select {
			case <-ctx.Done():
			case <-time.After(o.every):
			}
		}
		return o.size, true // the rest is lost
	}
}

// full reports whether the output is cut: nothing of it is kept any more.
func (o *output) full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cut
}

// say adds what the runner itself has to say, as a line. It is added even if the output is cut.
func (o *output) say(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.append(Note, fmt.Sprintf(format, args...)+"\n")
}

// add adds what a stream says. What is longer than MaxLog is cut, between two characters, and the
// log says so.
func (o *output) add(stream, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut || text == "" {
		return
	}

	left := MaxLog - o.size
	if int64(len(text)) > left {
		o.cut = true
		// Not within a character.
		for left > 0 && !utf8.RuneStart(text[left]) {
			left--
		}
		text = text[:left]
	}

	o.append(stream, text)
	if o.cut {
		o.append(Note, fmt.Sprintf("the output is longer than %d MiB: the rest is not kept\n",
			MaxLog>>20))
	}

	if o.bytes >= partSize {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// append adds text to the last piece if it is of the same stream and has room, else as a new one.
// The caller has locked mu.
func (o *output) append(stream, text string) {
	if text == "" {
		return
	}

	last := len(o.parts) - 1
	if last < 0 || o.parts[last].Stream != stream || len(o.parts[last].text)+len(text) > partSize {
		o.parts = append(o.parts, piece{Part: Part{Time: o.now().UTC(), Stream: stream}})
		last++
	}

	o.parts[last].text = append(o.parts[last].text, text...)
	o.bytes += len(text)
	o.size += int64(len(text))
}

// store stores parts as long as there is at least that much to store (in bytes; 0: anything). It
// reports whether all of that is stored. A part that could not be stored is tried again with the
// same bytes under the same key: what is there already of it is replaced by itself.
func (o *output) store(ctx context.Context, least int) bool {
	for {
		if o.sending == nil {
			o.sending = o.take(least)
		}
		if o.sending == nil {
			return true
		}
		if err := o.put(ctx, o.n+1, o.sending); err != nil {
			return false
		}
		o.n, o.sending = o.n+1, nil
	}
}

// take takes the parts of the next object, about partSize bytes; nil if there is less than least.
func (o *output) take(least int) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.parts) == 0 || o.bytes < least {
		return nil
	}

	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	size, n := 0, 0
	// At least one piece, which can have partSize bytes by itself.
	for n < len(o.parts) && (n == 0 || size+len(o.parts[n].text) <= partSize) {
		p := o.parts[n].Part
		p.Text = string(o.parts[n].text)
		_ = enc.Encode(p) // into memory: it cannot fail
		size += len(p.Text)
		n++
	}

	o.parts = append(o.parts[:0], o.parts[n:]...)
	o.bytes -= size
	return data.Bytes()
}
