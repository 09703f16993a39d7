package svn

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

// apache is a folder with Apache, mod_dav_svn and svnadmin, as Debian's packages apache2-bin, libapache2-mod-svn,
// subversion and their libraries have them (dpkg -x). No package of Go, npm, PyPI or Maven has such a server.
var apache = flag.String("apache", "", "folder with usr/sbin/apache2: the tests run with a real server, too")

// real is a server of the repositories below a folder.
type real struct {
	folder, url string
}

func (s *real) run(t testing.TB, input string, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(*apache, program), args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(*apache, "usr/lib/x86_64-linux-gnu"))
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start starts a server.
func start(t testing.TB) *real {
	t.Helper()
	if *apache == "" {
		t.Skip("-apache names no server") // it tests a real server, which most machines do not have
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s := &real{folder: t.TempDir(), url: "http://" + address}
	modules := ""
	for _, m := range []string{"mpm_event", "authn_core", "authz_core", "dav", "dav_svn"} {
		modules += fmt.Sprintf("LoadModule %s_module %s/usr/lib/apache2/modules/mod_%s.so\n", m, *apache, m)
	}
	config := fmt.Sprintf("ServerName localhost\nServerRoot %[1]s\nPidFile httpd.pid\nListen %[2]s\n"+
		"DefaultRuntimeDir .\nMutex file:. default\n%[3]sUser nobody\nGroup nogroup\nErrorLog error.log\n"+
		"<Location /svn>\nDAV svn\nSVNParentPath %[1]s/repositories\n</Location>\n", s.folder, address, modules)
	if err := os.WriteFile(s.folder+"/httpd.conf", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for at := s.folder; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755)
	}
	_ = os.Mkdir(s.folder+"/repositories", 0o755)
	s.run(t, "", "usr/sbin/apache2", "-f", s.folder+"/httpd.conf", "-k", "start")
	t.Cleanup(func() {
		s.run(t, "", "usr/sbin/apache2", "-f", s.folder+"/httpd.conf", "-k", "stop")
		for range 100 { // its processes still write
			if _, err := os.Stat(s.folder + "/httpd.pid"); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond) // between two looks: a process says nothing when it has ended
		}
	})
	for range 1200 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return s
		}
		time.Sleep(50 * time.Millisecond) // between two tries: nothing says when the server listens
	}
	t.Fatal("the server does not answer")
	return nil
}

// load makes a repository from a dump, and returns its URL.
func (s *real) load(t testing.TB, dump string) string {
	t.Helper()
	folder, err := os.MkdirTemp(s.folder+"/repositories", "r")
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "", "usr/bin/svnadmin", "create", folder)
	s.run(t, dump, "usr/bin/svnadmin", "load", "-q", folder)
	err = exec.Command("chmod", "-R", "a+rX", folder).Run()
	if err != nil {
		t.Fatal(err)
	}
	return s.url + "/svn/" + filepath.Base(folder)
}

// dump is a history in the form of svnadmin dump (Subversion's notes/dump-load-format.txt).
func dump(history []archivetest.Revision) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "SVN-fs-dump-format-version: 2\n\nUUID: %s\n\n", uuid)
	before := map[string]archivetest.File{}
	for i, r := range append([]archivetest.Revision{{}}, history...) {
		properties := map[string]string{"svn:date": dateOf(i).Format("2006-01-02T15:04:05.000000Z")}
		if i > 0 {
			properties["svn:log"], properties["svn:author"] = r.Message, r.Author
		}
		if token, found := strings.CutPrefix(r.Message, "token "); found {
			properties["Archivist-Run"] = token
			properties["custom:strange name"] = "x" // such as XML does not allow
		}
		text := encode(properties)
		fmt.Fprintf(&b, "Revision-number: %d\nProp-content-length: %d\nContent-length: %d\n\n%s\n", i, len(text),
			len(text), text)
		nodes(&b, before, r.Files)
		before = r.Files
	}
	return b.String()
}

func encode(properties map[string]string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		text += fmt.Sprintf("K %d\n%s\nV %d\n%s\n", len(name), name, len(properties[name]), properties[name])
	}
	return text + "PROPS-END\n"
}

// nodes writes what differs between the files of two revisions.
func nodes(b *bytes.Buffer, before, after map[string]archivetest.File) {
	foldersBefore, foldersAfter := folders(before), folders(after)
	var removed []string
	for _, name := range append(slices.Sorted(maps.Keys(before)), foldersBefore...) {
		_, still := after[name]
		_, was := before[name]
		if was && !still || !was && !slices.Contains(foldersAfter, name) {
			removed = append(removed, name)
		}
	}
	for _, name := range removed {
		if !slices.Contains(removed, path.Dir(name)) { // else it goes with its folder
			fmt.Fprintf(b, "Node-path: %s\nNode-action: delete\n\n\n", name)
		}
	}
	for _, name := range foldersAfter {
		if !slices.Contains(foldersBefore, name) {
			fmt.Fprintf(b, "Node-path: %s\nNode-kind: dir\nNode-action: add\nProp-content-length: 10\n"+
				"Content-length: 10\n\nPROPS-END\n\n\n", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		f, was := before[name]
		if was && f == after[name] {
			continue
		}
		f = after[name]
		action := "add"
		if was {
			action = "change"
		}
		properties := map[string]string{}
		if f.Executable {
			properties["svn:executable"] = "*"
		}
		if f.Link != "" {
			properties["svn:special"] = "*"
		}
		text, content := encode(properties), contentOf(f)
		fmt.Fprintf(b, "Node-path: %s\nNode-kind: file\nNode-action: %s\nProp-content-length: %d\n"+
			"Text-content-length: %d\nContent-length: %d\n\n%s%s\n\n", name, action, len(text), len(content),
			len(text)+len(content), text, content)
	}
}

// folders are those of files, the outer ones first.
func folders(files map[string]archivetest.File) (all []string) {
	for name := range files {
		for at := path.Dir(name); at != "."; at = path.Dir(at) {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestReal: what every source does, and what the tests with the twin rely on, with Apache and mod_dav_svn.
func TestReal(t *testing.T) {
	s := start(t)
	archivetest.Run(t, archivetest.Kind{Links: true, Tokens: true,
		Make: func(t *testing.T, history []archivetest.Revision) archive.Source {
			return open(t, s.load(t, dump(below(folder, history)))+escape(folder), "")
		}})
	t.Run("Protocol", func(t *testing.T) {
		protocol(t, func(history []archivetest.Revision) string { return s.load(t, dump(history)) })
	})
	t.Run("Copies", func(t *testing.T) { copies(t, s) })
}

// copies: a folder that was replaced by a copy of another one differs, also where all that is in it is as old as
// what was there before. The twin has no copies.
func copies(t *testing.T, s *real) {
	files := map[string]archivetest.File{"a/sub/x": archivetest.Text("ax"), "a/y": archivetest.Text("same"),
		"b/sub/x": archivetest.Text("bx"), "b/y": archivetest.Text("same")}
	text := dump([]archivetest.Revision{{Files: files, Author: "Ada", Message: "1"}})
	properties := encode(map[string]string{"svn:date": "2026-01-01T00:00:00.000000Z"})
	text += fmt.Sprintf("Revision-number: 2\nProp-content-length: %d\nContent-length: %d\n\n%s\n", len(properties),
		len(properties), properties)
	text += "Node-path: a\nNode-action: delete\n\n\n" +
		"Node-path: a\nNode-kind: dir\nNode-action: add\nNode-copyfrom-rev: 1\nNode-copyfrom-path: b\n\n\n"
	src := open(t, s.load(t, text), "")
	got, err := src.Changed(t.Context(), 1, 2)
	if err != nil || !slices.Equal(got, []string{"a/sub/x"}) {
		t.Errorf("%v, %v", got, err)
	}
	archivetest.CheckCheckout(t, src, 2, map[string]archivetest.File{"a/sub/x": archivetest.Text("bx"),
		"a/y": archivetest.Text("same"), "b/sub/x": archivetest.Text("bx"), "b/y": archivetest.Text("same")})
}
