package programs

import (
	"archive/zip"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"archivist/infra/toolchain"
)

// sizes that Lambda allows, and what the layer may take of them: the rest is for others.
const (
	largest  = 250 << 20 // of all layers and the function, unzipped
	ourShare = 150 << 20
)

// made makes the layer, and returns it unzipped below opt of a folder that is the root of a
// system in which there is nothing else: no C library, and no shell but that of the layer.
func made(t *testing.T) (root string) {
	t.Helper()
	if !Possible() {
		t.Skip("apt-get and dpkg-deb are not here")
	}

	c := toolchain.Checkout{Root: checkout(t), Log: t.Output()}
	if err := Build(t.Context(), c, false); err != nil {
		t.Fatal(err)
	}

	root = t.TempDir()
	unzip(t, zipFile(c), filepath.Join(root, "opt"))
	for _, dir := range []string{"bin", "dev", "proc", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}

	if err := os.Symlink("/opt/bin/bash", filepath.Join(root, "bin/sh")); err != nil {
		t.Fatal(err)
	}
	return root
}

// checkout is the root of the repository.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// unzip unpacks the layer as Lambda does.
func unzip(t *testing.T, from, into string) {
	t.Helper()
	z, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	size := uint64(0)
	for _, f := range z.File {
		size += f.UncompressedSize64
		at := filepath.Join(into, f.Name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, data, f.Mode()); err != nil {
			t.Fatal(err)
		}
	}

	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the layer: %d files, %.1f MB, zipped %.1f MB", len(z.File), float64(size)/1e6, float64(info.Size())/1e6)
	if size > ourShare {
		t.Errorf("the layer has %d bytes, at most %d of the %d that Lambda allows", size, ourShare, largest)
	}
}

// alone makes root the root of commands. It needs rights that only the superuser has.
func alone(t *testing.T, root string) func(stdin string, argv ...string) (string, error) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can change the root of a process")
	}

	for name, minor := range map[string]int{"null": 3, "urandom": 9} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			t.Skip("devices cannot be made here:", err)
		}
	}

	proc := filepath.Join(root, "proc")
	if err := syscall.Mount("proc", proc, "proc", 0, ""); err != nil {
		t.Skip("/proc cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(proc, 0); err != nil {
			t.Error(err)
		}
	})

	return func(stdin string, argv ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Path, cmd.Err = argv[0], nil // it is looked for in the new root
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		cmd.Dir, cmd.Stdin = "/tmp", strings.NewReader(stdin)
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin", "LANG=C.UTF-8", "HOME=/tmp"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// TestPrograms: each program of the layer does its work where there is nothing but the layer.
func TestPrograms(t *testing.T) {
	root := made(t)
	run := alone(t, root)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /answer", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "42") })
	mux.Handle("GET /git/", http.StripPrefix("/git", http.FileServer(http.Dir(filepath.Join(root, "tmp")))))
	server := httptest.NewUnstartedServer(mux)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // those who refuse it
	server.StartTLS()
	defer server.Close()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(root, "tmp/server.pem"), certificate, 0o644); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct{ name, script, says string }{
		{"bash", `a=(one two); echo "${a[1]^}"; [[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"`, "Two\nb\n"},
		{"find", `mkdir -p f/g; touch f/a.txt f/g/b.txt; find f -name '*.txt' -type f | sort`, "f/a.txt\nf/g/b.txt\n"},
		{"xargs", `printf 'a b\n' | xargs -n 1 echo`, "a\nb\n"},
		{"tar", `echo x > t; for z in gz bz2 xz; do tar caf t.tar.$z t && rm t && tar xf t.tar.$z && cat t; done`,
			"x\nx\nx\n"},
		{"zip", `echo ü > u.txt; zip -q u.zip u.txt && rm u.txt && unzip -q u.zip && cat u.txt`, "ü\n"},
		{"jq", `echo '{"a":[1,2,3]}' | jq -c '.a | map(. * 2)'`, "[2,4,6]\n"},
		{"text", `printf 'b 2\na 1\n' | sort | awk '{print $2}' | sed s/1/one/ | grep -v 2`, "one\n"},
		{"diff", `echo a > d1; echo b > d2; diff d1 d2`, "1c1\n< a\n---\n> b\n"},
		{"make", `printf 'all:\n\t@echo made\n' > Makefile; make -s`, "made\n"},
		{"sha512sum", `printf abc | sha512sum | cut -c1-8`, "ddaf35a1\n"},
		{"curl", `curl -sS --cacert server.pem SERVER/answer`, "42"},
		{"curl refuses who is unknown", `curl -sS SERVER/answer 2>&1 | grep -o 'certificate problem'; true`,
			"certificate problem\n"},
		{"git", `git init -q -b main g1 && cd g1 && echo x > a && git add a &&
			git -c user.name=a -c user.email=a@example.org commit -qm one && git log --format=%s &&
			git submodule status && git stash list && git update-server-info`, "one\n"},
		{"git by HTTPS", `GIT_SSL_CAINFO=server.pem git clone -q SERVER/git/g1/.git g2 && cat g2/a`, "x\n"},
		{"git refuses who is unknown", `git clone -q SERVER/git/g1/.git g3 2>&1 | grep -o 'certificate verif'; true`,
			"certificate verif\n"},
		{"python3", `python3 -c 'import sqlite3, lzma, bz2, zlib, ctypes, hashlib, json, csv, sys, zipfile, uuid, decimal
print(sys.version_info[:2], sqlite3.connect(":memory:").execute("select 6*7").fetchone()[0])'`, "(3, 11) 42\n"},
		{"python3 by HTTPS", `SSL_CERT_FILE=server.pem python3 -c 'import urllib.request as r
print(r.urlopen("SERVER/answer").read())'`, "b'42'\n"},
		{"authorities", `python3 -c 'import ssl
print(ssl.create_default_context().cert_store_stats()["x509_ca"] > 100)'`, "True\n"},
		{"python3 starts itself", `python3 -c 'import subprocess, sys
print(subprocess.check_output([sys.executable, "-c", "print(1)"], text=True))'`, "1\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := run("", "/opt/bin/bash", "-c", strings.ReplaceAll(c.script, "SERVER", server.URL))
			if got != c.says {
				t.Errorf("%q (%v), expected %q", got, err, c.says)
			}
		})
	}
}

// TestSamples: the tasks of the sample archive run where there is nothing but the layer, by the
// runner of a deployment.
func TestSamples(t *testing.T) {
	root := made(t)
	run := alone(t, root)
	c := toolchain.Checkout{Root: checkout(t), Log: t.Output()}
	env := append(os.Environ(), "CGO_ENABLED=0")
	if _, err := c.Run(t.Context(), c.Root, env, "go", "build", "-o", filepath.Join(root, "bin/archivist"),
		"./cmd/archivist"); err != nil {
		t.Fatal(err)
	}

	sample := filepath.Join(root, "archive")
	if err := os.CopyFS(sample, os.DirFS(c.Path("localstack", "archive"))); err != nil {
		t.Fatal(err)
	}

	flow := filepath.Join(sample, "_workflows", "book.yaml")
	text, err := os.ReadFile(flow)
	if err != nil {
		t.Fatal(err)
	}

	text = []byte(strings.ReplaceAll(string(text), "REPOSITORY_URL", "/tmp/book.git"))
	if err := os.WriteFile(flow, text, 0o644); err != nil {
		t.Fatal(err)
	}

	if out, err := run("", "/opt/bin/bash", "-c", `set -e
		git init -q --bare -b main /tmp/book.git; git clone -q /tmp/book.git w 2>/dev/null
		cp -r /archive/chapters w; cd w; git add .
		git -c user.name=a -c user.email=a@example.org commit -qm one; git push -q origin HEAD:main`); err != nil {
		t.Fatal(err, out)
	}

	names := regexp.MustCompile(`(?m)^- name: (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(names) < 4 {
		t.Fatal(names)
	}

	for _, name := range names {
		t.Run(name[1], func(t *testing.T) {
			out, err := run("", "/bin/archivist", "archive", "workflow", "run", name[1], "/archive",
				"--outputs", "/tmp/"+name[1])
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
			t.Log(out)
		})
	}

	if out, err := run("", "/opt/bin/git", "--git-dir", "/tmp/book.git", "log", "--format=%s", "main"); err != nil ||
		!strings.Contains(out, "Catalogue, after revision") {
		t.Error(err, out)
	}
}

// TestVersions: what Debian has not any more is replaced by the newest, and that is said; what it never had is refused.
func TestVersions(t *testing.T) {
	if !Possible() {
		t.Skip("apt-get and dpkg-deb are not here")
	}

	var said bytes.Buffer
	a, err := newApt(t.Context(), toolchain.Checkout{Root: t.TempDir(), Log: &said})
	if err != nil {
		t.Fatal(err)
	}

	newest, err := a.versions(t.Context(), "jq 0.1-1\nzip 0\n", true)
	if err != nil || said.Len() > 0 {
		t.Fatal(err, said.String())
	}

	again, err := a.versions(t.Context(), newest, false)
	if err != nil || again != newest || said.Len() > 0 || strings.Contains(newest, " 0") {
		t.Errorf("%q, %q, %v, %s", newest, again, err, said.String())
	}

	got, err := a.versions(t.Context(), "jq 0.1-1\n"+newest[strings.Index(newest, "zip"):], false)
	if err != nil || got != newest || !strings.Contains(said.String(), "no version 0.1-1 any more") ||
		strings.Contains(said.String(), "zip") {
		t.Errorf("%q, %v, %s", got, err, said.String())
	}

	for packages, says := range map[string]string{
		"no-such-package 1\n": "has no package no-such-package", "jq\n": "expected a name, a space and a version"} {
		if _, err := a.versions(t.Context(), packages, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", packages, err)
		}
	}
}
