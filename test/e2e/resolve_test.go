package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestARKsResolve: the ARK of an object is an address that describes it, for everybody, in both forms of ARKs; that of
// a withdrawn one says so.
func TestARKsResolve(t *testing.T) {
	begin(t)
	src := newSource(t)
	src.put("/a.txt", []byte("content"))
	src.put("/mrt-erc.txt", []byte("erc:\nwho: Anna & Bert\nwhat: <b>Letters</b>\nwhen: (:unkn)\n"))
	_, job := submit(t, src.manifest(t, "/one.checkm", src.row("/a.txt"), src.row("/mrt-erc.txt")), "object-manifest",
		"resolved")
	ark := ends(t, job, "Completed", soon).Identifiers.Primary
	name := strings.TrimPrefix(ark, "ark:/")
	for _, row := range []struct {
		path, accept, media string
		says                []string
		not                 string
	}{
		{"/ark:/" + name, "", "application/json", []string{`"ark":"` + ark + `"`, `"when":[]`, `"version":1`}, "unkn"},
		{"/ark:" + name + "/page/2", "text/html,*/*", "text/html", []string{"&lt;b&gt;Letters", "Anna &amp; Bert", ark},
			"<b>"},
		{"/ark:/" + name + "?info", "text/html", "text/plain", []string{"erc:\nwho: Anna & Bert\n",
			"when: (:unkn)\nwhere: " + ark}, "html"},
	} {
		status, media, text := resolve(t, row.path, row.accept)
		if status != http.StatusOK || !strings.HasPrefix(media, row.media) || strings.Contains(text, row.not) {
			t.Errorf("%s: %d, %s: %s", row.path, status, media, text)
		}
		for _, says := range row.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s: %s; expected %q", row.path, text, says)
			}
		}
	}

	for _, path := range []string{"/ark:/99999/fk4nothing", "/ark:/99999/!"} {
		if status, _, text := resolve(t, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d: %s", path, status, text)
		}
	}

	decided(t, ark, v1.CorrectionRequest{Access: "withdraw", Reason: "private matters"}, 2)
	status, _, text := resolve(t, "/ark:/"+name, "text/html")
	if status != http.StatusGone || !strings.Contains(text, "withdrawn since") || strings.Contains(text, "private") ||
		strings.Contains(text, "Letters") {
		t.Errorf("withdrawn: %d: %s", status, text)
	}
}

// resolve asks for an address of the API as anybody can.
func resolve(t *testing.T, path, accept string) (status int, media, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(client.URL, "/")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
}
