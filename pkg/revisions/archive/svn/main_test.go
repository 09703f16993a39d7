package svn

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"archivist/pkg/kernel/fetch"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

// twin answers as Apache's mod_dav_svn 1.14 does to the requests of this package: the tests that it passes ran on
// the real one, too (see TestReal). It has no copies.
type twin struct {
	*httptest.Server
	revisions      []archivetest.Revision // files by their path in the repository
	user, password string
	before         func(w http.ResponseWriter, r *http.Request) bool // answers instead
	listed         []string                                          // folders that were listed
}

const uuid = "f24b0ebb-8882-46f9-b9cf-868ae5b49db0"

func newTwin(t testing.TB, revisions []archivetest.Revision) *twin {
	t.Helper()
	s := &twin{revisions: revisions}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP answers a request.
func (s *twin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if s.user != "" && (user != s.user || password != s.password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="svn"`)
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if s.before != nil && s.before(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodOptions:
		if strings.Contains(string(body), "activity-collection-set") {
			s.describe(w.Header())
		}
	case strings.HasPrefix(r.URL.Path, "/svn/!svn/rev/"):
		s.revision(w, strings.TrimPrefix(r.URL.Path, "/svn/!svn/rev/"))
	case strings.HasPrefix(r.URL.Path, "/svn/!svn/rvr/"):
		n, below, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/svn/!svn/rvr/"), "/")
		s.file(w, r, n, strings.Trim(below, "/"))
	default:
		http.Error(w, "Bad Request", http.StatusBadRequest)
	}
}

func (s *twin) describe(h http.Header) {
	for name, value := range map[string]string{"SVN-Youngest-Rev": strconv.Itoa(len(s.revisions)),
		"SVN-Repository-UUID": uuid, "SVN-Repository-Root": "/svn", "SVN-Rev-Root-Stub": "/svn/!svn/rvr",
		"SVN-Rev-Stub": "/svn/!svn/rev", "SVN-Me-Resource": "/svn/!svn/me"} {
		h.Set(name, value)
	}
}

// find is a revision. One that does not exist is answered with 404.
func (s *twin) find(w http.ResponseWriter, number string) (int, bool) {
	n, err := strconv.Atoi(number)
	if err == nil && n >= 0 && n <= len(s.revisions) {
		return n, true
	}
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?>
<D:error xmlns:D="DAV:" xmlns:m="http://apache.org/dav/xmlns" xmlns:C="svn:">
<C:error/>
<m:human-readable errcode="160006">
No such revision %s
</m:human-readable>
</D:error>`, number)
	return 0, false
}

const namespaces = `xmlns:D="DAV:" xmlns:lp1="DAV:" xmlns:S="http://subversion.tigris.org/xmlns/svn/" ` +
	`xmlns:C="http://subversion.tigris.org/xmlns/custom/" xmlns:V="http://subversion.tigris.org/xmlns/dav/" ` +
	`xmlns:lp2="http://subversion.tigris.org/xmlns/dav/"`

func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", `text/xml; charset="utf-8"`)
	w.WriteHeader(http.StatusMultiStatus)
	fmt.Fprint(w, "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n")
}

// respond writes a response with properties that exist and names of some that do not.
func respond(w io.Writer, href, properties, missing string) {
	fmt.Fprintf(w, "<D:response %s>\n<D:href>%s</D:href>\n", namespaces, href)
	fmt.Fprintf(w, "<D:propstat>\n<D:prop>\n%s</D:prop>\n<D:status>HTTP/1.1 200 OK</D:status>\n</D:propstat>\n",
		properties)
	if missing != "" {
		fmt.Fprintf(w, "<D:propstat>\n<D:prop>\n%s</D:prop>\n<D:status>HTTP/1.1 404 Not Found</D:status>\n"+
			"</D:propstat>\n", missing)
	}
	fmt.Fprint(w, "</D:response>\n")
}

func quoted(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

func (s *twin) revision(w http.ResponseWriter, number string) {
	n, ok := s.find(w, number)
	if !ok {
		return
	}
	begin(w)
	var log, author string
	if n > 0 {
		log, author = s.revisions[n-1].Message, s.revisions[n-1].Author
	}
	encoding := ""
	if !utf8.ValidString(log) || strings.ContainsFunc(log, func(c rune) bool { return c < ' ' && c != '\n' }) {
		encoding, log = ` V:encoding="base64"`, base64.StdEncoding.EncodeToString([]byte(log))
	}
	properties := fmt.Sprintf("<S:date>%s</S:date>\n<S:log%s>%s</S:log>\n<lp1:creator-displayname>%s"+
		"</lp1:creator-displayname>\n", dateOf(n).Format("2006-01-02T15:04:05.000000Z"), encoding, quoted(log),
		quoted(author))
	missing := "<C:Archivist-Run/>\n"
	if token, found := strings.CutPrefix(log, "token "); found {
		properties, missing = properties+"<C:Archivist-Run>"+token+"</C:Archivist-Run>\n", ""
	}
	respond(w, "/svn/!svn/bln/"+number, properties, missing)
	fmt.Fprintln(w, "</D:multistatus>")
}

func dateOf(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 5000).UTC() }

// children are what is directly in a folder of a revision: files, and folders with a slash at the end.
func (s *twin) children(n int, folder string) (names []string) {
	if n == 0 {
		return nil
	}
	for name := range s.revisions[n-1].Files {
		rest, below := strings.CutPrefix(name, folder+"/")
		if folder == "" {
			rest, below = name, true
		}
		first, _, deep := strings.Cut(rest, "/")
		if below {
			if deep {
				first += "/"
			}
			names = append(names, first)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// version is the last revision in which something at or below a path changed.
func (s *twin) version(n int, name string) int {
	below := func(n int) map[string]archivetest.File {
		out := map[string]archivetest.File{}
		for at, f := range s.revisions[n-1].Files {
			if at == name || strings.HasPrefix(at, name+"/") {
				out[at] = f
			}
		}
		return out
	}
	for n > 1 && maps.Equal(below(n), below(n-1)) {
		n--
	}
	return n
}

func (s *twin) file(w http.ResponseWriter, r *http.Request, number, name string) {
	n, ok := s.find(w, number)
	if !ok {
		return
	}
	var f archivetest.File
	isFile := false
	if n > 0 {
		f, isFile = s.revisions[n-1].Files[name]
	}
	children := s.children(n, name)
	switch {
	case !isFile && len(children) == 0 && name != "":
		http.NotFound(w, r)
	case r.Method == http.MethodGet && isFile:
		fmt.Fprint(w, contentOf(f))
	case r.Method == "PROPFIND" && r.Header.Get("Depth") == "1":
		s.listed = append(s.listed, number+"/"+name)
		begin(w)
		s.respond(w, number, n, name, !isFile)
		for _, child := range children {
			s.respond(w, number, n, path.Join(name, child), strings.HasSuffix(child, "/"))
		}
		fmt.Fprintln(w, "</D:multistatus>")
	default:
		http.Error(w, "Forbidden", http.StatusForbidden)
	}
}

func contentOf(f archivetest.File) string {
	if f.Link != "" {
		return "link " + f.Link
	}
	return f.Content
}

func (s *twin) respond(w io.Writer, number string, n int, name string, folder bool) {
	ver := &url.URL{Path: fmt.Sprintf("/svn/!svn/ver/%d/%s", s.version(max(n, 1), name), name)}
	href := "/svn/!svn/rvr/" + number + "/" + name
	at := (&url.URL{Path: href}).EscapedPath()
	version := "<lp1:checked-in><D:href>" + quoted(ver.EscapedPath()) + "</D:href></lp1:checked-in>\n"
	if folder {
		respond(w, quoted(strings.TrimSuffix(at, "/")+"/"),
			"<lp1:resourcetype><D:collection/></lp1:resourcetype>\n"+version,
			"<S:executable/>\n<S:special/>\n<V:sha1-checksum/>\n")
		return
	}
	f := s.revisions[n-1].Files[name]
	sum := sha1.Sum([]byte(contentOf(f)))
	properties, missing := "<lp1:resourcetype/>\n"+version+"<lp2:sha1-checksum>"+hex.EncodeToString(sum[:])+
		"</lp2:sha1-checksum>\n", ""
	for name, has := range map[string]bool{"executable": f.Executable, "special": f.Link != ""} {
		if has {
			properties += "<S:" + name + ">*</S:" + name + ">\n"
		} else {
			missing += "<S:" + name + "/>\n"
		}
	}
	respond(w, quoted(at), properties, missing)
}

// below moves the files of a history into a folder.
func below(folder string, history []archivetest.Revision) []archivetest.Revision {
	out := slices.Clone(history)
	for i, r := range history {
		out[i].Files = map[string]archivetest.File{}
		for name, f := range r.Files {
			out[i].Files[folder+"/"+name] = f
		}
	}
	return out
}

func deps() Deps {
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	client.Tries = 1
	return Deps{HTTP: client,
		Secret: func(_ context.Context, name string) (string, error) { return "ada:" + name, nil }}
}

func open(t testing.TB, raw, secret string) *Source {
	t.Helper()
	l := archive.Location{Kind: archive.Subversion, URL: raw, Secret: secret}
	if err := l.Check(true); err != nil {
		t.Fatal(err)
	}
	s, err := Open(l, deps())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
