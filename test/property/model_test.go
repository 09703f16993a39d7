package property

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
)

// archive is what should be preserved now.
type archive struct {
	objects map[string]*known
	order   []string
	ids     map[string]string // ark by collection and local id
}

// known is an object that should be preserved.
type known struct {
	ark, collection string
	versions        []version
}

// version is the expected content of a version.
type version struct {
	files           map[string][]byte
	who, what, when string
	ids             []string
}

func newArchive() *archive { return &archive{objects: map[string]*known{}, ids: map[string]string{}} }

func (k *known) head() version {
	if k == nil || len(k.versions) == 0 {
		return version{}
	}
	return k.versions[len(k.versions)-1]
}

// add records that a job made a version.
func (a *archive) add(id, collection string, v version) {
	k := a.objects[id]
	if k == nil {
		k = &known{ark: id, collection: collection}
		a.objects[id], a.order = k, append(a.order, id)
	}
	k.versions = append(k.versions, v)
	for _, local := range v.ids {
		a.ids[collection+"\x00"+local] = id
	}
}

// shoulders of the collections.
var shoulders = map[string]string{"maps": "fk4", "books": "fk7"}

// ark is the ARK that a submission names.
func (w *world) ark(ref, submission, object int) string {
	switch {
	case ref > 0 && len(w.known.order) > 0:
		return w.known.order[(ref-1)%len(w.known.order)]
	case ref >= 0:
		return ""
	}
	n := 0
	given := ark.Mint("99999", shoulders["maps"],
		func(most int) int { n++; return (submission*7 + object*3 + n) % most })
	if ref == -2 {
		last := given.Name[len(given.Name)-1]
		given.Name = given.Name[:len(given.Name)-1] + string(ark.Alphabet[(strings.IndexByte(ark.Alphabet,
			last)+1)%len(ark.Alphabet)])
	}
	return given.String()
}

// ref is how the job's ARK was chosen.
func (j *job) ref() int {
	if many(j.submission.Kind) {
		return j.object.Row.Primary
	}
	return j.submission.Form.Primary
}

// named are the local ids that the submission itself gives a job, in order.
func (j *job) named() []string {
	if many(j.submission.Kind) {
		return clean(j.object.Row.Local, true)
	}
	return clean(j.submission.Form.Local, false)
}

// local are all local ids of a job, in order.
func (j *job) local() []string {
	ids := j.named()
	for _, id := range clean(j.inPackage(), false) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// clean returns the effective ids: trimmed, without duplicates; those of a manifest's row are
// decoded.
func clean(from []value, row bool) (ids []string) {
	had := map[string]bool{}
	for _, id := range from {
		each := []string{string(id)}
		if row {
			each = strings.Split(decode(string(id)), ";")
		}
		for _, one := range each {
			one = strings.TrimSpace(one)
			if one != "" && !had[one] {
				had[one], ids = true, append(ids, one)
			}
		}
	}
	return ids
}

// inPackage are the local ids in a job's package.
func (j *job) inPackage() []value {
	for _, d := range []said{j.object.ERC, j.object.DataCite, j.object.DC} {
		if len(d.Local) > 0 {
			return d.Local
		}
	}
	return nil
}

// element is the value of one element from the best source. Without a value, a code that says something of it takes
// the place of the value before.
func (j *job) element(of func(said) value, before string) string {
	code := ""
	for _, s := range j.said {
		switch v := oneLine(string(of(s))); v {
		case "", "(:unas)":
		case "(:unkn)", "(:null)":
			code = cmp.Or(code, v)
		default:
			return v
		}
	}
	return cmp.Or(code, before)
}

// shown is what rows and reports have of an element: no code.
func shown(element string) string {
	if element == "(:unkn)" || element == "(:null)" {
		return ""
	}
	return element
}

var breaks = regexp.MustCompile(`[ \t]*[\t\n\r\x{85}\x{2028}\x{2029}][ \t\n\r\x{85}\x{2028}\x{2029}]*`)

// oneLine is a value without its line breaks.
func oneLine(v string) string { return strings.TrimSpace(breaks.ReplaceAllString(v, " ")) }

// version is the version that a job should make of an object.
func (j *job) version(before version, given map[string][]byte) version {
	v := version{files: given, ids: slices.Clone(before.ids)}
	v.who = j.element(func(s said) value { return s.Who }, before.who)
	v.what = j.element(func(s said) value { return s.What }, before.what)
	v.when = j.element(func(s said) value { return s.When }, before.when)
	for _, id := range j.local() {
		if !slices.Contains(v.ids, id) {
			v.ids = append(v.ids, id)
		}
	}
	return v
}

// same reports whether two versions are equal.
func (v version) same(other version) bool {
	return equalFiles(v.files, other.files) && v.who == other.who && v.what == other.what && v.when == other.when &&
		slices.Equal(v.ids, other.ids)
}

func equalFiles(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(a, b []byte) bool { return string(a) == string(b) })
}

// conflict returns why a job must be refused because of its identifiers, "" if it must not.
func (a *archive) conflict(j *job) string {
	s := j.submission
	own := map[string]bool{}
	for _, id := range j.local() {
		if known := a.ids[s.Collection+"\x00"+id]; known != "" {
			own[known] = true
		}
	}
	stands := a.objects[j.primary]
	switch {
	case len(own) > 1:
		return "its local ids belong to different objects"
	case stands == nil && j.ref() == -2:
		return "its ARK has a wrong check character"
	case j.primary != "" && stands == nil && s.Collection != "maps":
		return "its ARK is not on the collection's shoulder"
	case stands != nil && stands.collection != s.Collection:
		return "its ARK belongs to another collection"
	case j.primary != "" && len(own) == 1 && !own[j.primary]:
		return "its local id belongs to another object"
	case j.primary == "" && len(own) == 1 && a.onlyInPackage(j):
		return "its package names another object"
	}
	if s.IfVersion == 2 {
		return "it was made for another version"
	}
	return ""
}

// onlyInPackage reports whether the object is named by the package alone.
func (a *archive) onlyInPackage(j *job) bool {
	for _, id := range j.named() {
		if a.ids[j.submission.Collection+"\x00"+id] != "" {
			return false
		}
	}
	return true
}

// target is the object that a job's ids name, if it is known.
func (a *archive) target(j *job) *known {
	if j.primary != "" {
		return a.objects[j.primary]
	}
	for _, id := range j.local() {
		if known := a.ids[j.submission.Collection+"\x00"+id]; known != "" {
			return a.objects[known]
		}
	}
	return nil
}

// refused returns why a job must fail, given what its sources served; "" if it must not.
func (w *world) refused(j *job) string {
	s := j.submission
	if many(s.Kind) && (len(s.Form.Local) > 0 || j.formPrimary != "" || s.IfVersion == 2) {
		return "its form has fields for one object, but the payload lists several"
	}
	for _, f := range j.object.files() {
		given := w.source.given(j.paths[j.name(f)])
		if given == nil {
			continue
		}
		switch {
		case f.Check.digest([]byte(f.Content)) != f.Check.digest(given) && f.Check.Algorithm != "", f.Check.refuses():
			return fmt.Sprintf("%s does not match the depositor's digest", f.Name)
		case f.Check.Algorithm == "" && f.Check.size([]byte(f.Content)) != f.Check.size(given):
			return fmt.Sprintf("%s does not have the depositor's size", f.Name)
		}
	}
	if given := w.source.given(j.payload.at); s.Untyped && strings.HasPrefix(string(given), "<") &&
		!strings.HasSuffix(j.payload.name, ".html") {
		return "the source answered with a web page that was not declared"
	}
	if s.Collection == "books" && slices.ContainsFunc(j.object.files(),
		func(f file) bool { return f.Check.Algorithm == "" }) {
		return "its collection requires a digest of each file"
	}
	if s.Kind == ingest.TypeBatchManifest || s.Kind == ingest.TypeObjectManifest {
		if j.object.Check.Algorithm != "" && j.object.Check.Wrong {
			return "its manifest does not match the depositor's digest"
		}
	}
	for at, text := range j.manifests {
		if given := w.source.given(at); given != nil && string(given) != text {
			return "its manifest was not served"
		}
	}
	return w.known.conflict(j)
}

// name is the name under which a file is stored: in manifests some characters are encoded.
func (j *job) name(f file) string {
	if j.submission.Kind == ingest.TypeFile {
		return string(f.Name)
	}
	return decode(string(f.Name))
}

// decode is the value that is read from a manifest's cell. A row is a line: a line break is
// written as an escape, which no reader decodes.
func decode(s string) string {
	return strings.TrimSpace(strings.NewReplacer("%20", " ", "%7c", "|", "%7C", "|").Replace(lineBreaks.Replace(s)))
}
