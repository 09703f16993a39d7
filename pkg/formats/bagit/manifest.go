package bagit

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// algorithms are those that can be verified (RFC 8493, section 2.4), by their names in names of manifests.
var algorithms = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384,
	"sha512": sha512.New,
}

// manifestNames matches names of manifests: of the payload, and of tag files.
var manifestNames = regexp.MustCompile(`^(tag)?manifest-([a-zA-Z0-9-]+)\.txt$`)

// Asked are the algorithms of digests that the manifests of a bag need, by the names of its files.
func Asked(names []string) (all []string) {
	for _, name := range names {
		m := manifestNames.FindStringSubmatch(path.Base(name))
		if m == nil {
			continue
		}
		algorithm := strings.ToLower(strings.ReplaceAll(m[2], "-", ""))
		if algorithms[algorithm] != nil && !slices.Contains(all, algorithm) {
			all = append(all, algorithm)
		}
	}
	return all
}

// Root is the folder of the bag that files are, with a slash at its end, "" for none: it has bagit.txt, and all files
// are in it. is says whether there is one.
func Root(names func(func(name string) bool)) (root string, is bool) {
	top, mixed, first := "", false, true
	var found []string
	names(func(name string) bool {
		folder, _, in := strings.Cut(name, "/")
		if !in {
			folder = ""
		}
		mixed = mixed || !first && folder != top
		top, first = folder, false
		if path.Base(name) == declarationFile && strings.Count(name, "/") < 2 {
			found = append(found, name)
		}
		return true
	})
	if slices.Contains(found, declarationFile) {
		return "", true
	}
	if !mixed && len(found) == 1 {
		return top + "/", true
	}
	return "", false
}

// manifests reads all manifests.
func (c *check) manifests() error {
	for _, name := range slices.Sorted(maps.Keys(c.present)) {
		m := manifestNames.FindStringSubmatch(name)
		if m == nil {
			continue
		}

		algorithm, ofTags := strings.ToLower(strings.ReplaceAll(m[2], "-", "")), m[1] != ""
		if algorithms[algorithm] == nil {
			c.warning(name, 0, "digests of %s are not verified: it is not known", m[2])
			continue
		}

		if !ofTags {
			c.Algorithms = append(c.Algorithms, algorithm)
			c.listed[algorithm] = map[string]bool{}
		}
		if err := c.manifest(name, algorithm, ofTags); err != nil {
			return err
		}
	}

	if len(c.Algorithms) == 0 {
		c.problem("", 0, "there is no manifest of the payload whose digests can be verified")
	}
	return nil
}

// entries matches the lines of a manifest: a digest, white space, and a path. Tools of md5sum's kind write a star
// before the path.
var entries = regexp.MustCompile(`^([0-9a-fA-F]+)[ \t]+(\*?)(.*)$`)

// manifest reads one manifest.
func (c *check) manifest(name, algorithm string, ofTags bool) error {
	lines, _, err := c.text(name)
	for n, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}

		m := entries.FindStringSubmatch(line)
		if m == nil || len(m[1]) != 2*algorithms[algorithm]().Size() {
			c.problem(name, n+1, "found %q; expected a digest of %s, a blank, and a path", line, algorithm)
			continue
		}

		file, at := m[3], Problem{File: name, Line: n + 1}
		if m[2] != "" {
			c.warning(name, n+1, "the path begins with a star, as md5sum writes it; other tools will not find the file")
		}
		if strings.HasPrefix(file, "./") {
			c.warning(name, n+1, "the path begins with ./, which other tools will not find")
		}

		file, why := c.path(file, ofTags)
		if why != "" {
			c.problem(name, n+1, "%q %s", m[3], why)
			continue
		}
		c.list(file, algorithm, ofTags, said{strings.ToLower(m[1]), at})
	}
	return err
}

// list notes an entry of a manifest. Since version 1.0 a path is there once (RFC 8493, section 2.1.3).
func (c *check) list(file, algorithm string, ofTags bool, is said) {
	before, twice := c.digests[file][algorithm]
	switch {
	case twice && before.digest != is.digest:
		c.problem(is.at.File, is.at.Line, "%s has another digest in line %d", file, before.at.Line)
		return
	case twice && c.version.atLeast(1, 0):
		c.problem(is.at.File, is.at.Line, "%s is in line %d already", file, before.at.Line)
		return
	case twice:
		c.warning(is.at.File, is.at.Line, "%s is in line %d already", file, before.at.Line)
		return
	}

	if c.digests[file] == nil {
		c.digests[file] = map[string]said{}
	}
	c.digests[file][algorithm] = is
	if !ofTags {
		c.listed[algorithm][file] = true
		return
	}

	if _, there := c.present[file]; !there {
		c.problem(file, 0, "it is not there; %s lists it in line %d", is.at.File, is.at.Line)
	}
}

// path is the path of a file as it is in the bag, and why it cannot be one.
func (c *check) path(text string, ofTags bool) (file, why string) {
	file = strings.TrimPrefix(text, "./")
	if _, there := c.present[file]; !there || c.version.atLeast(1, 0) {
		file = decoded.Replace(file)
	}

	switch {
	case !fs.ValidPath(file) || outside.MatchString(file):
		return "", "leads out of the bag"
	case ofTags && strings.HasPrefix(file, "tagmanifest-"):
		return "", "is a manifest of tag files, which none lists"
	case ofTags == strings.HasPrefix(file, payload+"/"):
		return "", map[bool]string{true: "is no tag file", false: "is not below " + payload + "/"}[ofTags]
	}
	return file, ""
}

// outside matches paths that some system reads as one outside of the folder: of a home, a drive, a variable of Windows,
// or with its separators; and those that no system has.
var outside = regexp.MustCompile(`^~|^[A-Za-z]:|^%[A-Za-z]+%|[\\\x00]`)

// decoded undoes the encoding of line ends in paths, and of what would look like one (RFC 8493, section 2.1.3).
var decoded = strings.NewReplacer("%0A", "\n", "%0a", "\n", "%0D", "\r", "%0d", "\r", "%25", "%")

// fold is the same for names that some systems do not tell apart.
func fold(name string) string { return cases.Fold().String(norm.NFC.String(name)) }

// fetchLine matches a line of fetch.txt: a URL, a length or "-", and a path (RFC 8493, section 2.2.3).
var fetchLine = regexp.MustCompile(`^(\S+)[ \t]+(\d+|-)[ \t]+(.+)$`)

// fetch reads fetch.txt. What it names must be listed in each manifest, and is not there only until it is fetched.
func (c *check) fetch() error {
	lines, _, err := c.text(fetchFile)
	for n, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}

		m := fetchLine.FindStringSubmatch(line)
		if m == nil {
			c.problem(fetchFile, n+1, "found %q; expected a URL, a length or -, and a path", line)
			continue
		}

		u, badURL := url.Parse(m[1])
		size, badSize := int64(-1), error(nil)
		if m[2] != "-" {
			size, badSize = strconv.ParseInt(m[2], 10, 64)
		}
		file, why := c.path(m[3], false)
		switch {
		case why != "":
			c.problem(fetchFile, n+1, "%q %s", m[3], why)
		case badURL != nil || u.Scheme == "":
			c.problem(fetchFile, n+1, "found %q; expected a URL", m[1])
		case badSize != nil:
			c.problem(fetchFile, n+1, "found the length %s; expected a number of bytes, or -", m[2])
		case len(c.digests[file]) == 0:
			c.problem(fetchFile, n+1, "no manifest lists %s", file)
		case c.fetched[file] > 0:
			c.warning(fetchFile, n+1, "%s is in line %d already, which counts", file, c.fetched[file])
		default:
			c.fetched[file] = n + 1
			c.fetches = append(c.fetches, Fetch{Path: file, URL: m[1], Size: size, Line: n + 1})
		}
	}
	return err
}

// verify reads each listed file once, and compares its digests.
func (c *check) verify(ctx context.Context, progress Progress) error {
	if k, ok := c.FS.(Known); ok {
		return k.Each(func(name string, _ int64, digests map[string]string) error {
			c.differ(name, digests)
			return nil
		})
	}

	files := slices.DeleteFunc(slices.Sorted(maps.Keys(c.digests)), func(name string) bool {
		_, there := c.present[name]
		return !there
	})

	var bytes int64
	for i, name := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}

		n, err := c.compare(name)
		if err != nil {
			return err
		}
		bytes += n
		if progress != nil {
			progress(i+1, len(files), bytes)
		}
	}
	return nil
}

// compare reads a file, and reports the digests that differ.
func (c *check) compare(name string) (n int64, err error) {
	in, err := c.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()

	sums, to := map[string]hash.Hash{}, []io.Writer{}
	for algorithm := range c.digests[name] {
		sums[algorithm] = algorithms[algorithm]()
		to = append(to, sums[algorithm])
	}

	n, err = io.Copy(io.MultiWriter(to...), in)
	if err != nil {
		return n, err
	}

	computed := map[string]string{}
	for algorithm, sum := range sums {
		computed[algorithm] = hex.EncodeToString(sum.Sum(nil))
	}
	c.differ(name, computed)
	return n, nil
}

// differ reports the digests of a file that are not those that the manifests say.
func (c *check) differ(name string, computed map[string]string) {
	for _, algorithm := range slices.Sorted(maps.Keys(c.digests[name])) {
		is, want := computed[algorithm], c.digests[name][algorithm]
		switch {
		case is == "":
			c.problem(want.at.File, want.at.Line, "the %s of %s was not computed, so it cannot be compared", algorithm,
				name)
		case is != want.digest:
			c.problem(name, 0, "its %s is %s; %s says %s in line %d", algorithm, is, want.at.File, want.digest,
				want.at.Line)
		}
	}
}
