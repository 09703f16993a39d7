package bagit_test

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"archivist/pkg/formats/bagit"
)

// payloadOf are the files of a payload with their digests, and the bag that they are in.
func payloadOf(contents map[string]string) (files []bagit.File, bag fstest.MapFS) {
	bag = fstest.MapFS{}
	for path, text := range contents {
		a, b := sha512.Sum512([]byte(text)), sha256.Sum256([]byte(text))
		files = append(files, bagit.File{Path: path, Size: int64(len(text)),
			Digests: map[string]string{"sha512": hex.EncodeToString(a[:]), "sha256": hex.EncodeToString(b[:])}})
		bag["data/"+path] = &fstest.MapFile{Data: []byte(text)}
	}
	return files, bag
}

// TestTags: what is written is a valid bag, whatever the names; the digests that all files have are in manifests, and
// those that only some have are in none.
func TestTags(t *testing.T) {
	files, bag := payloadOf(map[string]string{"a.txt": "a", "folder/100%.txt": "b", "two\nlines": "c", "%0A": "d",
		"ä": ""})
	sum := md5.Sum([]byte("a"))
	i := slices.IndexFunc(files, func(f bagit.File) bool { return f.Path == "a.txt" })
	files[i].Digests["md5"] = hex.EncodeToString(sum[:])
	tags, err := bagit.Tags(files, []bagit.Field{{Name: "External-Description", Value: "A long\none"}},
		map[string][]byte{"metadata/premis.xml": []byte("<premis/>")})
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range tags {
		bag[path] = &fstest.MapFile{Data: data}
	}
	r, err := bagit.Check(t.Context(), bag, nil)
	if err != nil || len(r.Problems) > 0 || r.Files != 5 || r.Version != "1.0" ||
		!slices.Equal(r.Algorithms, []string{"sha256", "sha512"}) || r.Info[0].Value != "A long one" {
		t.Errorf("%+v, %v", r, err)
	}
	bag["metadata/premis.xml"] = &fstest.MapFile{Data: []byte("<other/>")}
	if r, err = bagit.Check(t.Context(), bag, nil); err != nil || len(r.Problems) == 0 {
		t.Errorf("after a change of a tag file: %+v, %v", r, err)
	}
}

// TestNoAlgorithm: without a digest that all files have there is no bag.
func TestNoAlgorithm(t *testing.T) {
	_, err := bagit.Tags([]bagit.File{{Path: "a", Digests: map[string]string{"crc32": "1"}}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "no digest") {
		t.Error(err)
	}
}
