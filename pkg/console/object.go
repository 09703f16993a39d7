package console

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// object is the page of an object.
type object struct {
	v1.Object
	Path     string // of the page, below /console/
	N        int    // the version that is shown
	Describe v1.Description
	More     []element
	Versions list[v1.Version]
	Files    list[v1.File]
	Formats  map[string][]v1.Format // that were identified, by the path of the file
	Unknown  string                 // which formats are not shown, and why; "" if all are
	Changes  list[v1.FileChange]
	Counts   map[string]int
	History  list[v1.HistoryEvent]
	Checks   []check
	Picture  string // the path of the image of which there is a thumbnail, "" if there is none
	Download int64
	Last     string
	Made     v1.VersionMade       // what was made of the version, and is there
	Places   list[v1.ObjectPlace] // where it is stored, for operators
	Closed   string               // why no file is given out, "" if they are
	Deeds    []deedOffer
}

// list is a part of a page that has pages of its own.
type list[T any] struct {
	Items []T
	Next  string // the address of the next page, without the path; "" after the last
	First string // that of the first, "" on it
	None  string // why it could not be read
}

// element is an element of a description.
type element struct {
	Name   string
	Values []string
}

// check is the last check of the stored files, or of their copies.
type check struct {
	Where string
	v1.Fixity
	Detail *v1.FixityCheck // of one that found something
}

// filesOfObject is how many files, and how many changes, a page of an object shows.
const filesOfObject = 100

// ark is the ARK in the path of a page.
func (v *visit) ark() string { return "ark:/" + v.PathValue("naan") + "/" + v.PathValue("name") }

// version is the version in the address, or the newest.
func (v *visit) version(newest int) (int, error) {
	text := v.field("version")
	if text == "" {
		return newest, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault.New(fault.Invalid, "version: found %q; expected a number from 1", cut(text))
	}
	return n, nil
}

// pageOfObject is the page of an object, below /console/.
func pageOfObject(ark string) string { return "objects/" + strings.TrimPrefix(ark, "ark:/") }

// showObject shows an object, and one of its versions: the newest, or that in the address.
func (c *Console) showObject(v *visit) (view, error) {
	one, err := v.api.Object(v.Context(), v.ark())
	if err != nil {
		return view{}, err
	}
	n, err := v.version(one.Version)
	if err != nil {
		return view{}, err
	}
	ids := strings.SplitN(strings.TrimPrefix(one.ARK, "ark:/"), "/", 2)
	o := object{Object: one, Path: pageOfObject(one.ARK), N: n, Deeds: v.deedsOn("object", statesOf(one), ids...)}
	o.Closed = closed(one)
	o.describe(v)
	if err := o.stored(v); err != nil {
		return view{}, err
	}
	if err := o.lists(v); err != nil {
		return view{}, err
	}
	o.checks(v)
	o.picture(v)
	if s, err := v.api.ObjectStatistics(v.Context(), one.ARK); err == nil {
		o.Download, o.Last = s.Downloads, s.LastDownload
	}
	heading := cut(one.Title)
	if heading == "" {
		heading = one.ARK
	}
	return view{Title: heading, Body: o, Command: "archivist object show " + one.ARK}, nil
}

// closed says why no file of an object is given out.
func closed(o v1.Object) string {
	switch {
	case o.Withdrawn != nil:
		return "No file is given out: the object is withdrawn."
	case o.Embargo != nil:
		return "No file is given out until " + o.Embargo.Until +
			" has ended: the object is under an embargo."
	}
	return ""
}

// describe adds the description of the version. If it cannot be read, the rest is shown all the same.
func (o *object) describe(v *visit) {
	d, err := v.api.Description(v.Context(), o.ARK, o.N)
	if err != nil {
		o.More = []element{{"Description", []string{"not known: " + err.Error()}}}
		return
	}
	o.Describe = d
	for _, name := range slices.Sorted(maps.Keys(d.More)) {
		o.More = append(o.More, element{title(name), d.More[name]})
	}
}

// stored adds what was made of the version, and for operators where the object is stored. Of a
// version whose row is missing, which the doctor finds, nothing was made.
func (o *object) stored(v *visit) (err error) {
	o.Made, err = v.api.Made(v.Context(), o.ARK, o.N)
	if fault.Is(err, fault.NotFound) {
		o.Made, err = v1.VersionMade{Zippable: true}, nil
	}
	if err == nil && v.may(access.Operator) {
		var page v1.List[v1.ObjectPlace]
		page, err = v.api.PlacePage(v.Context(), o.ARK, v.field("places"))
		o.Places = part(v, "places", page)
	}
	return err
}

// lists adds the versions, the files and changes of the version that is shown, and the permanent record.
func (o *object) lists(v *visit) error {
	versions, err := v.api.VersionPage(v.Context(), o.ARK, v.field("versions"))
	if err != nil {
		return err
	}
	o.Versions = part(v, "versions", versions)
	files, err := v.api.FilePage(v.Context(), o.ARK, o.N, v.field("files"), filesOfObject)
	if err != nil {
		return err
	}
	o.Files = part(v, "files", files)
	o.identified(v)
	if o.N > 1 {
		changes, err := v.api.ChangePage(v.Context(), o.ARK, o.N, v.field("changes"), filesOfObject)
		o.Changes = part(v, "changes", changes)
		if err != nil {
			o.Changes.None = err.Error()
		}
		o.Counts = map[string]int{}
		for _, c := range changes.Items {
			o.Counts[c.Change]++
		}
	}
	history, err := v.api.HistoryPage(v.Context(), o.ARK, v.field("history"))
	o.History = part(v, "history", history)
	if err != nil {
		o.History.None = err.Error()
	}
	return nil
}

// identified adds the formats of the files. Those of the first files only are read: a page of the API has 1,000.
func (o *object) identified(v *visit) {
	page, err := pageOf[v1.FileFormats](v, versionPath(o.ARK, o.N)+"/formats", "")
	switch {
	case fault.Is(err, fault.NotFound):
		o.Unknown = "The formats of the files are not identified yet."
	case err != nil:
		o.Unknown = "The formats of the files are not known: " + err.Error()
	case page.Cursor != "":
		o.Unknown = "The formats of the first " + number(len(page.Items)) + " files are shown. All of them: " +
			"archivist object formats " + o.ARK + " --number " + strconv.Itoa(o.N)
	}
	o.Formats = map[string][]v1.Format{}
	for _, f := range page.Items {
		o.Formats[f.Path] = f.Formats
	}
}

// part is a page of a list in a page, with the address of the next one. name is that of its cursor.
func part[T any](v *visit, name string, page v1.List[T]) list[T] {
	l := list[T]{Items: page.Items}
	q := v.URL.Query()
	q.Del("did")
	if q.Get(name) != "" {
		first := url.Values{}
		for k, values := range q {
			if k != name {
				first[k] = values
			}
		}
		l.First = "?" + first.Encode()
	}
	if page.Cursor != "" {
		q.Set(name, page.Cursor)
		l.Next = "?" + q.Encode()
	}
	return l
}

// checks adds the last checks, each that found something with what it found.
func (o *object) checks(v *visit) {
	add := func(where, in string, f v1.Fixity) {
		one := check{Where: where, Fixity: f}
		if f.FixityOutcome != "" && f.FixityOutcome != "ok" {
			if detail, err := v.api.Fixity(v.Context(), o.ARK, in); err == nil {
				one.Detail = &detail
			}
		}
		o.Checks = append(o.Checks, one)
	}
	add("Storage", v1.InStorage, o.Fixity)
	if o.Copy != nil {
		add("Copy in the second bucket", v1.InCopy, o.Copy.Fixity)
	}
}

// pictures are the types of files that the archive makes thumbnails of. A thumbnail is a JPEG.
var pictures = []string{"image/jpeg", "image/png", "image/gif", "image/tiff", "image/bmp", "image/webp"}

// picture finds an image that has a thumbnail among the files, and lets the page load it from the storage.
func (o *object) picture(v *visit) {
	if o.Closed != "" {
		return
	}
	for _, f := range o.Files.Items {
		if !slices.Contains(pictures, f.MediaType) {
			continue
		}
		to, err := v.follow(versionPath(o.ARK, o.N) + "/thumbnail?" + query("path", f.Path))
		if err == nil {
			o.Picture = f.Path
			v.allow("img-src", to)
		}
		return // only the first is asked for
	}
}

// versionPath is where the API has a version.
func versionPath(ark string, n int) string {
	return v1.ObjectPath(ark) + "/versions/" + strconv.Itoa(n)
}

// content leads to a file of a version in the storage, which answers with it as an attachment.
func (c *Console) content(v *visit) error { return v.stored("content") }

// thumbnail leads to the thumbnail of an image in the storage.
func (c *Console) thumbnail(v *visit) error { return v.stored("thumbnail") }

// stored leads to something of a version in the storage, by the signed address that the API makes for it.
func (v *visit) stored(what string) error {
	n, err := v.version(0)
	if err == nil && n == 0 {
		err = fault.New(fault.Invalid, "version: give the number of the version")
	}
	if err != nil {
		return err
	}
	return v.lead(versionPath(v.ark(), n) + "/" + what + "?" + query("path",
		v.URL.Query().Get("path")))
}

// anARK is what the ARK in a form has to look like, so that it can be in a path. The API knows which are valid.
var anARK = regexp.MustCompile(`^ark:/[0-9a-z]+/[0-9A-Za-z][0-9A-Za-z=~*+@_$.-]*$`)

// sentARK is the ARK that a form has.
func (v *visit) sentARK() (string, error) {
	id := v.PostForm.Get("ark")
	if !anARK.MatchString(id) {
		return "", fault.New(fault.Invalid, "ark: found %q; expected ark:/NAAN/NAME", cut(id))
	}
	return id, nil
}

// makeZip makes a zip file of a version, and shows where it is.
func (c *Console) makeZip(v *visit, _ string) error {
	n, err := strconv.Atoi(v.PostForm.Get("version"))
	if err != nil {
		return fault.New(fault.Invalid, "version: found %q; expected a number", cut(v.PostForm.Get("version")))
	}
	id, err := v.sentARK()
	if err == nil {
		_, err = v.api.MakeZip(v.Context(), id, n)
	}
	if err == nil {
		redirect(v, pageOfObject(id)+"?"+query("version", strconv.Itoa(n))+"#files")
	}
	return err
}

// zip leads to the zip file of a version in the storage.
func (c *Console) zip(v *visit) error {
	n, err := v.version(0)
	if err != nil {
		return err
	}
	return v.lead(v1.ZipPath(v.ark(), n))
}

// manifest leads to the packaging manifest of an object.
func (c *Console) manifest(v *visit) error { return v.lead(v1.ObjectPath(v.ark()) + "/manifest") }

// premis answers with the permanent record of an object, as a PREMIS document.
func (c *Console) premis(v *visit) error {
	one, err := v.api.Object(v.Context(), v.ark())
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(one.ARK, "ark:/"), "/", "-") + ".premis.xml"
	out := &kept{header: http.Header{}}
	if err := v.api.HistoryPREMIS(v.Context(), one.ARK, out); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/xml")
	v.w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(name))
	write(v.w, v.Request, http.StatusOK, out.body.Bytes())
	return nil
}

// Summary says what a list of changes has.
func (o object) Summary() string {
	var parts []string
	for _, kind := range []string{"added", "changed", "removed"} {
		if n := o.Counts[kind]; n > 0 {
			parts = append(parts, terminal.Count(n, "file")+" "+kind)
		}
	}
	if len(parts) == 0 {
		return "no file was added, changed or removed"
	}
	return strings.Join(parts, ", ")
}
