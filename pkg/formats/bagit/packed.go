package bagit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Packed is a bag whose files come one after the other, as they do from a tar file. Each is read once: it keeps their
// digests, and the content of tag files. Its zero value has no files.
type Packed struct {
	files []packedFile
	tags  map[string][]byte
	kept  int64 // bytes of tags
	root  string
}

type packedFile struct {
	name    string
	size    int64
	digests map[string]string
}

var _ Known = (*Packed)(nil)

// maxTags is how many bytes of tag files are kept.
const maxTags = 512 << 20

// Add reads the next file. It is an error if the tag files are too large.
func (p *Packed) Add(name string, from io.Reader) error {
	sums, to := map[string]hash.Hash{}, []io.Writer{}
	for algorithm, sum := range algorithms {
		sums[algorithm] = sum()
		to = append(to, sums[algorithm])
	}

	var tag bytes.Buffer
	isTag := !strings.HasPrefix(name, payload+"/") && !strings.Contains(name, "/"+payload+"/")
	if isTag {
		to = append(to, &tag)
		from = io.LimitReader(from, maxTags-p.kept+1)
	}
	size, err := io.Copy(io.MultiWriter(to...), from)
	if err != nil {
		return err
	}
	if isTag && p.kept+size > maxTags {
		return fmt.Errorf("the files outside of the folder %s have more than %d bytes; no bag has so many", payload,
			maxTags)
	}

	f := packedFile{name, size, map[string]string{}}
	for algorithm, sum := range sums {
		f.digests[algorithm] = hex.EncodeToString(sum.Sum(nil))
	}
	if isTag && p.tags == nil {
		p.tags = map[string][]byte{}
	}
	if isTag {
		p.tags[name], p.kept = tag.Bytes(), p.kept+size
	}
	p.files = append(p.files, f)
	return nil
}

// Complete says that all files were added: they are the bag, or the bag is the one folder that all are in.
func (p *Packed) Complete() {
	p.root, _ = Root(func(yield func(string) bool) {
		for _, f := range p.files {
			yield(f.name)
		}
	})
}

// Each gives each file of the bag.
func (p *Packed) Each(each func(name string, size int64, digests map[string]string) error) error {
	for _, f := range p.files {
		if err := each(strings.TrimPrefix(f.name, p.root), f.size, f.digests); err != nil {
			return err
		}
	}
	return nil
}

// Open opens a tag file.
func (p *Packed) Open(name string) (fs.File, error) {
	text, ok := p.tags[p.root+name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return TagFile(name, io.NopCloser(bytes.NewReader(text)), int64(len(text))), nil
}

// TagFile is a tag file of a Known bag. Its size is in bytes.
func TagFile(name string, content io.ReadCloser, size int64) fs.File {
	return tagFile{content, tagInfo{path.Base(name), size}}
}

type tagFile struct {
	io.ReadCloser
	tagInfo
}

// Stat is asked for by fs.ReadFile, for the size.
func (f tagFile) Stat() (fs.FileInfo, error) { return f.tagInfo, nil }

type tagInfo struct {
	name string
	size int64
}

func (i tagInfo) Name() string       { return i.name }
func (i tagInfo) Size() int64        { return i.size }
func (i tagInfo) Mode() fs.FileMode  { return 0 }
func (i tagInfo) ModTime() time.Time { return time.Time{} }
func (i tagInfo) IsDir() bool        { return false }
func (i tagInfo) Sys() any           { return nil }
