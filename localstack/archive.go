package localstack

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed all:archive
var archive embed.FS

// ArchiveFiles are the files of the sample of an archive, by their paths with slashes: what its tasks are, and
// what these need. repository is the URL to which a task commits; it replaces the text REPOSITORY_URL.
func ArchiveFiles(repository string) (map[string]string, error) {
	files := map[string]string{}
	root, err := fs.Sub(archive, "archive")
	if err != nil {
		return nil, err
	}

	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		files[path] = strings.ReplaceAll(string(data), "REPOSITORY_URL", repository)
		return err
	})
	return files, err
}

// Chapter is a chapter of the sample of an archive, from 1: its path and its text. Both follow from its number,
// so the sample is the same each time; the lengths differ.
func Chapter(n int64) (path, text string) {
	lines := strings.Repeat("Here is what the chapter says, on one more line.\n", int(n%7)+1)
	return fmt.Sprintf("chapters/%02d.txt", n), fmt.Sprintf("Chapter %d\n\n%s", n, lines)
}
