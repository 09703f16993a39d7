package property

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// stored is an object as it is in the storage root, read by code of this test and not by the
// code that wrote it (OCFL 1.1).
type stored struct {
	prefix    string
	ID        string
	Head      string
	Manifest  map[string][]string
	Versions  map[string]storedVersion
	Fixity    map[string]map[string][]string
	inventory map[int]string // sha512 of each version's inventory
	content   map[string][]byte
}

type storedVersion struct {
	Created string
	State   map[string][]string
	Message string
	User    struct{ Name, Address string }
}

// root reads the whole storage root, and reports what is not valid in it.
func (w *world) root() map[string]*stored {
	keys := w.keys("storage")
	objects := map[string]*stored{}
	byPrefix := map[string]*stored{}
	for _, key := range keys {
		prefix, is := strings.CutSuffix(key, "/0=ocfl_object_1.1")
		if !is || strings.Count(prefix, "/") != 3 {
			continue
		}
		o := &stored{prefix: prefix + "/", inventory: map[int]string{}, content: map[string][]byte{}}
		data, ok := w.object("storage", o.prefix+"inventory.json")
		if !ok {
			w.fail("%s has no inventory: files are left that were never committed", prefix)
			continue
		}
		if err := json.Unmarshal(data, o); err != nil {
			w.fail("%sinventory.json: %v", o.prefix, err)
			continue
		}
		objects[o.ID], byPrefix[o.prefix] = o, o
	}
	for _, o := range objects {
		for _, problem := range o.valid(w, keys) {
			w.fail("%s in the storage root: %s", o.ID, problem)
		}
	}
	for _, key := range keys {
		inside := slices.ContainsFunc(slices.Collect(maps.Keys(byPrefix)),
			func(p string) bool { return strings.HasPrefix(key, p) })
		if !inside && strings.Count(key, "/") > 2 {
			w.fail("%s belongs to no object of the storage root", key)
		}
	}
	return objects
}

func (o *stored) head() int {
	var n int
	_, _ = fmt.Sscanf(o.Head, "v%d", &n)
	return n
}

// valid checks an object against the specification.
func (o *stored) valid(w *world, keys []string) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if o.head() != len(o.Versions) {
		add("the head is %s of %d versions", o.Head, len(o.Versions))
	}
	expected := map[string]bool{o.prefix + "0=ocfl_object_1.1": true}
	for n := 0; n <= o.head(); n++ {
		at := o.prefix
		if n > 0 {
			at += fmt.Sprintf("v%d/", n)
		}
		data, _ := w.object("storage", at+"inventory.json")
		sidecar, _ := w.object("storage", at+"inventory.json.sha512")
		o.inventory[n] = digest("sha512", data)
		if string(sidecar) != o.inventory[n]+" inventory.json\n" {
			add("the sidecar of %sinventory.json is %q", at, sidecar)
		}
		expected[at+"inventory.json"], expected[at+"inventory.json.sha512"] = true, true
	}
	if o.inventory[0] != o.inventory[o.head()] {
		add("the root inventory differs from that of %s", o.Head)
	}
	for sum, paths := range o.Manifest {
		for _, p := range paths {
			data, ok := w.object("storage", o.prefix+p)
			o.content[sum] = data
			if !ok || digest("sha512", data) != sum {
				add("the content at %s exists: %v; its sha512 is %s, not %s", p, ok, digest("sha512", data), sum)
			}
			expected[o.prefix+p] = true
		}
	}
	for name, v := range o.Versions {
		for sum := range v.State {
			if o.Manifest[sum] == nil {
				add("%s has the digest %s, which is not in the manifest", name, sum)
			}
		}
	}
	for algorithm, sums := range o.Fixity {
		for sum, paths := range sums {
			for _, p := range paths {
				if data, _ := w.object("storage", o.prefix+p); digest(algorithm, data) != sum {
					add("the fixity block has a wrong %s of %s", algorithm, p)
				}
			}
		}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, o.prefix) && !expected[key] {
			add("%s is not in any inventory", key)
		}
	}
	return problems
}

// files are those of a version below a folder, by their paths in it.
func (o *stored) files(version int, folder string) map[string][]byte {
	files := map[string][]byte{}
	for sum, paths := range o.Versions[fmt.Sprintf("v%d", version)].State {
		for _, p := range paths {
			if name, in := strings.CutPrefix(p, folder); in {
				files[name] = o.content[sum]
			}
		}
	}
	return files
}

// elements reads an ANVL text: the values by name, in order.
func elements(text []byte) map[string][]string {
	out, name := map[string][]string{}, ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case (line[0] == ' ' || line[0] == '\t') && name != "":
			last := len(out[name]) - 1
			out[name][last] += " " + strings.TrimSpace(line)
		default:
			n, v, _ := strings.Cut(line, ":")
			name = strings.TrimSpace(n)
			out[name] = append(out[name], strings.TrimSpace(v))
		}
	}
	return out
}
