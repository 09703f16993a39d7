package jobs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"strings"

	"archivist/cmd/archivist/command"
	"archivist/pkg/formats/bagit"
	"archivist/pkg/formats/container"
	"archivist/pkg/kernel/terminal"
)

// openedBag is a bag that is read.
type openedBag struct {
	fs.FS
	kind container.Kind // of the file that it is in; "": it is a folder
}

// openBag opens a folder, a file, or what a URL names. A file is read as a deposit of it would be.
func openBag(a *command.App, name string, line *terminal.Status) (*openedBag, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return remoteBag(a, name, line)
	}

	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("there is no such folder or file")
	case err != nil:
		return nil, err
	case info.IsDir():
		return &openedBag{FS: os.DirFS(name)}, nil
	}

	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return packedBag(in, info.Size(), line)
}

// remoteBag opens the file of a URL.
func remoteBag(a *command.App, url string, line *terminal.Status) (*openedBag, error) {
	req, err := http.NewRequestWithContext(a.Ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	}

	file, err := os.CreateTemp("", "archivist-bag-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()

	line.Show("downloading "+url, false)
	n, err := io.Copy(file, resp.Body)
	if err != nil {
		return nil, err
	}
	return packedBag(file, n, line)
}

// packedBag reads all files of a container, once.
func packedBag(in io.ReaderAt, size int64, line *terminal.Status) (*openedBag, error) {
	start := make([]byte, container.Beginning)
	n, err := in.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	kind := container.Detect(start[:n])
	if kind == "" {
		return nil, errors.New("it is no folder, and no zip, tar, tar.gz or tar.bz2 file")
	}

	limits := container.Limits{Files: math.MaxInt, Bytes: math.MaxInt64, Ratio: container.DefaultLimits.Ratio}
	r, err := container.Open(kind, in, size, limits, nil)
	bag := &bagit.Packed{}
	for files := 1; err == nil; files++ {
		var file *container.File
		file, err = r.Next()
		if err == nil {
			line.Show(fmt.Sprintf("%s, %s", terminal.Count(files, "file"), terminal.Size(r.Bytes())), false)
			err = bag.Add(file.Name, r)
		}
	}
	if err != io.EOF {
		return nil, err
	}
	bag.Complete()
	return &openedBag{bag, kind}, nil
}
