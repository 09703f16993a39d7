package bagit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Profile is what a BagIt profile demands of bags (BagIt Profiles Specification 1.3.0). Names are compared as in bags:
// those of fields without regard to case.
type Profile struct {
	Info struct {
		Identifier string `json:"BagIt-Profile-Identifier"`
		Version    string `json:"BagIt-Profile-Version"`
	} `json:"BagIt-Profile-Info"`
	BagInfo              map[string]FieldRule `json:"Bag-Info"`
	ManifestsRequired    []string             `json:"Manifests-Required"`
	ManifestsAllowed     []string             `json:"Manifests-Allowed"`
	TagManifestsRequired []string             `json:"Tag-Manifests-Required"`
	TagManifestsAllowed  []string             `json:"Tag-Manifests-Allowed"`
	TagFilesRequired     []string             `json:"Tag-Files-Required"`
	TagFilesAllowed      []string             `json:"Tag-Files-Allowed"`
	AcceptVersion        []string             `json:"Accept-BagIt-Version"`
	Serialization        string               `json:"Serialization"`
	AcceptSerialization  []string             `json:"Accept-Serialization"`
	AllowFetch           *bool                `json:"Allow-Fetch.txt"`
}

// FieldRule is what a profile demands of a field of bag-info.txt.
type FieldRule struct {
	Required   bool     `json:"required"`
	Values     []string `json:"values"`
	Repeatable *bool    `json:"repeatable"`
}

// MaxProfile is the largest profile that is read, in bytes.
const MaxProfile = 1 << 20

// ReadProfile reads a profile. An error says why the text is none.
func ReadProfile(r io.Reader) (*Profile, error) {
	var p Profile
	if err := json.NewDecoder(io.LimitReader(r, MaxProfile)).Decode(&p); err != nil {
		return nil, fmt.Errorf("it is not a BagIt profile: %w", err)
	}
	if p.Info.Identifier == "" || len(p.AcceptVersion) == 0 {
		return nil, fmt.Errorf("it is not a BagIt profile, which has BagIt-Profile-Identifier and Accept-BagIt-Version")
	}
	return &p, nil
}

// profileField is the field of bag-info.txt that names a profile.
const profileField = "BagIt-Profile-Identifier"

// Profiles are the URLs of the profiles that a bag says that it conforms to.
func (r *Report) Profiles() []string { return r.values(profileField) }

// values are those of a field of bag-info.txt.
func (r *Report) values(name string) (all []string) {
	for _, f := range r.Info {
		if strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}

// serializations are the media types of bags in one file, by their kinds.
var serializations = map[string][]string{
	"zip": {"application/zip", "application/x-zip-compressed"},
	"tar": {"application/tar", "application/x-tar"},
	"tar.gz": {"application/gzip", "application/x-gzip", "application/tar+gzip", "application/x-tar+gzip",
		"application/x-gtar", "application/x-tgz"},
	"tar.bz2": {"application/x-bzip2", "application/bzip2", "application/x-bzip"},
}

// Check returns what of a bag is not as the profile demands. in is the kind of the file that the bag came in (zip, tar,
// tar.gz, tar.bz2), "" for a folder.
func (p *Profile) Check(r *Report, in string) (problems []Problem) {
	add := func(file, reason string, args ...any) {
		problems = append(problems, Problem{File: file, Reason: "the profile " + fmt.Sprintf(reason, args...)})
	}

	if !slices.Contains(r.Profiles(), p.Info.Identifier) {
		add(infoFile, "is %s, which no %s names", p.Info.Identifier, profileField)
	}
	if !slices.Contains(p.AcceptVersion, r.Version) {
		add(declarationFile, "accepts BagIt %s, not %s", strings.Join(p.AcceptVersion, ", "), r.Version)
	}
	p.serialization(in, add)
	p.fields(r, add)

	ofTags := r.tagAlgorithms()
	for _, m := range []struct {
		name              string
		are               []string
		required, allowed []string
	}{{"manifest-%s.txt", r.Algorithms, p.ManifestsRequired, p.ManifestsAllowed},
		{"tagmanifest-%s.txt", ofTags, p.TagManifestsRequired, p.TagManifestsAllowed}} {
		for _, a := range m.required {
			if !slices.Contains(m.are, plain(a)) {
				add("", "requires "+m.name, plain(a))
			}
		}
		for _, a := range m.are {
			if m.allowed != nil && !slices.ContainsFunc(m.allowed, func(one string) bool { return plain(one) == a }) {
				add(fmt.Sprintf(m.name, a), "does not allow it")
			}
		}
	}
	p.tagFiles(r, add)
	return problems
}

// plain is the name of an algorithm as in names of manifests.
func plain(algorithm string) string {
	return strings.ToLower(strings.ReplaceAll(algorithm, "-", ""))
}

func (p *Profile) serialization(in string, add func(file, reason string, args ...any)) {
	accepted := slices.ContainsFunc(p.AcceptSerialization, func(kind string) bool {
		return slices.Contains(serializations[in], strings.ToLower(kind))
	})
	switch {
	case in == "" && p.Serialization == "required":
		add("", "requires the bag to be in one file (%s)", strings.Join(p.AcceptSerialization, ", "))
	case in != "" && p.Serialization == "forbidden":
		add("", "forbids a bag in one file")
	case in != "" && len(p.AcceptSerialization) > 0 && !accepted:
		add("", "accepts %s, not %s", strings.Join(p.AcceptSerialization, ", "), in)
	}
}

func (p *Profile) fields(r *Report, add func(file, reason string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(p.BagInfo)) {
		rule, are := p.BagInfo[name], r.values(name)
		if rule.Required && len(are) == 0 {
			add(infoFile, "requires the field %s", name)
		}
		if rule.Repeatable != nil && !*rule.Repeatable && len(are) > 1 {
			add(infoFile, "does not allow the field %s more than once", name)
		}
		for _, value := range are {
			if len(rule.Values) > 0 && !slices.Contains(rule.Values, value) {
				add(infoFile, "does not allow the value %q of %s", value, name)
			}
		}
	}
}

func (p *Profile) tagFiles(r *Report, add func(file, reason string, args ...any)) {
	for _, name := range p.TagFilesRequired {
		if !slices.Contains(r.TagFiles, name) {
			add(name, "requires it")
		}
	}

	for _, name := range r.TagFiles {
		if !p.allows(name) {
			add(name, "does not allow it")
		}
	}
}

// allows reports whether a tag file may be there. Those of BagIt itself are not in the list.
func (p *Profile) allows(name string) bool {
	switch {
	case name == fetchFile:
		return p.AllowFetch == nil || *p.AllowFetch
	case name == declarationFile || name == infoFile || manifestNames.MatchString(name):
		return true
	}
	return p.TagFilesAllowed == nil || slices.ContainsFunc(p.TagFilesAllowed, pattern(name))
}

// pattern matches a name by patterns, in which a star stands for any characters.
func pattern(name string) func(string) bool {
	return func(p string) bool {
		expr := "^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + "$"
		is, err := regexp.MatchString(expr, name)
		return err == nil && is
	}
}

// tagAlgorithms are the algorithms of the manifests of tag files.
func (r *Report) tagAlgorithms() (all []string) {
	for _, name := range r.TagFiles {
		if m := manifestNames.FindStringSubmatch(name); m != nil && m[1] != "" {
			all = append(all, plain(m[2]))
		}
	}
	return all
}
