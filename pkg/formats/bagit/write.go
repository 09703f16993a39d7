package bagit

import (
	"cmp"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// File is a file of a payload, as a bag is made of it. Its path is within the payload; its digests are by algorithm, in
// hexadecimal.
type File struct {
	Path    string
	Size    int64
	Digests map[string]string
}

// Tags are the tag files of a bag of version 1.0, by their paths: the declaration, bag-info.txt with these fields and
// Payload-Oxum, and the manifests. There is a manifest for each algorithm of which all files of the payload have a
// digest: since version 1.0 a manifest has all of them (RFC 8493, section 2.1.3). more are other tag files, by their
// paths; the manifest of tag files has them, too. It is an error if the files have no algorithm in common.
func Tags(payloads []File, info []Field, more map[string][]byte) (map[string][]byte, error) {
	tags := map[string][]byte{declarationFile: []byte("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")}
	maps.Copy(tags, more)
	var size int64
	for _, f := range payloads {
		size += f.Size
	}

	var text strings.Builder
	for _, f := range append(slices.Clone(info), Field{"Payload-Oxum", fmt.Sprintf("%d.%d", size, len(payloads))}) {
		fmt.Fprintf(&text, "%s: %s\n", f.Name, strings.Join(strings.Fields(f.Value), " "))
	}
	tags[infoFile] = []byte(text.String())

	found := false
	for _, algorithm := range slices.Sorted(maps.Keys(algorithms)) {
		lines, all := manifestOf(payloads, algorithm)
		if all {
			tags["manifest-"+algorithm+".txt"], found = []byte(lines), true
		}
	}

	if !found {
		return nil, fmt.Errorf("the files have no digest of one algorithm that all of them have")
	}

	var list []File
	for name, data := range tags {
		sum := sha512.Sum512(data)
		list = append(list, File{Path: name, Digests: map[string]string{"sha512": hex.EncodeToString(sum[:])}})
	}
	slices.SortFunc(list, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	text.Reset()
	for _, f := range list {
		fmt.Fprintf(&text, "%s  %s\n", f.Digests["sha512"], encoded(f.Path))
	}
	tags["tagmanifest-sha512.txt"] = []byte(text.String())
	return tags, nil
}

// manifestOf is the manifest of a payload with the digests of an algorithm. all is false if a file has none.
func manifestOf(payloads []File, algorithm string) (lines string, all bool) {
	var text strings.Builder
	for _, f := range payloads {
		digest := f.Digests[algorithm]
		if digest == "" {
			return "", false
		}
		fmt.Fprintf(&text, "%s  %s/%s\n", digest, payload, encoded(f.Path))
	}
	return text.String(), true
}

// encoded is a path as manifests have it: what would end a line, and the sign of that encoding, are encoded (RFC 8493,
// section 2.1.3).
func encoded(path string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D").Replace(path)
}
