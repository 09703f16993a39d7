package api

import (
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/formats/ark"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
)

// ARKPath begins the path by which ARKs resolve; the other form of ARKs, "ark:NAAN/name", resolves for the NAAN of the
// archive. (Source: the ARK identifier scheme, draft-kunze-ark, sections 2.2 and 5.)
const ARKPath = "/ark:"

// resolved is what everybody may know of an object.
type resolved struct {
	ARK       string   `json:"ark"`
	Who       []string `json:"who"`
	What      []string `json:"what"`
	When      []string `json:"when"`
	Version   int      `json:"version"`
	Modified  string   `json:"modified"`
	Withdrawn string   `json:"withdrawn,omitempty"` // since when its files are not given out

	EmbargoUntil string `json:"embargoUntil,omitempty"` // the last day on which they are not
}

// resolver registers the routes of ARKs. They are open to everybody, so they are there only if the deployment says so,
// and are not in the OpenAPI document: browsers follow them, not programs.
func (a *API) resolver(mux *http.ServeMux) {
	if !a.Resolves {
		return
	}
	mux.HandleFunc("GET "+ARKPath+"/{naan}/{name...}", func(w http.ResponseWriter, r *http.Request) {
		a.resolve(w, r, r.PathValue("naan")+"/"+r.PathValue("name"))
	})
	if naan := a.Identity.NAAN; naan != "" {
		mux.HandleFunc("GET "+ARKPath+naan+"/{name...}", func(w http.ResponseWriter, r *http.Request) {
			a.resolve(w, r, naan+"/"+r.PathValue("name"))
		})
	}
}

// resolve describes an object: as a page for browsers, as JSON, or, with the inflection ?info, as an ERC record.
func (a *API) resolve(w http.ResponseWriter, r *http.Request, name string) {
	// What is behind the name of an object belongs to it: "…/fk4xyz/page2", "…/fk4xyz.pdf".
	naan, rest, _ := strings.Cut(name, "/")
	object, _, _ := strings.Cut(rest, "/")
	object, _, _ = strings.Cut(object, ".")
	id, err := ark.Parse("ark:/" + naan + "/" + object)
	if err != nil {
		newRefusal(notFound, "this is not an ARK: "+err.Error()).write(w)
		return
	}

	is, err := a.described(r.Context(), id.String())
	switch {
	case fault.Is(err, fault.NotFound):
		newRefusal(notFound, "there is no object "+id.String()+" here").write(w)
		return
	case err != nil:
		a.Log.Error("an ARK could not be resolved", "ark", id.String(), "error", err)
		newRefusal(internalError, defect).write(w)
		return
	}

	status := http.StatusOK
	if is.Withdrawn != "" {
		status = http.StatusGone
	}
	is.write(w, r, status)
}

// described is what everybody may know of an object.
func (a *API) described(ctx context.Context, id string) (is resolved, err error) {
	row, err := a.Inventory.Object(ctx, id)
	if err != nil {
		return is, err
	}

	is = resolved{ARK: row.ARK, Version: row.HeadOf, Modified: ingest.Timestamp(row.Modified), Who: []string{},
		What: []string{}, When: []string{}, EmbargoUntil: row.EmbargoUntil(a.Queue.Now())}
	if why := withdrawalOf(row); why != "" {
		is.Withdrawn, is.EmbargoUntil = why, ""
		return is, nil
	}

	stored, err := a.head(ctx, row.ARK)
	if err != nil {
		return is, err
	}
	d, err := aip.Head(a.Root, stored).Description(ctx)
	is.Who, is.What, is.When = shown(d.Who), shown(d.What), shown(d.When)
	return is, err
}

// withdrawalOf is since when an object is withdrawn, "" if it is not. The reason is not for everybody.
func withdrawalOf(o *inventory.Object) string {
	if o.Withdrawal == nil {
		return ""
	}
	return o.Withdrawal.At
}

// shown are the values that say something.
func shown(values []string) []string {
	out := []string{}
	for _, v := range values {
		if !erc.Absent(v) {
			out = append(out, v)
		}
	}
	return out
}

// resolvePage is the page of an object.
var resolvePage = template.Must(template.New("").Funcs(template.FuncMap{
	"visible": terminal.Visible}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{range .What}}{{visible .}} {{end}}{{.ARK}}</title></head><body>
<h1>{{range .What}}{{visible .}}<br>{{else}}{{.ARK}}{{end}}</h1>
{{if .Withdrawn}}<p>This object is withdrawn since {{.Withdrawn}}. It is preserved, and its files are not given out.</p>{{end}}
{{if .EmbargoUntil}}<p>Its files are under an embargo until {{.EmbargoUntil}}. They are preserved.</p>{{end}}
<dl>{{range .Who}}<dt>Creator</dt><dd>{{visible .}}</dd>{{end}}{{range .When}}<dt>Date</dt><dd>{{visible .}}</dd>{{end}}
<dt>Identifier</dt><dd>{{.ARK}}</dd><dt>Version</dt><dd>{{.Version}}, {{.Modified}}</dd></dl>
</body></html>
`))

// write answers with the form that is asked for.
func (is resolved) write(w http.ResponseWriter, r *http.Request, status int) {
	w.Header().Add("Vary", "Accept")
	_, info := r.URL.Query()["info"]
	switch {
	case info:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		is.record(w)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		_ = resolvePage.Execute(w, is) // the client has disconnected
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(is) // the client has disconnected
	}
}

// record writes an ERC record (draft-kunze-erc): an absent element says that it is not known.
func (is resolved) record(w http.ResponseWriter) {
	text := func(values []string) string {
		if len(values) == 0 {
			return "(:unkn)"
		}
		return strings.Join(values, "; ")
	}
	_, _ = w.Write([]byte("erc:\n")) // the client has disconnected
	_ = anvl.Write(w, anvl.Element{Name: "who", Value: text(is.Who)}, anvl.Element{Name: "what", Value: text(is.What)},
		anvl.Element{Name: "when", Value: text(is.When)}, anvl.Element{Name: "where", Value: is.ARK},
		anvl.Element{Name: "withdrawn", Value: is.Withdrawn},
		anvl.Element{Name: "embargoUntil", Value: is.EmbargoUntil})
}
