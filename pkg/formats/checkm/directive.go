package checkm

import (
	"path"
	"slices"
	"strings"
)

var (
	fileColumns = []string{"fileurl", "hashalgorithm", "hashvalue", "filesize", "filelastmodified",
		"filename"}

	objectColumns = append(slices.Clone(fileColumns), "mimetype")
	batchColumns  = append(slices.Clone(fileColumns),
		"primaryidentifier", "localidentifier", "creator", "title", "date")
)

// columns are the names of the profile's columns in its order, in lower case and without
// their prefixes.
func (k Kind) columns() []string {
	if k == Object || k == "" {
		return objectColumns
	}
	return batchColumns
}

// Ontologies of the columns by their prefixes.
const (
	nfo = "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"
	nie = "http://www.semanticdesktop.org/ontologies/2007/01/19/nie#"
	mrt = "http://merritt.cdlib.org/terms#"
	mom = "http://uc3.cdlib.org/ontology/mom#" // mrt: in Merritt's own examples
)

var prefixes = map[string][]string{"nfo:": {nfo}, "nie:": {nie}, "mrt:": {mrt, mom}}

// directive reads a line that begins with #%. A directive that is repeated counts as it is
// the last time. The version of Checkm is not looked at.
func (r *reader) directive(line string) {
	word, rest, _ := strings.Cut(line[2:], "|")
	at := len(word) + 4
	rest = strings.TrimSpace(rest)
	switch w := strings.ToLower(strings.TrimSpace(word)); {
	case strings.HasPrefix(w, "checkm"):
		r.version = true
	case w == "profile":
		r.setProfile(rest, at)
	case w == "prefix":
		r.setPrefix(rest, at)
	case w == "fields" || w == "columns":
		r.fields(rest, at)
	case w == "eof":
		r.eof = true
	default:
		r.add(Warning, 1, "the directive #%%%s is not known; it is ignored",
			shown(strings.TrimSpace(word)))
	}
}

// setPrefix compares a prefix with those of the profiles. Columns are identified by the
// part after the colon, so another prefix is not an error.
func (r *reader) setPrefix(rest string, at int) {
	r.prefix = true
	name, ontology, _ := strings.Cut(rest, "|")
	name, ontology = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(ontology)
	switch want, known := prefixes[name]; {
	case !known:
		r.add(Warning, at, "the prefix %q is not one of the profile's; expected nfo:, nie: or mrt:",
			shown(name))
	case !slices.Contains(want, ontology):
		r.add(Warning, at, "found the prefix %s for %q; expected %s", name, shown(ontology),
			want[0])
	}
}

// setProfile reads the kind of a profile's URL. With one that is not known, reading goes on,
// to find other problems.
func (r *reader) setProfile(value string, at int) {
	r.profile = true
	if r.options.Stored && value == StoredProfile {
		r.m.Kind = Object
		return
	}

	kind, known := profiles[path.Base(value)]
	registered := strings.Contains(value, "/registry/ingest/manifest/") ||
		strings.Contains(value, "/registry/mrt/")
	if !known || !registered {
		r.add(Error, at,
			"found the profile %q; expected http://uc3.cdlib.org/registry/ingest/manifest/ with "+
				"mrt-ingest-manifest, mrt-object-manifest, mrt-batch-manifest, mrt-container-batch-manifest or "+
				"mrt-single-file-batch-manifest", shown(value))
	}

	r.m.Kind = kind
	r.ordered(at)
}

// fields reads the names of the columns.
func (r *reader) fields(rest string, at int) {
	r.declared = []string{}
	for f := range strings.SplitSeq(rest, "|") {
		f = strings.TrimSpace(f)
		name := strings.ToLower(f[strings.LastIndex(f, ":")+1:])
		if !slices.Contains(objectColumns, name) && !slices.Contains(batchColumns, name) {
			r.add(Warning, at, "the column %q is not known; it is ignored", shown(f))
		}
		r.declared = append(r.declared, name)
	}

	r.ordered(at)
}

// ordered compares the declared columns with the profile's, once both are known. Fewer columns than the profile's are
// right, if they are its first ones.
func (r *reader) ordered(at int) {
	want := r.m.Kind.columns()
	switch right := slices.Equal(r.declared, want[:min(len(want), len(r.declared))]); {
	case !r.profile || right:
	case r.options.InOrder:
		r.add(Error, at, "#%%fields declares another order than the profile's, and Merritt reads columns by their "+
			"position; declare and write them in this order: %s", strings.Join(want, ", "))
	default:
		r.add(Warning, at,
			"the columns are in another order than the profile's; the declared order is used")
	}
}
