package localstack

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pin = regexp.MustCompile(`^[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*( ; [a-z_]+ [<>=!]+ '[0-9.]+')?$`)
	sum = regexp.MustCompile(`^--hash=sha256:[0-9a-f]{64}$`)
)

// unpinned returns the logical lines of a requirements file that are not one package at
// one version with a hash.
func unpinned(lines *bufio.Scanner) (out []string, packages int) {
	logical := ""
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		logical += " " + strings.TrimSuffix(line, `\`)
		if strings.HasSuffix(line, `\`) {
			continue
		}
		name, hashes, _ := strings.Cut(logical, " --")
		ok := pin.MatchString(strings.TrimSpace(name)) && hashes != ""
		for _, h := range strings.Fields("--" + hashes) {
			ok = ok && sum.MatchString(h)
		}
		packages++
		if !ok {
			out = append(out, logical)
		}
		logical = ""
	}
	return out, packages
}

// TestPythonPackagesHaveHashes: what is installed is what was looked at, whoever serves it.
func TestPythonPackagesHaveHashes(t *testing.T) {
	files, err := filepath.Glob("*requirements.txt")
	for _, elsewhere := range []string{"*/*requirements.txt", "../infra/*/*requirements.txt"} {
		more, _ := filepath.Glob(elsewhere)
		files = append(files, more...)
	}
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		bad, n := unpinned(bufio.NewScanner(f))
		if len(bad) > 0 || n == 0 {
			t.Errorf("%s: %d packages, without version or hash: %q", name, n, bad)
		}
	}
	const hash = "--hash=sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for line, want := range map[string]int{"a==1 \\\n    " + hash: 0, "a==1 ; python_full_version < '3.11' " + hash: 0,
		"a==1": 1, "a>=1 " + hash: 1, "a==1 --hash=md5:00": 1, "--index-url https://example.org/simple": 1,
		"a @ https://example.org/a.whl " + hash: 1, "-e . " + hash: 1, "a==1 " + hash + " --trusted-host x": 1} {
		if bad, _ := unpinned(bufio.NewScanner(strings.NewReader(line))); len(bad) != want {
			t.Errorf("%q: %q", line, bad)
		}
	}
}

// TestNodePackagesHaveHashes: npm ci compares each package with the lock file's hash.
func TestNodePackagesHaveHashes(t *testing.T) {
	data, err := os.ReadFile("../infra/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		LockfileVersion int
		Packages        map[string]struct {
			Version, Integrity string
			Link               bool
		}
	}
	if err := json.Unmarshal(data, &lock); err != nil || lock.LockfileVersion < 2 || len(lock.Packages) < 2 {
		t.Fatalf("version %d, %d packages, %v", lock.LockfileVersion, len(lock.Packages), err)
	}
	sha512 := regexp.MustCompile(`^sha512-[A-Za-z0-9+/]{86}==$`)
	for name, p := range lock.Packages {
		if name != "" && (p.Version == "" || p.Link || !sha512.MatchString(p.Integrity)) {
			t.Errorf("%s: version %q, integrity %q", name, p.Version, p.Integrity)
		}
	}
}

// TestJavaPackagesHaveHashes: the list has DynamoDB Local itself at the version of the
// POM, and a folder with another file, or with other content, is refused.
func TestJavaPackagesHaveHashes(t *testing.T) {
	data, err := os.ReadFile("dynamodb/pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	var pom struct {
		Dependencies []struct {
			ArtifactID string `xml:"artifactId"`
			Version    string `xml:"version"`
		} `xml:"dependencies>dependency"`
	}
	if err := xml.Unmarshal(data, &pom); err != nil || len(pom.Dependencies) == 0 {
		t.Fatalf("%v, %v", pom, err)
	}
	sums, err := os.ReadFile("dynamodb/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range pom.Dependencies {
		if !strings.Contains(string(sums), "  "+d.ArtifactID+"-"+d.Version+".jar\n") {
			t.Errorf("%s %s has no hash", d.ArtifactID, d.Version)
		}
	}
	dir := t.TempDir()
	lib, list := filepath.Join(dir, "lib"), filepath.Join(dir, "list")
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	write(list, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.jar\n")
	write(filepath.Join(lib, "a.jar"), "")
	if err := verify(lib, list); err != nil {
		t.Error(err)
	}
	write(filepath.Join(lib, "b.jar"), "")
	if verify(lib, list) == nil {
		t.Error("another file is accepted")
	}
	_ = os.Remove(filepath.Join(lib, "b.jar"))
	write(filepath.Join(lib, "a.jar"), "x")
	if verify(lib, list) == nil {
		t.Error("other content is accepted")
	}
}
