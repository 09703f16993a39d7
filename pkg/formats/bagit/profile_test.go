package bagit

import (
	"strings"
	"testing"
)

// TestProfile: what a profile demands, each with a bag that is not so; a bag that is has no problems.
func TestProfile(t *testing.T) {
	const info = `"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "https://example.org/p.json"}, ` +
		`"Accept-BagIt-Version": ["0.97", "1.0"]`
	report := func() *Report {
		return &Report{Version: "1.0", Algorithms: []string{"md5", "sha512"}, Info: []Field{
			{"bagit-profile-identifier", "https://example.org/p.json"}, {"Source-Organization", "York University"},
			{"Contact-Name", "A"}, {"Contact-Name", "B"}},
			TagFiles: []string{"bag-info.txt", "bagit.txt", "manifest-md5.txt", "manifest-sha512.txt",
				"metadata/dc.xml", "tagmanifest-md5.txt", "fetch.txt"}}
	}
	for _, c := range []struct {
		profile, in, want string
	}{
		{``, "", ""},
		{`"Bag-Info": {"contact-name": {"required": true}, "Title": {"required": false}}`, "zip", ""},
		{`"Bag-Info": {"Title": {"required": true}}`, "", "bag-info.txt: the profile requires the field Title"},
		{`"Bag-Info": {"Source-Organization": {"values": ["SFU"]}}`, "", `does not allow the value "York University"`},
		{`"Bag-Info": {"Contact-Name": {"repeatable": false}}`, "", "more than once"},
		{`"Manifests-Required": ["SHA-512"], "Manifests-Allowed": ["md5", "sha512"]`, "", ""},
		{`"Manifests-Required": ["sha256"]`, "", "the profile requires manifest-sha256.txt"},
		{`"Manifests-Allowed": ["sha512"]`, "", "manifest-md5.txt: the profile does not allow it"},
		{`"Tag-Manifests-Required": ["sha512"]`, "", "requires tagmanifest-sha512.txt"},
		{`"Tag-Manifests-Allowed": []`, "", "tagmanifest-md5.txt: the profile does not allow it"},
		{`"Tag-Files-Required": ["metadata/dc.xml"], "Tag-Files-Allowed": ["metadata/*"]`, "", ""},
		{`"Tag-Files-Required": ["mods.xml"]`, "", "mods.xml: the profile requires it"},
		{`"Tag-Files-Allowed": ["*.txt"]`, "", "metadata/dc.xml: the profile does not allow it"},
		{`"Allow-Fetch.txt": false`, "", "fetch.txt: the profile does not allow it"},
		{`"Allow-Fetch.txt": true`, "", ""},
		{`"Serialization": "required", "Accept-Serialization": ["application/zip"]`, "", "to be in one file"},
		{`"Serialization": "required", "Accept-Serialization": ["application/zip"]`, "zip", ""},
		{`"Serialization": "optional", "Accept-Serialization": ["application/x-tar"]`, "tar.gz", "not tar.gz"},
		{`"Serialization": "optional", "Accept-Serialization": ["application/x-tar"]`, "tar", ""},
		{`"Serialization": "forbidden"`, "tar", "forbids a bag in one file"},
	} {
		text := "{" + info + "}"
		if c.profile != "" {
			text = "{" + info + ", " + c.profile + "}"
		}
		p, err := ReadProfile(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		got := p.Check(report(), c.in)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 ||
			!strings.Contains(got[0].String(), c.want)) {
			t.Errorf("%s, %q: %v; want %q", c.profile, c.in, got, c.want)
		}
	}

	p, err := ReadProfile(strings.NewReader(`{` + strings.Replace(info, "p.json", "q.json", 1) + `}`))
	other := report()
	other.Version = "0.93"
	if got := p.Check(other, ""); err != nil || len(got) != 2 ||
		!strings.Contains(got[0].Reason, "which no BagIt-Profile-") ||
		!strings.Contains(got[1].Reason, "not 0.93") {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "[]", "{}", `{"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "x"}}`, "<html>",
		`{` + info + `, "Manifests-Required": "md5"}`} {
		if p, err := ReadProfile(strings.NewReader(text)); err == nil {
			t.Errorf("%s is the profile %+v", text, p)
		}
	}
}
