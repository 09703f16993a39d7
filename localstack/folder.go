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

	"archivist/pkg/checkm"
)

// objectProfile is the profile of a manifest that lists the files of one object.
const objectProfile = "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest"

// FolderHandler serves folders of this machine so that they can be submitted: for
// each symbolic link NAME in links, /folders/NAME.checkm is an object manifest of the
// folder, and /folders/NAME/ has its files. The manifest is made anew for each request.
func FolderHandler(links string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /folders/{manifest}", func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutSuffix(r.PathValue("manifest"), ".checkm")
		if !ok || !filepath.IsLocal(name) {
			http.NotFound(w, r)
			return
		}
		rows, err := FolderManifest(filepath.Join(links, name), "http://"+r.Host+"/folders/"+url.PathEscape(name)+"/")
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

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, fs.ErrNotExist) {
		status = http.StatusNotFound
	}
	http.Error(w, err.Error(), status)
}

// FolderManifest lists the files of a folder as rows of a manifest, each with its
// size and SHA-256, in alphabetical order. Links and other special files are refused:
// leaving them out silently would preserve less than what is there.
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
		row, err := fileRow(root, name)
		row.URL = base + (&url.URL{Path: name}).EscapedPath()
		rows = append(rows, row)
		return err
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s has no files", folder)
	}
	return rows, err
}

func fileRow(root *os.Root, name string) (checkm.Row, error) {
	f, err := root.Open(name)
	if err != nil {
		return checkm.Row{}, err
	}
	defer f.Close()
	digest := sha256.New()
	size, err := io.Copy(digest, f)
	return checkm.Row{Algorithm: "sha256", Digest: hex.EncodeToString(digest.Sum(nil)), Size: size, Name: name}, err
}
