package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// sum is the SHA-256 of a text.
func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// call makes a call as the script of a page does.
func (b *browser) call(path, token string, in any) (status int, out map[string]any, list []map[string]any) {
	b.Helper()
	data, err := json.Marshal(in)
	b.must(err)
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, home+path, bytes.NewReader(data))
	b.must(err)
	r.Header.Set("Archivist-Form", token)
	resp, err := b.Client.Do(r)
	b.must(err)
	defer resp.Body.Close()
	var raw json.RawMessage
	b.must(json.NewDecoder(resp.Body).Decode(&raw))
	_ = json.Unmarshal(raw, &out)
	_ = json.Unmarshal(raw, &list)
	return resp.StatusCode, out, list
}

// formOf is the form of the page Submit with some fields.
func formOf(t *testing.T, page string, fields ...string) url.Values {
	t.Helper()
	form := formAt(t, page, "submit")
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return form
}

// TestSubmitURL: content of a URL is checked and submitted; what is refused is said at its field, and nothing is lost.
func TestSubmitURL(t *testing.T) {
	w := begin(t, true)
	w.files["/map.txt"] = "a map"
	b := w.browser()
	_, page := b.get("submit")
	form := formOf(t, page, "kind", "url", "collection", "sample", "url", "nowhere", "what", "Map of the harbour",
		"step", "do")
	resp, page := b.post("submit", form)
	if resp.StatusCode != 422 || !strings.Contains(page, `id="wrong-url"`) ||
		!strings.Contains(page, `value="Map of the harbour"`) || !strings.Contains(page, `value="nowhere"`) {
		t.Fatalf("a wrong URL: %d\n%s", resp.StatusCode, page)
	}
	form.Set("url", "http://"+sourceHost+"/map.txt")
	form.Set("digest", "sha256:"+sum("a map"))
	form.Set("step", "preview")
	resp, page = b.post("submit", form)
	if resp.StatusCode != 200 || !strings.Contains(page, "It would be accepted") ||
		!strings.Contains(page, "has never been used") {
		t.Errorf("the check: %d\n%s", resp.StatusCode, page)
	}
	if all, err := w.api.Batches(t.Context(), v1.Filter{}); err != nil || len(all) != 0 {
		t.Errorf("a check has made %v, %v", all, err)
	}
	form.Set("step", "do")
	first, _ := b.post("submit", form)
	again, _ := b.post("submit", form)
	if at := first.Request.URL.String(); at != again.Request.URL.String() || !strings.HasPrefix(at, home+"batches/") {
		t.Errorf("submitted: %s, then %s", at, again.Request.URL)
	}
	form.Set("collection", "")
	if resp, page := b.post("submit", form); resp.StatusCode != 422 || !strings.Contains(page, `id="wrong-collection"`) ||
		!strings.Contains(page, `aria-describedby="wrong-collection"`) {
		t.Errorf("without a collection: %d\n%s", resp.StatusCode, page)
	}
}

// TestSubmitManifest: the faults of a manifest are said by their lines; one without is stored and submitted, once.
func TestSubmitManifest(t *testing.T) {
	w := begin(t, true)
	w.files["/a.txt"] = "a"
	b := w.browser()
	_, page := b.get("submit")
	row := "http://" + sourceHost + "/a.txt | sha256 | " + sum("a") + " | 1 | | a.txt\n"
	head := "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n" +
		"#%prefix | mrt: | http://merritt.cdlib.org/terms#\n#%prefix | nfo: | " +
		"http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n#%fields | nfo:fileUrl | nfo:hashAlgorithm | " +
		"nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName\n"
	form := formOf(t, page, "kind", "manifest", "collection", "sample", "step", "do",
		"manifest", head+"nowhere | sha256 | xyz | one | | a.txt\n#%eof\n")
	resp, page := b.post("submit", form)
	if resp.StatusCode != 422 || !strings.Contains(page, "The manifest would be refused") ||
		strings.Count(page, "line 6") < 2 || !strings.Contains(page, "nowhere | sha256") {
		t.Fatalf("a manifest with faults: %d\n%s", resp.StatusCode, page)
	}
	form.Set("manifest", strings.Repeat("|", 200_000)) // as much as the page takes
	if resp, page := b.post("submit", form); resp.StatusCode != 422 || !strings.Contains(page, "would be refused") {
		t.Errorf("a large manifest: %d\n%.2000s", resp.StatusCode, page)
	}
	form.Set("manifest", head+row+"#%eof\n")
	first, page := b.post("submit", form)
	again, _ := b.post("submit", form)
	at := first.Request.URL.String()
	if at != again.Request.URL.String() || !strings.HasPrefix(at, home+"batches/") {
		t.Fatalf("submitted: %s, then %s\n%s", at, again.Request.URL, page)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(at, home+"batches/"), "?")
	// Back, another manifest or collection: the page says what was made, and sent again it makes
	// it, too.
	form.Set("manifest", head+row+"#%eof\n#\n")
	for _, collection := range []string{"sample", "letters"} {
		form.Set("collection", collection)
		resp, page := b.post("submit", form)
		if resp.StatusCode != 422 || !strings.Contains(page,
			"This form was sent already, with something else") ||
			!strings.Contains(page, `href="./batches/`+id+`"`) || !strings.Contains(page,
			"#%eof\n#\n") {
			t.Errorf("sent with another manifest to %s: %d\n%s", collection, resp.StatusCode, page)
		}
		if all, err := w.api.Batches(t.Context(), v1.Filter{}); err != nil || len(all) != 1 {
			t.Errorf("%d batches, %v", len(all), err)
		}
		ups, err := w.api.Uploads(t.Context(), v1.Filter{Collection: collection,
			State: v1.UploadOpen})
		if err != nil || len(ups) != 0 {
			t.Errorf("what was sent for nothing stays: %v, %v", ups, err)
		}
		if collection == "letters" {
			form = formOf(t, page, "kind", "manifest", "step", "do", "collection", "sample",
				"manifest", form.Get("manifest"))
		}
	}
	if resp, page := b.post("submit", form); !strings.HasPrefix(resp.Request.URL.String(),
		home+"batches/") {
		t.Errorf("sent again: %s\n%s", resp.Request.URL, page)
	}
	w.until("it is preserved", func() bool {
		one, err := w.api.Batch(t.Context(), id)
		w.must(err)
		return one.State == v1.Completed
	})
}

// TestSubmitFiles: what the script sends becomes a batch; the same files again are the same upload.
func TestSubmitFiles(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	resp, page := b.get("submit")
	policy := resp.Header.Get("Content-Security-Policy")
	form := formOf(t, page, "kind", "files", "collection", "sample", "step", "do")
	token := form.Get("form")
	if resp, page := b.post("submit", form); resp.StatusCode != 422 || !strings.Contains(page, `aria-describedby="wrong-upload"`) {
		t.Errorf("without files: %d\n%s", resp.StatusCode, page)
	}

	texts := map[string]string{"a.txt": "one", "sub/b.txt": "two", "sub/c.txt": "one"}
	var chosen []map[string]any
	for name, text := range texts {
		chosen = append(chosen, map[string]any{"name": name, "sha256": sum(text), "size": len(text)})
	}
	in := map[string]any{"collection": "sample", "chosen": chosen}
	status, up, _ := b.call("uploads", token, in)
	if status != 200 || up["files"] != 3.0 {
		t.Fatalf("opened: %d %v", status, up)
	}
	if _, same, _ := b.call("uploads", token, in); same["id"] != up["id"] {
		t.Errorf("the same files have another upload: %v, %v", same["id"], up["id"])
	}
	id := up["id"].(string)
	content := map[string]string{sum("one"): "one", sum("two"): "two",
		up["manifestSha256"].(string): up["manifest"].(string)}
	var files []map[string]any
	var sums []string
	for s, text := range content {
		files, sums = append(files, map[string]any{"sha256": s, "size": len(text)}), append(sums, s)
	}
	_, _, items := b.call("uploads/"+id+"/files", token, map[string]any{"files": files})
	for _, item := range items {
		w.send(item, content[item["sha256"].(string)], policy)
	}
	if _, _, stored := b.call("uploads/"+id+"/stored", token, map[string]any{"stored": sums}); len(stored) != 3 ||
		stored[0]["stored"] != true {
		t.Errorf("stored: %v", stored)
	}
	payload := up["payload"].(map[string]any)
	form.Set("upload", id)
	form.Set("file", payload["file"].(string))
	form.Set("sentType", payload["type"].(string))
	form.Set("sentName", payload["filename"].(string))
	first, page := b.post("submit", form)
	again, _ := b.post("submit", form)
	if at := first.Request.URL.String(); at != again.Request.URL.String() || !strings.HasPrefix(at, home+"batches/") {
		t.Errorf("submitted: %s, then %s\n%s", at, again.Request.URL, page)
	}
	if _, same, _ := b.call("uploads", token, in); same["id"] != up["id"] || same["batch"] == nil {
		t.Errorf("files that are submitted: %v", same)
	}

	for says, wrong := range map[string]map[string]any{
		`a file has no name`:           nil,
		`"../x": the name `:            {"name": "../x", "sha256": sum("one"), "size": 3},
		`"": the name `:                {"name": "", "sha256": sum("one"), "size": 3},
		`"a" has no SHA-256`:           {"name": "a", "sha256": "xyz", "size": 3},
		`"b" has no SHA-256 or no siz`: {"name": "b", "sha256": sum("one"), "size": -1}} {
		bad := map[string]any{"collection": "sample", "chosen": []any{wrong}}
		status, out, _ := b.call("uploads", token, bad)
		if said, _ := out["problem"].(string); status != 422 || !strings.Contains(said, says) {
			t.Errorf("%v: %d %v", wrong, status, out)
		}
	}
	for _, other := range []string{"", "x.y", w.browser().ownForm(t)} {
		if status, out, _ := b.call("uploads", other, in); status != 403 || out["problem"] == nil {
			t.Errorf("with the form %q: %d %v", other, status, out)
		}
	}
}

// ownForm is the token of a form of another browser.
func (b *browser) ownForm(t *testing.T) string {
	t.Helper()
	_, page := b.get("submit")
	return formAt(t, page, "submit").Get("form")
}

// send sends a content by its signed request. The page may do that: its policy names the origin.
func (w *world) send(item map[string]any, text, policy string) {
	w.Helper()
	put := item["put"].(map[string]any)
	to, err := url.Parse(put["url"].(string))
	w.must(err)
	if !strings.Contains(policy, "connect-src 'self' "+to.Scheme+"://"+to.Host+";") {
		w.Errorf("the page may not send to %s: %s", to.Host, policy)
	}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPut, to.String(), strings.NewReader(text))
	w.must(err)
	for name, value := range put["headers"].(map[string]any) {
		r.Header.Set(name, value.(string))
	}
	resp, err := w.HTTP().Do(r)
	w.must(err)
	resp.Body.Close()
	if resp.StatusCode != 200 {
		w.Errorf("the storage answers %s", resp.Status)
	}
}

// TestHashes: the modules are those of the npm package @noble/hashes 2.4.0.
func TestHashes(t *testing.T) {
	for name, want := range map[string]string{
		"_md.js":   "60cf3010fda89e3e4d3f0e7ff1ce249e9c467f34b4fd41b6fd6101d9f69be763",
		"_u64.js":  "b09da8c07fe8187c07649494cdb7cd0bcf13df90b506a9473d19e4d5f8c2e102",
		"sha2.js":  "471746bba6ec4c6238ca41358d1d3b40b6ff31cf3363f0b4d550c649c1a8e83b",
		"utils.js": "037ad49adb78168b6b699598fd33f85f7877456b1d28b4d032e2a1a16807947c",
		"LICENSE":  "1aa7cccc733c474e75d074f1b589e72db1a0da5af311c607921dd942dca42266",
	} {
		data, err := os.ReadFile("assets/noble-hashes-2.4.0/" + name)
		if err != nil || sum(string(data)) != want {
			t.Errorf("%s is another file: %s, %v", name, sum(string(data)), err)
		}
	}
}

// TestPackage: htmx is the file of the npm package htmx.org 2.0.11.
func TestPackage(t *testing.T) {
	data, err := os.ReadFile("assets/htmx-2.0.11.js")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if got := hex.EncodeToString(sum[:]); got != "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717" {
		t.Errorf("it is another file: %s", got)
	}
}
