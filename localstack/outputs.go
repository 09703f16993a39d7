package localstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// published is where the command line looks for what is up, below a folder.
const published = ".local/outputs.json"

// Publish lets the command line find what is up, in a folder and below it. What another has published there is
// replaced.
func (o Outputs) Publish(folder string) error {
	path := filepath.Join(folder, published)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return err
	}
	return o.write(path)
}

// write writes the outputs as JSON, for people to read, too.
func (o Outputs) write(path string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// Withdraw undoes Publish, unless another has published there since: then its file stays.
func (o Outputs) Withdraw(folder string) error {
	now, err := Published(folder)
	if err != nil || now.State != o.State || now.APIURL != o.APIURL {
		return err
	}
	err = os.Remove(filepath.Join(folder, published))
	if errors.Is(err, fs.ErrNotExist) { // another process was quicker
		return nil
	}
	return err
}

// Published is what is up in a folder; an empty value means nothing. Whether it still is, is not looked at:
// after a crash the file stays.
func Published(folder string) (o Outputs, err error) {
	data, err := os.ReadFile(filepath.Join(folder, published))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// Serve makes a folder of this machine available for submission, and says to w how to submit it. A link in the
// folder of the state leads to it, which the web server follows; one of the same name is replaced. The folder is
// read whole, so that what cannot be submitted is refused now.
func (o Outputs) Serve(w io.Writer, folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}

	rows, err := FolderManifest(folder, "")
	if err != nil {
		return err
	}

	name := unfit.ReplaceAllString(filepath.Base(folder), "-")
	link := filepath.Join(o.State, "folders", name)
	err = os.Remove(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	err = os.Symlink(folder, link)
	if err != nil {
		return err
	}

	_, err = fmt.Fprintf(w, `Serving %s (files: %d) until "make stop". Submit it:
  dist/archivist submit %s/folders/%s.checkm -c my-collection --local-id %s --what "A title" --watch
`, folder, len(rows), o.SampleURL, name, name)
	return err
}

// unfit is what the names of served folders do not have, so that they need no quotes in a shell and no escapes
// in a URL.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
