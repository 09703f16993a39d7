package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

// files are what browsers load, and the templates of pages. htmx-2.0.11.js is dist/htmx.min.js of the npm package
// htmx.org 2.0.11, as it is there; a test knows its digest.
//
//go:embed templates all:assets
var files embed.FS

// served are the assets by the names under which they are served: with a digest of the content, so that browsers can
// keep them for ever. named are these names, by those of the files.
var served, named = readAssets()

// readAssets reads the assets that browsers load.
func readAssets() (content map[string][]byte, names map[string]string) {
	content, names = map[string][]byte{}, map[string]string{}
	for _, name := range []string{"console.css", "console.js", "filter.js", "submit.js", "digest.js",
		"htmx-2.0.11.js", "icon.svg"} {
		data, err := files.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // it is not embedded
		}
		sum, ext := sha256.Sum256(data), path.Ext(name)
		with := strings.TrimSuffix(name, ext) + "-" + hex.EncodeToString(sum[:6]) + ext
		content[with], names[name] = data, with
	}
	// The modules of a package import each other by their names, so its version is in the path instead of a digest.
	for _, name := range []string{"sha2.js", "_md.js", "_u64.js", "utils.js"} {
		data, err := files.ReadFile("assets/" + hashes + "/" + name)
		if err != nil {
			panic(err)
		}
		content[hashes+"/"+name] = data
	}
	return content, names
}

// hashes is the folder of the npm package @noble/hashes, of which the modules are as they are there.
const hashes = "noble-hashes-2.4.0"

// asset serves an asset. It needs no session: what it says is in the source for everybody.
func asset(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(r.URL.Path, "/console/assets/")
	content, known := served[name]
	if !known {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	write(w, r, http.StatusOK, content)
	return true
}
