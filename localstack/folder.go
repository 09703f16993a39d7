package localstack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"archivist/pkg/formats/checkm"
)

// objectProfile is the profile of a manifest that lists the files of one object.
const objectProfile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest"

// SourcesHandler serves what is fetched from this machine: the sample, the folders that links in a folder lead to, and
// the Git repositories below a folder, if Git is installed.
func SourcesHandler(links, repositories string) (http.Handler, error) {
	files, err := SampleHandler()
	if err != nil {
		return nil, err
	}

	mux := http.NewServeMux()
	mux.Handle("/folders/", FolderHandler(links))
	mux.Handle("/", files)
	git, err := GitHandler(repositories)
	if err == nil { // without Git there is no sample of archives
		mux.Handle("/git/", http.StripPrefix("/git", git))
	}
	return mux, nil
}

// FolderHandler serves folders of this machine so that they can be submitted: for each symbolic link NAME in
// links, /folders/NAME.checkm is an object manifest of the folder, and /folders/NAME/ has its files. The
// manifest is made anew for each request, from the files as they are then. Nothing outside of the folders is
// served.
func FolderHandler(links string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /folders/{manifest}", func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutSuffix(r.PathValue("manifest"), ".checkm")
		// A name with ".." would lead out of the links.
		if !ok || !filepath.IsLocal(name) {
			http.NotFound(w, r)
			return
		}

		rows, err := FolderManifest(filepath.Join(links, name), "http://"+r.Host+"/folders/"+
			url.PathEscape(name)+"/")
		if err != nil {
			refuse(w, err)
			return
		}

		if err := checkm.Write(w, objectProfile, rows); err != nil {
			refuse(w, err)
		}
	})

	mux.HandleFunc("GET /folders/{name}/{file...}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !filepath.IsLocal(name) {
			http.NotFound(w, r)
			return
		}

		folder, err := os.OpenRoot(filepath.Join(links, name)) // links inside lead nowhere outside
		if err != nil {
			refuse(w, err)
			return
		}

		defer folder.Close()
		http.ServeFileFS(w, r, folder.FS(), r.PathValue("file"))
	})

	return mux
}

// refuse answers with an error: 404 for a file or a folder that is not there, else 500.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

// FolderManifest lists the files of a folder as rows of a manifest, each with its size and SHA-256, in the order
// of their paths; base is the URL below which they are served, with a slash at its end. Links and other special
// files are refused: leaving them out silently would preserve less than what is there. A folder without files is
// an error.
func FolderManifest(folder, base string) (rows []checkm.Row, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}

	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file; move it out of the folder", name)
		}
		// A file that changes while it is read has a digest of neither state; the archive then refuses the
		// download.
		row, err := fileRow(root, name)
		row.URL = base + (&url.URL{Path: name}).EscapedPath()
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return rows, err
	}

	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no files", folder)
	}
	return rows, nil
}

// fileRow is the row of a file, without its URL. The file is read whole: a manifest that is made twice has the
// same digests only if the content is the same.
func fileRow(root *os.Root, name string) (checkm.Row, error) {
	f, err := root.Open(name)
	if err != nil {
		return checkm.Row{}, err
	}

	defer f.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, f)
	return checkm.Row{
		Algorithm: "sha256",
		Digest:    hex.EncodeToString(digest.Sum(nil)),
		Size:      size,
		Name:      name,
	}, err
}
