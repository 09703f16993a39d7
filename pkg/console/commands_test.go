package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"archivist/pkg/app/inprocess"
	"archivist/pkg/console"
)

// commandLine is the program archivist, which asks the API of a world. Nothing is changed there: a
// request that would change something is refused.
type commandLine struct {
	*world
	folder, url string
	known       map[string]bool // the commands that were tried
}

// commandLine builds it.
func (w *world) commandLine() *commandLine {
	w.Helper()
	c := &commandLine{world: w, folder: w.TempDir(), known: map[string]bool{}}
	said, err := exec.CommandContext(w.Context(), "go", "build", "-o", c.folder+"/",
		"archivist/cmd/archivist").CombinedOutput()
	if err != nil {
		w.Fatalf("%v\n%s", err, said)
	}
	api := w.API()
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(rw, "nothing is changed here", http.StatusForbidden)
			return
		}
		api.ServeHTTP(rw, r)
	}))
	w.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// A word of a command that stands for another, and one that names a file of the computer.
var placeholder = regexp.MustCompile(`(^|\s)[A-Z]{3,}(\.[a-z]+)?(\s|$)`)

// refuses are the exit codes that say that a command line is wrong, or that it is not known why it
// fails.
var wrongCommand = []int{1, 2, 126, 127}

// accepts fails for a command that the command line or the API does not accept as it is. Of one in
// which something has to be filled in, the words and options are looked at.
func (c *commandLine) accepts(path, command string) {
	c.Helper()
	if c.known[command] {
		return
	}
	c.known[command] = true
	if placeholder.MatchString(command) {
		command += " --help"
	}
	shell := exec.CommandContext(c.Context(), "sh", "-c", command)
	shell.Dir = c.folder
	shell.Env = []string{"PATH=" + c.folder + ":" + os.Getenv("PATH"), "HOME=" + c.folder,
		"ARCHIVIST_API=" + c.url}
	said, err := shell.CombinedOutput()
	if !strings.HasPrefix(command, "archivist ") ||
		slices.Contains(wrongCommand, shell.ProcessState.ExitCode()) {
		c.Errorf("%s shows the command\n%s\n%v\n%.500s", path, command, err, said)
	}
}

// shown is the command that a page shows, "" if there is none.
func shown(t *testing.T, page string) string {
	t.Helper()
	for n := range parsed(t, page).Descendants() {
		if n.Data != "aside" || attr(n, "class") != "command" {
			continue
		}
		for code := range n.Descendants() {
			if code.Data == "code" {
				return code.FirstChild.Data
			}
		}
	}
	return ""
}

// written are values of the fields of filters in which one can write. The last ones look like an
// option and like nothing of a shell.
var written = map[string][]string{"collection": {"sample"}, "subject": {"Collection:sample"},
	"filter": {"Object+Create"}, "actor": {"ann", "-ann"}, "before": {"2031-01-02"}, "after": {"2020-01-02"},
	"submitter": {"Map Library", "-x"}, "message": {"it's not", "-x"}, "localId": {"local-1", "-x"},
	"ark": {"ark:/99999/fk4x"}, "title": {"A letter", `-$HOME "x"`}, "date": {"1851", "1851-02"},
	"format": {"image/tiff"}, "q": {"harbour map", "-harbour", `"a b" title:x`}, "batch": {"none"},
	"id": {"item:one"}}

// filtered are the addresses of a page with each value of each field of its filter.
func (w *world) filtered(path, page string) (all []string) {
	w.Helper()
	for n := range parsed(w.T, page).Descendants() {
		if n.Data != "form" || attr(n, "class") != "filter" {
			continue
		}
		for _, f := range fieldsIn(n) {
			values := f.values
			if values == nil {
				values = written[f.name]
			}
			if values == nil {
				w.Errorf("%s has the field %s: give it a value in this test", path, f.name)
			}
			for _, value := range values {
				to := path
				if at := attr(n, "action"); at != "" {
					to = strings.TrimLeft(at, "./")
				}
				all = append(all, to+"?"+url.Values{f.name: {value}}.Encode())
			}
		}
	}
	return all
}

// oneField is a field of a filter: values are those that can be chosen, nil if one can write.
type oneField struct {
	name   string
	values []string
}

// fieldsIn are those of a form.
func fieldsIn(form *html.Node) (all []oneField) {
	for n := range form.Descendants() {
		f := oneField{name: attr(n, "name")}
		for o := range n.Descendants() {
			if o.Data == "option" && chosen(o) != "" {
				f.values = append(f.values, chosen(o))
			}
		}
		if f.name != "" && (n.Data == "input" || n.Data == "select") {
			all = append(all, f)
		}
	}
	return all
}

// linked are the addresses of pages of the console to which a page links.
func (w *world) linked(path, page string) (all []string) {
	w.Helper()
	at, err := url.Parse(home + path)
	w.must(err)
	for n := range parsed(w.T, page).Descendants() {
		to, err := at.Parse(attr(n, "href"))
		w.must(err)
		to.Fragment = ""
		below, inside := strings.CutPrefix(to.String(), home)
		if n.Data == "a" && inside && !strings.Contains(below, "cursor=") {
			all = append(all, below)
		}
	}
	return all
}

// TestCommands: the command line accepts each command that a page shows, with each filter and order,
// those of all actions, and those in texts; what it asks the API for is accepted, too.
func TestCommands(t *testing.T) {
	w := beginWith(t, true, func(s *inprocess.Settings) {
		revisionQueue(s)
		jingles(s)
	})
	c, b, todo := w.commandLine(), w.browser(), []string{}
	for _, p := range w.everything() {
		todo = append(todo, p.path)
	}
	for _, first := range slices.Clone(todo) {
		_, page := b.get(first)
		todo = append(append(todo, w.filtered(first, page)...), w.linked(first, page)...)
	}
	for _, sort := range []string{"relevance", "title", "date", "modified"} {
		for _, order := range []string{"ascending", "descending"} {
			for _, of := range []string{"", "&q=-here", "&collection=sample", "&date=1851&title=a+b"} {
				todo = append(todo, "objects?sort="+sort+"&order="+order+of)
			}
		}
	}
	todo = append(append(todo, console.Deeds("It's $HOME")...), console.Deeds("-x")...)
	seen := map[string]bool{}
	for _, path := range todo {
		if seen[path] {
			continue
		}
		seen[path] = true
		resp, page := b.get(path)
		if command := shown(t, page); resp.StatusCode == http.StatusOK && command != "" {
			c.accepts(path, command)
		}
	}
	commands, err := console.InTemplates()
	w.must(err)
	for _, one := range slices.Concat(commands, console.ActCommands("-It's"), console.ActCommands("a b")) {
		c.accepts("a text", html.UnescapeString(one))
	}
	if len(c.known) < 200 {
		t.Errorf("only %d commands are shown on %d pages", len(c.known), len(seen))
	}
	t.Logf("%d commands of %d pages", len(c.known), len(seen))
}
