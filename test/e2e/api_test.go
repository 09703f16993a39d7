package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"archivist/infra/toolchain"
	"archivist/test/browser"
)

// apiTools are installed once for all tests of this file.
var apiTools = sync.OnceValues(func() (toolchain.APITools, error) {
	return stack.InstallAPITools(context.Background())
})

func tools(t *testing.T) toolchain.APITools {
	t.Helper()
	tools, err := apiTools()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// runs runs a program and returns its standard output.
func runs(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", filepath.Base(program), err, out, stderr.String())
	}
	return string(out) + stderr.String()
}

// description saves the OpenAPI document of the deployment in a new folder.
func description(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), served(t, "/openapi.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// served is what the deployment answers a browser at a path. The gateway decodes bytes
// only for a client that says what it accepts.
func served(t *testing.T, path string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, out.APIURL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "*/*")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(path, resp.Status, err)
	}
	return data
}

// TestDescriptionIsValid: two judges that are not ours find nothing to say about the
// OpenAPI document of the deployment.
func TestDescriptionIsValid(t *testing.T) {
	begin(t)
	is, dir := tools(t), description(t)
	runs(t, dir, is.Validator, "openapi.json")
	if said := runs(t, dir, is.Linter, "lint", "openapi.json"); strings.Contains(said, "warning.") ||
		!strings.Contains(said, "is valid") {
		t.Error(said)
	}
}

// TestGeneratedClient: a client that is made from the description alone submits, waits,
// and reads the receipt and the object.
func TestGeneratedClient(t *testing.T) {
	begin(t)
	is, dir := tools(t), description(t)
	// The generator knows no XML; it is told to take it as text.
	const config = "post_hooks: []\ncontent_type_overrides:\n  application/xml: text/plain\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	said := runs(t, dir, is.Generator, "generate", "--path", "openapi.json", "--config", "config.yml",
		"--meta", "none", "--output-path", "generated")
	if strings.Contains(strings.ToLower(said), "warning") {
		t.Errorf("the generator left something out: %s", said)
	}
	src := newSource(t)
	const text = "Dear archive"
	src.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, text)
	})
	script, err := os.ReadFile("client.py")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "client.py"), script, 0o644); err != nil {
		t.Fatal(err)
	}
	var got struct {
		ARK, Title        string
		Version, Versions int
		Files             map[string]string
	}
	answer := runs(t, dir, is.Python, "client.py", out.APIURL, src.URL+"/letter.txt")
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	sum := sha256.Sum256([]byte(text))
	if !strings.HasPrefix(got.ARK, "ark:/99999/") || got.Version != 1 || got.Versions != 1 || got.Title != "A letter" ||
		got.Files["producer/letter.txt"] != hex.EncodeToString(sum[:]) {
		t.Errorf("the client got %+v", got)
	}
}

// The npm package of the renderer, and the digest of its tarball in the registry.
const (
	rendererPackage   = "@scalar/api-reference@1.72.1"
	rendererIntegrity = "XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow=="
)

// TestRendererIsThePackages: the script that the deployment serves, through the gateway,
// is byte for byte that of the npm package.
func TestRendererIsThePackages(t *testing.T) {
	begin(t)
	dir := t.TempDir()
	name := strings.TrimSpace(runs(t, dir, "npm", "pack", "--silent", rendererPackage))
	data, err := os.ReadFile(filepath.Join(dir, strings.Fields(name)[0]))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(data); base64.StdEncoding.EncodeToString(sum[:]) != rendererIntegrity {
		t.Fatal("the tarball is another one")
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unpacked); ; {
		file, err := files.Next()
		if err != nil {
			t.Fatal("the package has no dist/browser/standalone.js:", err)
		}
		if file.Name != "package/dist/browser/standalone.js" {
			continue
		}
		want, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if got := served(t, "/docs/scalar-1.72.1.js"); !bytes.Equal(got, want) {
			t.Errorf("%d bytes are served, the package has %d", len(got), len(want))
		}
		return
	}
}

// TestPageInBrowser: the page at /docs shows each operation, in narrow and wide windows,
// light and dark, asks nobody else for anything, and logs no error.
func TestPageInBrowser(t *testing.T) {
	begin(t)
	for _, window := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {1280, "dark"}, {390, "light"}, {390, "dark"}} {
		ctx, wrong := browser.Open(t, tools(t), soon, out.APIURL+"/", window.width, window.scheme)
		shown := func(text string) {
			t.Helper()
			quoted, _ := json.Marshal(text)
			there := fmt.Sprintf(`document.body.innerText.includes(%s)`, quoted)
			_, err := chromedp.Run(ctx, chromedp.Poll[bool](there, chromedp.WithPollingTimeout(soon)))
			if err != nil {
				t.Fatalf("%d: the page does not show %q: %v; %q", window.width, text, err, wrong())
			}
		}
		if err := chromedp.Do(ctx, chromedp.Navigate(out.APIURL+"/docs#tag/batches/POST/v1/batches")); err != nil {
			t.Fatal(err)
		}
		shown("Submit a batch")
		shown("The collection that the objects belong to.")
		press := func(what string) {
			t.Helper()
			if _, err := chromedp.Run(ctx, chromedp.Evaluate[any](what+`.click()`)); err != nil {
				t.Fatal(err)
			}
		}
		press(`document.querySelector('button.property-toggle')`) // of the body's first object
		shown("The http or https URL of the payload.")
		press(`[...document.querySelectorAll('button')].find(b => b.innerText.startsWith('409'))`)
		shown("The type of the problem: a stable name for programs.")
		shown(out.APIURL) // of the example
		wide, err := chromedp.Run(ctx, chromedp.Evaluate[int64](`document.documentElement.scrollWidth`))
		if err != nil || wide > window.width {
			t.Errorf("a window of %d pixels has a page of %d; %v", window.width, wide, err)
		}
		if what := wrong(); len(what) > 0 {
			t.Errorf("%d: %q", window.width, what)
		}
		picture(t, ctx, fmt.Sprint(window.width, "-", window.scheme))
	}
}

// picture saves what the window shows where its tester looks.
func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stack.Path(".local", "api", "docs-"+name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}
