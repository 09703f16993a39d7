package jobs

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
)

// rowsOf reads a manifest of the last upload.
func (u *uploads) rowsOf(sum string) (kind checkm.Kind, rows []checkm.Row) {
	m, rows, problems, err := checkm.ReadAll(strings.NewReader(u.text(sum)), checkm.Options{RequireDigest: true})
	if err != nil || len(problems) > 0 {
		u.t.Errorf("%v %v", err, problems)
	}
	return m.Kind, rows
}

// object returns what is preserved of an object manifest: the content of each name. Each row must name a file of this
// upload by its digest.
func (u *uploads) object(sum string) map[string]string {
	out := map[string]string{}
	kind, rows := u.rowsOf(sum)
	if kind != checkm.Object {
		u.t.Errorf("the kind is %s", kind)
	}
	for _, r := range rows {
		if r.URL != "upload://"+u.all[len(u.all)-1].ID+"/"+r.Digest || r.Algorithm != "sha256" {
			u.t.Errorf("%+v", r)
		}
		out[r.Name] = u.text(r.Digest)
	}
	return out
}

// last is the last submission.
func (u *uploads) last() v1.BatchRequest {
	for _, in := range u.taken {
		if in.Payload.Upload == u.all[len(u.all)-1].ID {
			return in
		}
	}
	u.t.Error("nothing was submitted")
	return v1.BatchRequest{}
}

// TestSubmitResumes: a submission of 300 files and one in parts is killed before or after the effect of a request,
// and made again. Nothing is sent twice, all arrives as it is, and there is one batch.
func TestSubmitResumes(t *testing.T) {
	commandtest.EmptyHome(t)
	want := map[string]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		want[fmt.Sprintf("%d/%03d.txt", i%7, i)] = fmt.Sprint("letter ", i/2) // half of them are equal
	}
	large := make([]byte, 10_500) // 11 parts, in four answers
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	want["large.bin"], want["empty"] = string(large), ""
	for name, text := range want {
		commandtest.Write(t, filepath.Join("letters", name), text)
	}

	const line = "submit letters/ -c maps --what Letters"
	u := newUploads(t)
	with(t, u.URL).Want(t, line, 0, "B1\n")
	last := u.requests
	for _, k := range []int{1, 2, 3, last / 9, last / 2, last - 12, last - 3, last} {
		for _, after := range []bool{false, true} {
			u := newUploads(t)
			ctx, cancel := context.WithCancel(t.Context())
			u.kill = cancel
			u.killed = func(n int) (bool, bool) { return n == k && !after, n == k && after }
			c := with(t, u.URL)
			c.Ctx = ctx
			if code := c.Run(line); code != 130 {
				t.Errorf("%d of %d: exit code %d\n%s", k, last, code, &c.Both)
			}
			if k > 3 && k < last && !strings.Contains(c.Err.String(), "run the same command again") {
				t.Errorf("%d of %d: %s", k, last, &c.Err)
			}

			u.settle()
			u.mu.Lock()
			u.killed = nil
			u.mu.Unlock()
			c.Ctx = t.Context()
			c.Want(t, line, 0, "B1\n")
			got := u.object(u.last().Payload.File)
			if !maps.Equal(got, want) || len(u.taken) != 1 || len(u.all) != 1 {
				t.Errorf("%d of %d: %d files, %d submissions, %d uploads", k, last, len(got), len(u.taken), len(u.all))
			}
			if twice := u.twice(); len(twice) > 0 {
				t.Errorf("%d of %d, after %t: sent twice: %d", k, last, after, len(twice))
			}
			cancel()
		}
	}
}

// TestSubmitAgain: the same files are submitted once, unless that is asked for; other flags do not make another batch
// silently.
func TestSubmitAgain(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "letters/a.txt", "a")
	u := newUploads(t)
	c := with(t, u.URL)
	c.Want(t, "submit letters -c maps", 0, "B1\n")
	sent := len(u.puts)
	c.Want(t, "submit letters -c maps", 0, "these files are submitted already, as batch B1; --again")
	c.Want(t, "submit letters -c maps --watch", 0, "batch B1\n100 %  1 of 1 job done: 1 completed\n")
	c.Want(t, "submit letters -c maps --what Letters", 4, "the batch B1 of these files was not submitted with the "+
		"same flags")
	if len(u.taken) != 1 || len(u.puts) != sent {
		t.Errorf("%d submissions, %d requests", len(u.taken), len(u.puts))
	}
	c.Want(t, "submit letters -c maps --again --what Letters", 0, "B2\n")
	c.Want(t, "submit letters -c maps --again", 0, "B3\n")
	c.Want(t, "submit letters -c maps --idempotency-key mine", 0, "B4\n")
	c.Want(t, "submit letters -c maps --idempotency-key mine", 0, "B4\n")

	// One that has ended is not used.
	commandtest.Write(t, "other/a.txt", "a")
	commandtest.Write(t, "other/b.txt", "b")
	u.broken = 1000
	c.Want(t, "submit other -c maps", 7, "run the same command again")
	u.broken = 0
	c.Want(t, "batch discard "+u.all[4].ID+" --reason wrong", 0, "Discarded")
	c.Want(t, "submit other -c maps", 0, "B5\n")
	c.Want(t, "batch uploads -c maps", 0, u.all[4].ID+"\tDiscarded\t0 of 3\t")
}

// TestSubmitAgainResumes: a submission with --again is killed before or after the effect of a request. Before it is
// made again, the upload of the first one is removed, so that a key that follows from a number would begin anew.
// Nothing is sent twice, and there is one more batch. At the end, where it is not known whether there is, the command
// says how to find out.
func TestSubmitAgainResumes(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "letters/a.txt", "a")
	commandtest.Write(t, "letters/b.bin", strings.Repeat("1234567", 1000)) // in parts
	const line = "submit letters -c maps"
	u := newUploads(t)
	with(t, u.URL).Want(t, line, 0, "B1\n")
	first := u.requests
	with(t, u.URL).Want(t, line+" --again", 0, "B2\n")
	opens, last := 2, u.requests-first // the profile is read before
	for k := opens; k <= last; k++ {
		for _, after := range []bool{false, true} {
			u := newUploads(t)
			with(t, u.URL).Want(t, line, 0, "B1\n")
			ctx, cancel := context.WithCancel(t.Context())
			u.kill = cancel
			u.killed = func(n int) (bool, bool) { return n == first+k && !after, n == first+k && after }
			c := with(t, u.URL)
			c.Ctx = ctx
			if code := c.Run(line + " --again"); code != 130 {
				t.Fatalf("%d of %d: exit code %d\n%s", k, last, code, &c.Both)
			}
			cancel()
			u.settle()
			u.mu.Lock()
			u.killed = nil
			u.remove(u.all[0].ID)
			u.mu.Unlock()
			c.Ctx = t.Context()
			next := line + " --again"
			if told := strings.Contains(c.Err.String(), "without --again"); told != (k == last) {
				t.Errorf("%d of %d: %s", k, last, &c.Err)
			} else if told {
				next = line
			}
			c.Want(t, next, 0, "B2\n")
			sent := u.object(u.last().Payload.File)
			for of, n := range u.puts { // also those of the first submission
				if n > 2 {
					t.Errorf("%d of %d, after %t: %s is sent %d times", k, last, after, of, n-1)
				}
			}
			if len(u.taken) != 2 || len(u.all) != 2 || len(sent) != 2 {
				t.Errorf("%d of %d, after %t: %d submissions, %d uploads", k, last, after, len(u.taken), len(u.all))
			}
		}
	}
}

// TestSubmitFailures: what is wrong with a file is said with its name, and nothing is submitted; a storage that fails
// for a while is no failure.
func TestSubmitFailures(t *testing.T) {
	home := commandtest.EmptyHome(t)
	large := strings.Repeat("1234567", 1000)
	change := func(name, text string) func(string) {
		return func(string) {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	for name, k := range map[string]struct {
		prepare func(u *uploads)
		code    int
		says    string
		sent    bool
	}{
		"expired": {func(u *uploads) { u.expired = 2 }, 0, "B1", true},
		"always expired": {func(u *uploads) { u.expired = 1000 }, 7, "answers 403 Forbidden (AccessDenied), 4 times",
			false},
		"busy": {func(u *uploads) { u.broken = 5 }, 0, "B1", true},
		"down": {func(u *uploads) { u.broken = 1000 }, 7, "answers 503 Service Unavailable (SlowDown)",
			false},
		"quota": {func(u *uploads) { u.refused = "the collection maps has 1.0 TiB of 1.0 TiB in uploads" }, 4,
			"the collection maps has 1.0 TiB of 1.0 TiB in uploads", false},
		// The small file is sent before the large one, and its parts in turn.
		"grown": {func(u *uploads) { u.onPut = change("letters/b.bin", large+"8") }, 4,
			`"letters/b.bin" has changed`, false},
		"replaced": {func(u *uploads) { u.onPut = change("letters/b.bin", large[1:]+"8") }, 4,
			`"letters/b.bin" has changed`, false},
		"vanished": {func(u *uploads) { u.onPut = func(string) { os.Remove("letters/b.bin") } }, 4,
			`"letters/b.bin" is not there`, false},
	} {
		u := newUploads(t)
		commandtest.Write(t, filepath.Join(home, "letters/a.txt"), "a")
		commandtest.Write(t, filepath.Join(home, "letters/b.bin"), large)
		past := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes("letters/b.bin", past, past); err != nil {
			t.Fatal(err)
		}
		k.prepare(u)
		c := with(t, u.URL)
		if code := c.Run("submit letters -c maps --parallel 1"); code != k.code || !strings.Contains(c.Both.String(),
			k.says) ||
			(len(u.taken) == 1) != k.sent {
			t.Errorf("%s: exit code %d, %d submissions\n%s", name, code, len(u.taken), &c.Both)
		}
		if strings.Contains(c.Both.String(), "/storage/") {
			t.Errorf("%s: the URL of a request, which is a secret, is shown:\n%s", name, &c.Both)
		}
	}
}

// TestSubmitChangedContent: a file whose content has changed, but neither its size nor its time, is never in the
// storage as a whole.
func TestSubmitChangedContent(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "a.txt", "Monday")
	info, err := os.Stat("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	u := newUploads(t)
	u.killed = func(int) (bool, bool) {
		if len(u.all) == 1 { // the digest is computed
			commandtest.Write(t, "a.txt", "Sunday")
			if err := os.Chtimes("a.txt", info.ModTime(), info.ModTime()); err != nil {
				t.Error(err)
			}
		}
		return false, false
	}
	c := with(t, u.URL)
	c.Want(t, "submit a.txt -c maps", 4, `"a.txt" has changed since it was listed`)
	if len(u.puts) > 0 || len(u.taken) > 0 {
		t.Errorf("%v %v", u.puts, u.taken)
	}
}

// TestSubmitObjects: what becomes an object, and how it is submitted.
func TestSubmitObjects(t *testing.T) {
	commandtest.EmptyHome(t)
	for name, text := range map[string]string{"in/a/1.txt": "1", "in/a/b/2.txt": "2", "in/c.txt": "3",
		"files/c.txt":  "3",
		"files/d.html": "<html>", "page": "<html>",
		"x.checkm":   objectProfile + prefixes + fileFields + goodRow + "#%eof\n",
		"zips/a.zip": "PK", "zips/b.tar": "T"} {
		commandtest.Write(t, name, text)
	}
	u := newUploads(t)
	submit := func(line string) v1.BatchRequest {
		t.Helper()
		c := with(t, u.URL)
		c.Want(t, "submit "+line+" -c maps", 0, "")
		return u.last()
	}

	got := submit("files/c.txt in/a/1.txt --local-id l --what W").Payload
	if files := u.object(got.File); got.Type != "object-manifest" || !maps.Equal(files, map[string]string{"c.txt": "3",
		"1.txt": "1"}) {
		t.Errorf("%+v %v", got, files)
	}

	got = submit("files/c.txt --filename other.txt").Payload
	if got.Type != "" || got.Filename != "other.txt" || u.text(got.File) != "3" || u.all[len(u.all)-1].Files != 1 {
		t.Errorf("%+v", got)
	}
	got = submit("page").Payload
	if got.Type != "file" || got.Filename != "page" {
		t.Errorf("%+v", got)
	}
	got = submit("x.checkm").Payload
	if got.Type != "object-manifest" || u.text(got.File) == "" {
		t.Errorf("%+v", got)
	}
	got = submit("x.checkm --type file").Payload
	if got.Type != "file" || got.Filename != "x.checkm" {
		t.Errorf("%+v", got)
	}

	// Folders and files: each is an object manifest.
	got = submit("in --each").Payload
	kind, rows := u.rowsOf(got.File)
	if got.Type != "batch-manifest" || kind != checkm.Batch || len(rows) != 2 ||
		!slices.Equal(rows[0].Local, []string{"a"}) || !slices.Equal(rows[1].Local, []string{"c.txt"}) ||
		!maps.Equal(u.object(rows[0].Digest), map[string]string{"1.txt": "1", "b/2.txt": "2"}) ||
		!maps.Equal(u.object(rows[1].Digest), map[string]string{"c.txt": "3"}) {
		t.Errorf("%+v %v %+v", got, kind, rows)
	}

	// Files only: each row is the file.
	got = submit("files in/a/1.txt --each").Payload
	kind, rows = u.rowsOf(got.File)
	if got.Type != "single-file-batch-manifest" || kind != checkm.SingleFileBatch || len(rows) != 3 ||
		u.text(rows[1].Digest) != "<html>" || rows[1].Name != "d.html" || rows[1].Local[0] != "d.html" {
		t.Errorf("%+v %v %+v", got, kind, rows)
	}
	got = submit("zips --each --type container").Payload
	if got.Type != "container-batch-manifest" {
		t.Errorf("%+v", got)
	}
}

// oddities makes folders with all that may be wrong.
func oddities(t *testing.T) {
	t.Helper()
	commandtest.EmptyHome(t)
	for _, name := range []string{"good/a", "bad/a", "bad/x\ny", "bad/b%20c", "bad/.DS_Store", "semi/a;b", "semi/c",
		"zips/a.zip",
		"good/sub/a", "odd/a", "odd/Thumbs.db", "case/a.txt", "case/A.txt"} {
		commandtest.Write(t, name, "text "+name)
	}
	for from, to := range map[string]string{"../good/a": "bad/link", "good": "tolink"} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"empty", "odd/none/none"} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	commandtest.Write(t, "bad.checkm", "a text")
	commandtest.Write(t, "pct/a%20b/x", "the manifest cannot name the folder")
}

// TestSubmitRefused: what cannot be preserved is refused before anything is sent, with all that is wrong.
func TestSubmitRefused(t *testing.T) {
	oddities(t)
	for line, says := range map[string][]string{
		"bad": {`"bad/link" is a symbolic link`, "has the character U+000A",
			`"b%20c" has %20`, "there are 3 problems; nothing was sent"},
		"empty":                         {"there are no files", "1 folder without files"},
		"good/a good/sub/a":             {`another file is named "a", too`},
		"good good/a":                   {`"good" is a folder`},
		"semi --each":                   {`the local id "a;b" has a ";"`},
		"good/a good/sub/a --each":      {`two objects would have the local id "a"`},
		"zips --each":                   {"--type container"},
		"htps://example.org/a":          {"is not an http(s) or s3 URL"},
		"https://example.org/a good":    {"give one URL"},
		"https://example.org/a --again": {"are for files of this computer"},
		"gone":                          {`there is no file or folder "gone" here`},
		"good --each --local-id x":      {"--local-id cannot be used"},
		"good --each --ark ark:/99999/fk4tq65d6k":                   {"--ark cannot be used"},
		"good --each --what x":                                      {"--what cannot be used"},
		"good --each --digest md5:00000000000000000000000000000000": {"are for one file"},
		"good --filename x":                                         {"are for one file"},
		"pct --each":                                                {`has %20`},
		"good --type container":                                     {"--type container is for one file"},
		"good --each --type container":                              {"--type container cannot be used"},
		"good --manifest bad.checkm":                                {"--manifest is for content of a URL"},
		"good --exclude [":                                          {"is not a pattern"},
		"good --parallel 0":                                         {"--parallel"},
		"bad.checkm": {
			"the manifest is rejected and nothing was submitted",
		},
		"good/a --digest sha256:12":      {"--digest"},
		"good --exclude a --exclude sub": {"there are no files"},
	} {
		u := newUploads(t)
		c := with(t, u.URL)
		code := c.Run("submit " + line + " -c maps")
		for _, s := range says {
			if code != 2 || !strings.Contains(c.Both.String(), s) || len(u.all) > 0 {
				t.Errorf("%s: exit code %d, %d uploads; want %q\n%s", line, code, len(u.all), s, &c.Both)
			}
		}
	}
}

// TestSubmitWarns: what the depositor should know of files that are submitted all the same.
func TestSubmitWarns(t *testing.T) {
	oddities(t)
	for line, says := range map[string]string{
		"tolink":                               "", // a link that is named is followed
		"odd":                                  "2 folders without files cannot be preserved",
		"odd --exclude none --exclude nothing": "nothing matches --exclude nothing",
		"odd --exclude *.db":                   "2 folders without files",
		"case":                                 "1 file is of the name of another one in all but case",
		"bad --exclude link --exclude x* --exclude b%* ": "1 file is made by a file manager, e.g. bad/.DS_Store; " +
			"--exclude .DS_Store",
	} {
		u := newUploads(t)
		c := with(t, u.URL)
		if code := c.Run("submit " + line + " -c maps"); code != 0 || !strings.Contains(c.Err.String(), says) ||
			len(u.taken) != 1 {
			t.Errorf("%s: exit code %d\n%s", line, code, &c.Both)
		}
	}
}

// TestSubmitUnreadable: a file that cannot be read is named, and nothing is sent. Who may read everything does not
// see it.
func TestSubmitUnreadable(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "letters/a.txt", "a")
	if err := os.Chmod("letters/a.txt", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile("letters/a.txt"); err == nil {
		t.Skip("this user may read everything")
	}
	u := newUploads(t)
	c := with(t, u.URL)
	c.Want(t, "submit letters -c maps", 2, `"letters/a.txt" cannot be read: you have no permission; nothing was sent`)
	if len(u.all) > 0 {
		t.Errorf("%+v", u.all)
	}
}

// TestSubmitFilesDryRun: it prints the manifests, and sends nothing.
func TestSubmitFilesDryRun(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "in/a/1.txt", "1")
	commandtest.Write(t, "in/b.txt", "2")
	u := newUploads(t)
	c := with(t, u.URL)
	c.Want(t, "submit in -c maps --dry-run", 0, "makes\tv1 of a new object\n")
	text := c.Out.String()
	if !strings.Contains(text, " | 1 |  | a/1.txt |") || !strings.Contains(text, "files\t2, 2 B") {
		t.Error(text)
	}
	_, manifest, _ := bytes.Cut(c.Out.Bytes(), []byte(":\n#%"))
	m, rows, problems, err := checkm.ReadAll(strings.NewReader("#%"+string(manifest)), checkm.Options{})
	if m.Kind != checkm.Object || len(rows) != 2 || len(problems) > 0 || err != nil {
		t.Errorf("%+v %v %v %v", m, rows, problems, err)
	}
	c.Want(t, "submit in -c maps --each --dry-run", 0, "makes\t2 objects\n")
	c.Want(t, "submit in -c maps --each --dry-run --json files,bytes,manifest", 0, `"manifest": "batch"`)
	if len(u.all) > 0 {
		t.Errorf("%+v", u.all)
	}
}

// TestSubmitProgress: a terminal shows how far it is, in one line, of which nothing is left.
func TestSubmitProgress(t *testing.T) {
	commandtest.EmptyHome(t)
	commandtest.Write(t, "letters/a.txt", "a")
	u := newUploads(t)
	c := with(t, u.URL)
	c.Width = 80
	c.Want(t, "submit letters -c maps", 0, "%  digests")
	if !strings.Contains(c.Both.String(), "  0 %  0 of 2 files sent") || strings.Contains(c.Seen(), "sent") {
		t.Errorf("%q", &c.Both)
	}
}
