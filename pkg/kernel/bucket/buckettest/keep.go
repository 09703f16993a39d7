package buckettest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"archivist/pkg/kernel/journal"
)

// change is one write, as the journal has it: exactly one of Set, Remove, Begin, Of and End
// is there. A journal of such lines, applied in order, gives the twin's state.
type change struct {
	Set    string  `json:",omitempty"` // bucket/key of an object that is new or replaced
	Remove string  `json:",omitempty"` // bucket/key
	Begin  string  `json:",omitempty"` // a multipart upload
	Name   string  `json:",omitempty"` // bucket/key of what is begun
	Of     string  `json:",omitempty"` // the upload that has a new part
	Part   int     `json:",omitempty"` // the part's number
	End    string  `json:",omitempty"` // an upload that is completed or aborted
	Object *object `json:",omitempty"` // what is set, or the part
}

// Keep reads the objects that the journal at path has into an empty twin; Dir has the content
// of the larger ones. From now on each write is in that journal before it is done. It is for
// trying, not for data of any value. The journal is rewritten first, so that it does not grow
// with each start, and files that no object names are removed: a process that was killed may
// have left some.
func (t *Twin) Keep(path string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, err := journal.Open(path, func(line []byte) error {
		var c change
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		t.apply(c)
		return nil
	})
	if err != nil {
		return err
	}

	err = j.Compact(func(yield func([]byte, error) bool) {
		for _, c := range t.changes() {
			if !yield(json.Marshal(c)) {
				return
			}
		}
	})
	if err != nil {
		return errors.Join(err, j.Close())
	}
	if err := t.sweep(); err != nil {
		return errors.Join(err, j.Close())
	}

	t.journal = j
	return nil
}

// Close closes the journal, if there is one: further writes fail.
func (t *Twin) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.journal == nil {
		return nil
	}
	return t.journal.Close()
}

// write makes one change. The caller holds the lock. Without a journal it cannot fail. If the
// journal refuses the change, e.g. on a full disk, nothing is changed.
func (t *Twin) write(c change) error {
	if t.journal != nil {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if err := t.journal.Append(line); err != nil {
			return err
		}
	}

	t.apply(c)
	return nil
}

// set makes o the object of that name, under the request's conditions. If-Match on a missing
// object is a 404, as on S3.
func (t *Twin) set(name string, o object, h http.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.objects[name]
	switch {
	case h.Get("If-None-Match") == "*" && had, h.Get("If-Match") != "" && had &&
		h.Get("If-Match") != old.ETag:
		return &fail{412, "PreconditionFailed"}
	case h.Get("If-Match") != "" && !had:
		return &fail{404, "NoSuchKey"}
	}
	return t.write(change{Set: name, Object: &o})
}

func (t *Twin) remove(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(change{Remove: name})
}

// apply makes a change in memory. A part of an upload that is not open any more is dropped.
func (t *Twin) apply(c change) {
	switch {
	case c.Set != "":
		if _, had := t.objects[c.Set]; !had {
			t.sorted = nil
		}
		t.objects[c.Set] = *c.Object
	case c.Remove != "":
		delete(t.objects, c.Remove)
		t.gone++
	case c.Begin != "":
		var n int
		_, _ = fmt.Sscanf(c.Begin, uploadID, &n)
		t.n = max(t.n, n)
		t.uploads[c.Begin], t.begun[c.Begin] = map[int]object{}, c.Name
	case c.Of != "":
		if parts, open := t.uploads[c.Of]; open {
			parts[c.Part] = *c.Object
		}
	case c.End != "":
		delete(t.uploads, c.End)
		delete(t.begun, c.End)
	}
}

// changes are those that make what there is now. They are in no order but that each upload is
// begun before its parts.
func (t *Twin) changes() []change {
	last := fmt.Sprintf(uploadID, t.n) // no later upload gets the id of an earlier one
	all := []change{{Begin: last}}
	if _, open := t.uploads[last]; !open {
		all = append(all, change{End: last})
	}

	for id, parts := range t.uploads {
		all = append(all, change{Begin: id, Name: t.begun[id]})
		for n, o := range parts {
			all = append(all, change{Of: id, Part: n, Object: &o})
		}
	}

	for name, o := range t.objects {
		all = append(all, change{Set: name, Object: &o})
	}
	return all
}

// sweep removes the files that no object and no part has.
func (t *Twin) sweep() error {
	used := map[string]bool{}
	for _, o := range t.objects {
		used[o.File] = true
	}

	for _, parts := range t.uploads {
		for _, o := range parts {
			used[o.File] = true
		}
	}
	return filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || used[d.Name()] || !strings.HasPrefix(d.Name(), filePrefix) {
			return err
		}
		return os.Remove(path)
	})
}
