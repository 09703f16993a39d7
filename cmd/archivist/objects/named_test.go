package objects

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestNamed: an object is named by its ARK, in any form, or by a local id with a collection; an ARK is never looked up
// as a local id.
func TestNamed(t *testing.T) {
	asked := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		out := v1.List[v1.Object]{Items: []v1.Object{}}
		if r.URL.Query().Get("localId") == "letters" {
			out.Items = append(out.Items, v1.Object{ARK: "ark:/99999/fk4x"})
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(srv.Close)
	a := &command.App{Ctx: t.Context(), Client: &v1.Client{URL: srv.URL, HTTP: srv.Client()}}
	for _, k := range []struct {
		name named
		ark  string
		asks string
		kind fault.Kind
		says string
	}{
		{named{"letters", "demo"}, "ark:/99999/fk4x", "/v1/objects?collection=demo&localId=letters", "", ""},
		{named{"ark:99999/fk4y", ""}, "ark:/99999/fk4y", "", "", ""},
		{named{"ark:/99999/fk4y", "demo"}, "ark:/99999/fk4y", "", "", ""},
		{named{"letters", ""}, "", "", fault.Invalid, `or give a local id with its collection: "letters" -c COLLECTION`},
		{named{"diary", "demo"}, "", "/v1/objects?collection=demo&localId=diary", fault.NotFound,
			`no object of the collection demo has the local id "diary"`},
	} {
		asked = ""
		got, err := k.name.ark(a)
		if got != k.ark || asked != k.asks || (k.kind == "") != (err == nil) ||
			err != nil && (!fault.Is(err, k.kind) || !strings.Contains(err.Error(), k.says)) {
			t.Errorf("%+v: %q, asked %q, %v", k.name, got, asked, err)
		}
	}
}
