package ocfl

import (
	"context"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
)

// witnesses are the states of the witnesses of an object of two versions.
var witnesses = map[string]struct {
	recorded int // version that is on record, 0 for none
	do       func(get func(string) string, put func(key, text string))
	want     Trust
	says     string
}{
	"as recorded":     {2, nil, Trusted, ""},
	"not recorded":    {0, nil, Trusted, ""},
	"recorded before": {1, nil, Trusted, ""},
	"committed, not finished": {1, func(get func(string) string, put func(key, text string)) {
		put(sidecarName, get("v1/"+sidecarName))
	}, Interrupted, "not finished"},
	"the sidecar is nonsense, not recorded": {0, func(_ func(string) string, put func(key, text string)) {
		put(sidecarName, "nonsense")
	}, Interrupted, "not finished"},
	"the sidecar is nonsense, recorded": {2, func(_ func(string) string, put func(key, text string)) {
		put(sidecarName, "nonsense")
	}, Interrupted, "as recorded"},
	"the sidecar is of another inventory": {1, func(_ func(string) string, put func(key, text string)) {
		put(sidecarName, string(Sidecar(SHA512([]byte("x")))))
	}, Damaged, "neither version 2"},
	"put back": {2, func(get func(string) string, put func(key, text string)) {
		put(inventoryName, get("v1/"+inventoryName))
		put(sidecarName, get("v1/"+sidecarName))
	}, Damaged, "ends at version 1"},
	"changed as a whole": {2, func(get func(string) string, put func(key, text string)) {
		text := strings.Replace(get(inventoryName), "by two", "by 2", 1)
		for _, folder := range []string{"", "v2/"} {
			put(folder+inventoryName, text)
			put(folder+sidecarName, string(Sidecar(SHA512([]byte(text)))))
		}
	}, Damaged, "on record with the inventory digest"},
	"changed without its version": {1, func(get func(string) string, put func(key, text string)) {
		text := strings.Replace(get(inventoryName), "by two", "by 2", 1)
		put(inventoryName, text)
		put(sidecarName, string(Sidecar(SHA512([]byte(text)))))
	}, Damaged, "must be the same"},
	"an earlier version is another": {1, func(_ func(string) string, put func(key, text string)) {
		put("v1/"+sidecarName, string(Sidecar(SHA512([]byte("x")))))
	}, Damaged, "version 1 is on record"},
	"no root inventory, recorded": {2, func(_ func(string) string, put func(key, text string)) {
		put(inventoryName, "")
	}, Damaged, "no root"},
	"no root inventory, not recorded": {0, func(_ func(string) string, put func(key, text string)) {
		put(inventoryName, "")
	}, Damaged, "sidecar"},
	"it breaks off": {2, func(get func(string) string, put func(key, text string)) {
		put(inventoryName, get(inventoryName)[:300])
	}, Damaged, "is none"},
}

// byHand reads and puts files of the object, as a person with the rights could; "" removes one.
func (f fixture) byHand(t *testing.T) (get func(key string) string, put func(key, text string)) {
	get = func(key string) string { return string(f.read(t, key)) }
	return get, func(key, text string) {
		t.Helper()
		var err error
		if text == "" {
			err = f.root.Bucket.Delete(t.Context(), Prefix(id)+key)
		} else {
			err = f.root.Bucket.Put(t.Context(), Prefix(id)+key, []byte(text), bucket.Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestJudge: one row for each state of the witnesses.
func TestJudge(t *testing.T) {
	for name, c := range witnesses {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			digests := []string{""}
			for _, job := range []string{"one", "two"} {
				p, contents := f.prepare(t, job, []File{f.file(t, "producer/a", job)})
				if err := f.commit(t, p, job, contents); err != nil {
					t.Fatal(err)
				}
				digests = append(digests, p.Digest)
			}
			f.root.Recorded = func(context.Context, string) (int, string, error) {
				return c.recorded, digests[c.recorded], nil
			}
			if c.do != nil {
				c.do(f.byHand(t))
			}
			v, err := f.root.Judge(t.Context(), id)
			if err != nil || v.Trust != c.want || !strings.Contains(v.Why, c.says) ||
				(v.Err() != nil) != (c.want == Damaged) {
				t.Errorf("it is %s: %s, %v; expected %s: %s", v.Trust, v.Why, err, c.want, c.says)
			}
		})
	}
}
