// Package programs makes the layer with the programs that tasks of archives use beside those of
// provided.al2023: Git, Python, jq, find, tar, zip and others. They are packages of Debian at the
// versions of packages.txt, fetched by apt, which compares them with what Debian has signed.
//
//	err := programs.Build(ctx, c, false)
//
// The programs bring their own C library, since that of the runtime is older: each one names the
// loader and the libraries of the layer. Below /opt is
//
//	bin/             programs, and scripts in front of those that need to be told where they are
//	programs/bin/    the programs behind these scripts
//	programs/lib/    libraries, the parts of Git, and the modules of Python
//	programs/certificates.pem
//	programs/packages.txt, programs/licenses/
package programs

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"archivist/infra/toolchain"
)

// zipFile is the layer of a checkout.
func zipFile(c toolchain.Checkout) string { return c.Path("dist", toolchain.TaskPrograms) }

// patcher is the package with the program that names the loader in programs. It is no part of the layer.
const patcher = "patchelf"

// ErrNoApt says that this computer cannot make the layer.
var ErrNoApt = errors.New("apt-get and dpkg-deb are not here: the layer of programs for tasks is made on Debian " +
	"or Ubuntu, or in a container of it; -c taskPrograms=none deploys without the layer")

// Possible reports whether this computer can make the layer: whether it has Debian's tools.
func Possible() bool {
	for _, name := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(name); err != nil {
			return false
		}
	}
	return true
}

// Build makes the layer, as dist/task-programs.zip, unless it is there already with the packages
// of packages.txt, made in the same way. With newest, the newest versions that Debian has are taken, and packages.txt
// is written anew if they are others. Debian keeps no version that has got a security update: in its place the
// newest is taken, and the progress says so. What the layer has is in its own packages.txt. The error is ErrNoApt, or
// says which package Debian does not have any more.
func Build(ctx context.Context, c toolchain.Checkout, newest bool) error {
	if !Possible() {
		return ErrNoApt
	}

	list := c.Path("infra", "programs", "packages.txt")
	if newest {
		if err := update(ctx, c, list); err != nil {
			return err
		}
	}
	packages, err := os.ReadFile(list)
	if err != nil {
		return err
	}

	// A layer that another version of this package has made is made again.
	inputs := c.Path(".local", "programs", "inputs")
	if err := os.MkdirAll(filepath.Dir(inputs), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(inputs, []byte(string(packages)+source+aptSource), 0o644); err != nil {
		return err
	}
	return c.Once(zipFile(c)+".done", inputs, func() error {
		c.Say("making the layer of programs for tasks (Debian's packages) …")
		return pack(ctx, c, string(packages), zipFile(c))
	})
}

// What makes the layer, as text.
var (
	//go:embed programs.go
	source string
	//go:embed apt.go
	aptSource string
)

// update writes packages.txt with the newest versions.
func update(ctx context.Context, c toolchain.Checkout, list string) error {
	a, err := newApt(ctx, c)
	if err != nil {
		return err
	}

	was, err := os.ReadFile(list)
	if err != nil {
		return err
	}

	now, err := a.versions(ctx, string(was), true)
	if err != nil || now == string(was) {
		return err
	}
	c.Say("newer packages: %s is written anew", list)
	return os.WriteFile(list, []byte(now), 0o644)
}

// pack makes a layer of packages, in the form of packages.txt, as a zip file.
func pack(ctx context.Context, c toolchain.Checkout, packages, into string) error {
	a, err := newApt(ctx, c)
	if err != nil {
		return err
	}

	packages, err = a.versions(ctx, packages, false)
	if err != nil {
		return err
	}

	from, err := a.unpack(ctx, packages)
	if err != nil {
		return err
	}

	l := &layer{from: from, to: filepath.Join(a.dir, "layer"), patch: filepath.Join(from, "usr/bin", patcher), c: c}
	if err := l.make(ctx, packages); err != nil {
		return err
	}
	return zipped(l.to, into)
}

// layer is made of unpacked packages.
type layer struct {
	from, to string // folders; to is /opt
	patch    string
	c        toolchain.Checkout
}

// make takes what the layer has out of the packages.
func (l *layer) make(ctx context.Context, packages string) error {
	if err := os.RemoveAll(l.to); err != nil {
		return err
	}

	for _, step := range []func() error{l.libraries, l.programs, l.git, l.python, l.certificates, l.licenses,
		func() error { return l.write("programs/packages.txt", []byte(packages), 0o644) },
		func() error { return l.link(ctx) },
		l.complete,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// libraries takes the libraries by the names under which programs ask for them, without links.
func (l *layer) libraries() error {
	for _, dir := range []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"} {
		entries, err := os.ReadDir(filepath.Join(l.from, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			at := filepath.Join(l.from, dir, e.Name())
			if strings.Contains(e.Name(), ".so") && named(at) == e.Name() {
				if err := l.copy(at, "programs/lib/"+e.Name()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// named is the name of a library by which programs ask for it, or "".
func named(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil || len(names) == 0 {
		return ""
	}
	return names[0]
}

// behind are the programs that need to be told where their files are, with the variables that
// tell them. A task can set each one itself.
var behind = map[string][]string{
	"curl": {"CURL_CA_BUNDLE=/opt/programs/certificates.pem"},
	"git": {"GIT_EXEC_PATH=/opt/programs/lib/git-core", "GIT_TEMPLATE_DIR=/opt/programs/share/git-core/templates",
		"GIT_SSL_CAINFO=/opt/programs/certificates.pem", "GIT_CONFIG_NOSYSTEM=1"},
	"python3": {"SSL_CERT_FILE=/opt/programs/certificates.pem"},
}

// others are programs under another name than that of their file.
var others = map[string]string{"awk": "usr/bin/mawk", "python3": "usr/bin/python3.11", "sh": "bin/bash"}

// programs takes the programs.
func (l *layer) programs() error {
	for _, dir := range []string{"bin", "usr/bin"} {
		entries, err := os.ReadDir(filepath.Join(l.from, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := l.program(filepath.Join(l.from, dir, e.Name()), e.Name()); err != nil {
				return err
			}
		}
	}

	for name, of := range others {
		if err := l.program(filepath.Join(l.from, of), name); err != nil {
			return err
		}
	}

	for name, variables := range behind {
		if err := l.front(name, variables); err != nil {
			return err
		}
	}
	return nil
}

// program takes a program under a name, unless a script is in front of it. A link to what is no part of these packages
// is left out.
func (l *layer) program(at, name string) error {
	info, err := os.Stat(at)
	if err != nil || !info.Mode().IsRegular() || name == patcher || behind[name] != nil {
		return nil
	}
	return l.copy(at, "bin/"+name)
}

// front puts a script in front of a program.
func (l *layer) front(name string, variables []string) error {
	at := cmp.Or(others[name], "usr/bin/"+name)
	of := filepath.Base(at)
	if err := l.copy(filepath.Join(l.from, at), "programs/bin/"+of); err != nil {
		return err
	}

	script := "#!/bin/sh\n"
	for _, v := range variables {
		key, value, _ := strings.Cut(v, "=")
		script += fmt.Sprintf("export %s=\"${%s-%s}\"\n", key, key, value)
	}
	return l.write("bin/"+name, []byte(script+"exec /opt/programs/bin/"+of+" \"$@\"\n"), 0o755)
}

// git takes the parts of Git that are no commands of the program itself. Those in Perl are left out.
func (l *layer) git() error {
	core := filepath.Join(l.from, "usr/lib/git-core")
	git, err := os.Stat(filepath.Join(l.from, "usr/bin/git"))
	if err != nil {
		return err
	}

	err = filepath.WalkDir(core, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() == git.Size() { // the program itself under the name of a command
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil || bytes.HasPrefix(data, []byte("#!/usr/bin/perl")) {
			return err
		}
		return l.copy(path, "programs/lib/git-core/"+relative(core, path))
	})

	if err != nil {
		return err
	}
	return l.folder("usr/share/git-core/templates", "programs/share/git-core/templates", nil)
}

// python takes the modules of Python, but for its own tests and what opens windows.
func (l *layer) python() error {
	left := []string{"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "pydoc_data", "__pycache__"}
	return l.folder("usr/lib/python3.11", "programs/lib/python3.11",
		func(d fs.DirEntry) bool { return d.IsDir() && slices.Contains(left, d.Name()) })
}

// certificates are those of authorities, in one file, in the order of their names.
func (l *layer) certificates() error {
	files, err := filepath.Glob(filepath.Join(l.from, "usr/share/ca-certificates/mozilla/*.crt"))
	if err != nil {
		return err
	}

	slices.Sort(files)
	var all []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		all = append(append(all, bytes.TrimSpace(data)...), '\n')
	}
	return l.write("programs/certificates.pem", all, 0o644)
}

// licenses takes the terms of each package.
func (l *layer) licenses() error {
	docs := filepath.Join(l.from, "usr/share/doc")
	entries, err := os.ReadDir(docs)
	if err != nil {
		return err
	}

	for _, e := range entries {
		at := filepath.Join(docs, e.Name(), "copyright")
		if _, err := os.Stat(at); err != nil || e.Name() == patcher {
			continue // a link to another package's
		}
		if err := l.copy(at, "programs/licenses/"+e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// loader is the name of the program that loads others, from /opt.
const loader = "programs/lib/ld-linux-x86-64.so.2"

// link names the loader and the libraries of the layer in each program.
func (l *layer) link(ctx context.Context) error {
	var programs []string
	err := l.files(func(path string) error {
		if f, err := elf.Open(path); err == nil {
			defer f.Close()
			if f.Section(".interp") != nil && !strings.Contains(path, ".so") {
				programs = append(programs, path)
			}
		}
		return nil
	})

	if err != nil {
		return err
	}

	for _, p := range programs {
		// --force-rpath: also for the libraries that libraries ask for.
		_, err := l.c.Run(ctx, l.c.Root, os.Environ(), l.patch, "--set-interpreter", "/opt/"+loader, "--force-rpath",
			"--set-rpath", "/opt/programs/lib", p)
		if err != nil {
			return err
		}
	}
	return nil
}

// complete says which libraries are missing.
func (l *layer) complete() error {
	missing := map[string]string{}
	err := l.files(func(path string) error {
		f, err := elf.Open(path)
		if err != nil {
			return nil // no program
		}
		defer f.Close()
		names, err := f.ImportedLibraries()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(l.to, "programs/lib", name)); err != nil {
				missing[name] = relative(l.to, path)
			}
		}
		return nil
	})

	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the layer of programs lacks libraries (library: who needs it): %v; add their packages to "+
			"infra/programs/packages.txt", missing)
	}
	return err
}

// files calls f for each file of the layer.
func (l *layer) files(f func(path string) error) error {
	return filepath.WalkDir(l.to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return f(path)
	})
}

// folder copies a folder of the packages, without what is left out.
func (l *layer) folder(from, to string, leave func(fs.DirEntry) bool) error {
	root := filepath.Join(l.from, from)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case leave != nil && leave(d):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		if _, err := os.Stat(path); err != nil { // a link to what is no part of these packages
			return nil
		}
		return l.copy(path, filepath.Join(to, relative(root, path)))
	})
}

// copy copies a file, or the one that a link points to, into the layer.
func (l *layer) copy(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}

	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return l.write(to, data, info.Mode().Perm()|0o600)
}

// write writes a file of the layer.
func (l *layer) write(to string, data []byte, mode fs.FileMode) error {
	at := filepath.Join(l.to, to)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, data, mode)
}

// relative is a path below a folder that has it.
func relative(dir, path string) string { return strings.TrimPrefix(path, dir+"/") }

// zipped makes a zip file of a folder. The same files make the same zip file.
func zipped(dir, into string) error {
	if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil {
		return err
	}

	out, err := os.Create(into)
	if err != nil {
		return err
	}

	z := zip.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: relative(dir, path), Method: zip.Deflate}
		header.SetMode(info.Mode())
		w, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	})
	return errors.Join(err, z.Close(), out.Close())
}
