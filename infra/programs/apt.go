package programs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"archivist/infra/toolchain"
)

// apt is Debian's package manager with a state of its own: nothing of this computer changes, and
// what is installed here does not matter. Where packages come from, and who signs them, is as this
// computer's apt has it.
type apt struct {
	c   toolchain.Checkout
	dir string
	env []string
}

// newApt asks for the newest lists of packages.
func newApt(ctx context.Context, c toolchain.Checkout) (*apt, error) {
	a := &apt{c: c, dir: c.Path(".local", "programs")}
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "packages"} {
		if err := os.MkdirAll(filepath.Join(a.dir, dir), 0o755); err != nil {
			return nil, err
		}
	}

	config := filepath.Join(a.dir, "apt.conf")
	text := fmt.Sprintf("Dir::State %q;\nDir::State::lists %q;\nDir::State::status %q;\nDir::Cache %q;\n"+
		"APT::Architecture %q;\nAPT::Architectures {%q;};\nAcquire::Retries \"3\";\n"+
		"APT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n",
		a.dir, filepath.Join(a.dir, "lists"), filepath.Join(a.dir, "status"), filepath.Join(a.dir, "cache"),
		machine, machine)

	for file, text := range map[string]string{config: text, filepath.Join(a.dir, "status"): ""} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}

	a.env = append(os.Environ(), "APT_CONFIG="+config, "LC_ALL=C.UTF-8")
	_, err := c.Run(ctx, c.Root, a.env, "apt-get", "-q", "update")
	return a, err
}

// available are the lines of a table of versions: name, version, where it is from. The newest is the first.
var available = regexp.MustCompile(`(?m)^ *(\S+) \| +(\S+) \| .* Packages$`)

// versions are packages, in the form of packages.txt, with the versions that Debian has: the same ones as far as it has
// them and newest is false, otherwise the newest ones.
func (a *apt) versions(ctx context.Context, packages string, newest bool) (string, error) {
	var names []string
	wanted := map[string]string{}
	for line := range strings.Lines(packages) {
		name, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return "", fmt.Errorf("packages.txt: found %q; expected a name, a space and a version", line)
		}
		names = append(names, name)
		wanted[name] = version
	}

	out, err := a.c.Run(ctx, a.c.Root, a.env, "apt-cache", append([]string{"madison"}, names...)...)
	if err != nil {
		return "", err
	}

	has := map[string][]string{}
	for _, found := range available.FindAllStringSubmatch(out, -1) {
		has[found[1]] = append(has[found[1]], found[2])
	}

	var all strings.Builder
	for _, name := range names {
		version := wanted[name]
		switch {
		case len(has[name]) == 0:
			return "", fmt.Errorf("packages.txt: Debian has no package %s; take it out, or name "+
				"the one that has its place", name)
		case newest:
			version = has[name][0]
		case !slices.Contains(has[name], version):
			version = has[name][0]
			a.c.Say("%s: Debian has no version %s any more, %s is taken", name, wanted[name], version)
		}
		fmt.Fprintf(&all, "%s %s\n", name, version)
	}
	return all.String(), nil
}

// unpack fetches packages, in the form of packages.txt, and unpacks them into a folder of their own.
func (a *apt) unpack(ctx context.Context, packages string) (string, error) {
	var names []string
	for line := range strings.Lines(packages) {
		names = append(names, strings.Replace(strings.TrimSpace(line), " ", "=", 1))
	}

	debs, root := filepath.Join(a.dir, "packages"), filepath.Join(a.dir, "root")
	for _, dir := range []string{debs, root} {
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", err
		}
	}

	if _, err := a.c.Run(ctx, debs, a.env, "apt-get", append([]string{"-q", "download"}, names...)...); err != nil {
		return "", err
	}

	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}

	if len(files) != len(names) {
		return "", fmt.Errorf("%d packages were asked for, %d came: %v", len(names), len(files), files)
	}

	for _, f := range files {
		if _, err := a.c.Run(ctx, debs, a.env, "dpkg-deb", "-x", f, root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// machine is the architecture of the layer, as Debian calls it. The runner of tasks has it, too.
const machine = "amd64"
