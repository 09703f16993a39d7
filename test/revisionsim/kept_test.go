package revisionsim

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
)

// Write writes an object.
func (a *actor) Write(_ context.Context, key string, data []byte) error {
	return a.Do("bucket write "+key, func() error {
		if !a.w.mutant.loses {
			a.w.kept[key] = data
		}
		return nil
	})
}

// Read reads an object.
func (a *actor) Read(_ context.Context, key string) (data []byte, err error) {
	err = a.Do("bucket read "+key, func() error {
		if a.w.kept[key] == nil {
			return fault.New(fault.NotFound, "sim: there is no object %s", key)
		}
		data = a.w.kept[key]
		return nil
	})
	return data, err
}

// List lists all objects below a prefix behind one.
func (a *actor) List(_ context.Context, prefix, after string) (keys []string, more bool, err error) {
	err = a.Do("bucket list "+prefix, func() error {
		for _, key := range slices.Sorted(maps.Keys(a.w.kept)) {
			if strings.HasPrefix(key, prefix) && key > after {
				keys = append(keys, key)
			}
		}
		return nil
	})
	return keys, false, err
}

// removed checks that a row which is removed is in the bucket, and that nothing needs the row any more.
func (c *checker) removed(id string) {
	in := c.instance(id)
	in.kept = true
	c.w.Met("kept: " + in.is.Trigger)
	key := revision.BucketPrefix + revisionID(&in.is) + ".json"
	if in.is.Run > 0 {
		at, err := revision.ParseID(id)
		if err != nil {
			c.fail("%s: %v", id, err)
		}
		key = revision.BucketKey(at)
	}
	var k revision.BucketObject
	err := json.Unmarshal(c.w.kept[key], &k)
	there := slices.ContainsFunc(k.Instances, func(kept revision.Instance) bool {
		return reflect.DeepEqual(kept, in.is)
	})
	events := int64(0)
	for _, e := range k.Events {
		if e.Subject.ID == id {
			events++
		}
	}
	switch {
	case err != nil || !there || events != in.version:
		c.fail("the row of %s was removed, and the object %s has it: %t, with %d events (%v)", id, key, there, events,
			err)
	case !over(string(in.is.State)) || !in.is.Settled || len(c.waiters[id]) > 0:
		c.fail("the row of %s was removed: %+v", id, in.is)
	case time.Since(time.UnixMilli(in.over)) < times.Keep-5*time.Second: // of clocks that differ
		c.fail("the row of %s was removed, and it ended at %d", id, in.over)
	}
}
