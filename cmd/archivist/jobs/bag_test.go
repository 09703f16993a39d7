package jobs

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
)

// delivered is a valid bag.
var delivered = [][2]string{
	{"delivery/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"},
	{"delivery/manifest-sha256.txt",
		"220e610c1e7a7cb55b1bf9c47571fdd866df2fbd603713c3157f5506ad01a495  data/map.txt\n"},
	{"delivery/data/map.txt", "A map.\n"},
}

// tarOf and zipOf pack files.
func tarOf(t *testing.T, files [][2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(f[1]))
	}
	_ = w.Close()
	return b.Bytes()
}

func zipOf(t *testing.T, files [][2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		to, err := w.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = to.Write([]byte(f[1]))
	}
	_ = w.Close()
	return b.Bytes()
}

// TestBagCheck: a bag is checked as it comes: packed, at a URL, or with what a deposit of it would be refused for.
func TestBagCheck(t *testing.T) {
	commandtest.EmptyHome(t)
	changed := append(append([][2]string{}, delivered[:2]...), [2]string{"delivery/data/map.txt", "Another.\n"})
	outside := append(append([][2]string{}, delivered...), [2]string{"../map.txt", "A map.\n"})
	packed := map[string][]byte{"a.tar": tarOf(t, delivered), "a.zip": zipOf(t, delivered),
		"changed.tar": tarOf(t, changed), "outside.zip": zipOf(t, outside), "cut.tar": tarOf(t, delivered)[:1700],
		"text": []byte("a text")}
	for name, data := range packed {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := packed[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	defer source.Close()

	for line, want := range map[string]struct {
		code int
		says string
	}{
		"a.tar":       {0, "valid: BagIt 1.0 with 1 file"},
		"a.zip":       {0, "valid: BagIt 1.0 with 1 file"},
		"changed.tar": {1, "data/map.txt: its sha256 is"},
		"outside.zip": {2, `the entry "../map.txt" of the container`},
		"cut.tar":     {2, "it was cut"},
		"text":        {2, "it is no folder, and no zip, tar"},
		"none":        {2, "there is no such folder or file"},
	} {
		for _, at := range []string{"", source.URL + "/"} {
			if at != "" && line == "none" {
				want.says = "the server answered 404 Not Found"
			}
			c := with(t, "http://127.0.0.1:1")
			code := c.Run("batch check-bag " + at + line)
			if got := c.Out.String() + c.Err.String(); code != want.code || !strings.Contains(got, want.says) {
				t.Errorf("%s%s: exit code %d: %s; expected %d and %q", at, line, code, got, want.code, want.says)
			}
		}
	}
}
