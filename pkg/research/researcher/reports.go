package researcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Reports are the reports that were not yet taken: a file each, in a folder of each researcher.
// Several processes can have the same folder. A report that is sent twice is taken once, so no lock
// is needed.
//
// A file is LEASE-NUMBER.json, with "-final" before the ending if it is the last of its lease;
// names are escaped as in a URL. Files are sent in the order of their names, but the server takes
// them in any order.
type Reports struct {
	Dir  string // of the reports to one server
	Name string // of the researcher, which names its folder
	Now  func() time.Time
}

// Endings of the names of reports.
const (
	reportOf  = ".json"
	refusedOf = ".refused" // tried again when a researcher starts: the server may take it now
)

// orphaned is the age after which the report of another researcher is sent, too: it perhaps runs no
// more. One that runs sends its reports within a second, unless the server cannot be reached.
const orphaned = time.Minute

// Put keeps a report until it is taken. It is on the disk when Put returns. The same number of the
// same lease replaces the report before. An error is one of this computer.
func (p *Reports) Put(r Report) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}

	dir := filepath.Join(p.Dir, url.PathEscape(p.Name))
	err = os.MkdirAll(dir, 0o700)
	if err != nil {
		return local(err)
	}

	last := ""
	if r.Final {
		last = "-final"
	}

	name := fmt.Sprintf("%s-%04d%s", url.PathEscape(r.Lease), r.Sequence, last)
	return local(write(dir, name+reportOf, data))
}

// write makes a file appear with all its content, or not at all, whenever the process ends: it is
// renamed when it is complete. What is left of a crash is named new-*, and never read.
func write(dir, name string, data []byte) error {
	f, err := os.CreateTemp(dir, "new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}

// files lists the reports with an ending: those of this researcher, and those of others that are
// old. all: of all.
func (p *Reports) files(ending string, all bool) (paths []string, err error) {
	own := filepath.Join(p.Dir, url.PathEscape(p.Name))
	found, err := filepath.Glob(filepath.Join(globbed(p.Dir), "*", "*"+ending))
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil {
			continue // another has sent it
		}
		if all || filepath.Dir(path) == own || p.Now().Sub(info.ModTime()) > orphaned {
			paths = append(paths, path)
		}
	}
	return paths, err
}

// globbed is a path as a pattern that matches itself only.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// readmit lets the reports that were refused be sent again, those of all researchers.
func (p *Reports) readmit() error {
	refused, err := p.files(refusedOf, true)
	for _, path := range refused {
		err = errors.Join(err, os.Rename(path, strings.TrimSuffix(path, refusedOf)))
	}
	return err
}

// look is how often the folder of reports is read.
const look = 200 * time.Millisecond
