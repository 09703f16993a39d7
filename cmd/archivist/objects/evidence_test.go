package objects

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// keys writes a pair of keys as OpenSSL does.
func keys(t *testing.T) (private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte, err error) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), name)
		if err == nil {
			err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = write("key.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(pub)
	return private, write("public.pem", "PUBLIC KEY", der, err)
}

// TestSignedReport: a report says what the status says, and is valid with its own key only, as long as no byte of it
// is changed.
func TestSignedReport(t *testing.T) {
	private, public := keys(t)
	_, other := keys(t)
	srv := httptest.NewServer(&listed{pages: [][]v1.Object{{object("<a>", "damaged", "ok"), object("b", "ok", "ok")}}})
	defer srv.Close()
	folder := filepath.Join(t.TempDir(), "2026", "report")
	run := func(line string) (code int, says string) {
		t.Helper()
		c := with(t, srv.URL)
		code = c.Run(line)
		return code, c.Out.String() + c.Err.String()
	}
	if code, says := run("object preservation report " + folder + " --key " + private); code != 0 {
		t.Fatalf("code %d: %s", code, says)
	}
	var report evidence
	text, err := os.ReadFile(filepath.Join(folder, reportJSON))
	if err != nil || json.Unmarshal(text, &report) != nil || report.Total.Objects != 2 || report.Total.Damaged != 1 ||
		report.Collections[0].Collection != "maps" || report.Made == "" {
		t.Errorf("the report is %s, %v", text, err)
	}
	page, err := os.ReadFile(filepath.Join(folder, reportHTML))
	if err != nil || !bytes.Contains(page, []byte("&lt;a&gt;")) || bytes.Contains(page, []byte("<a>")) {
		t.Errorf("the page is %s, %v", page, err)
	}

	if code, says := run("object preservation verify " + folder + " --key " + public); code != 0 {
		t.Errorf("code %d: %s", code, says)
	}
	if code, says := run("object preservation verify " + folder + " --key " + other); code == 0 {
		t.Errorf("with another key: %s", says)
	}
	code, says := run("object preservation report " + folder + " --key " + private)
	if code == 0 || !strings.Contains(says, "exists") {
		t.Errorf("a second report in its place: %d, %s", code, says)
	}
	page[len(page)-2] ^= 1
	if err := os.WriteFile(filepath.Join(folder, reportHTML), page, 0o600); err != nil {
		t.Fatal(err)
	}
	code, says = run("object preservation verify " + folder + " --key " + public)
	if code == 0 || !strings.Contains(says, reportHTML) {
		t.Errorf("with a changed byte: %d, %s", code, says)
	}
}

// TestKeysOfReports: a file without the right key is refused, and it is said how to make one.
func TestKeysOfReports(t *testing.T) {
	private, public := keys(t)
	srv := httptest.NewServer(&listed{pages: [][]v1.Object{{}}})
	defer srv.Close()
	for line, says := range map[string]string{
		"report " + t.TempDir() + "/r --key " + public:         "no private Ed25519 key",
		"report " + t.TempDir() + "/r --key /dev/null":         "openssl genpkey",
		"report " + t.TempDir() + "/r --key /missing":          "no such file",
		"verify " + t.TempDir() + " --key " + private:          "no public Ed25519 key",
		"verify " + t.TempDir() + " --key " + public:           "report.json",
		"report " + t.TempDir() + "/r -c empty --key /missing": "no such file",
	} {
		c := with(t, srv.URL)
		if code := c.Run("object preservation " + line); code == 0 || !strings.Contains(c.Err.String(), says) {
			t.Errorf("%s: %d, %s", line, code, &c.Err)
		}
	}
}
