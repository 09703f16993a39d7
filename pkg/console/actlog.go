package console

import (
	"net/http"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// actList is the page of what people did.
type actList struct {
	Of          v1.ActFilter
	Wrong       string // why the filter or the time was not accepted
	Examples    []string
	Items       []v1.Act
	First, Next string
	Looked      string // how far back the page has looked, if it is not the last
}

// examplesOfActs are filters that a field suggests.
var examplesOfActs = []string{"Job|Batch|Operation+All", "Collection|Queue+All",
	"Object|Batch+All", "Job|Batch+Delete", "Archive|Revision|Task+All",
	"ResearchProject|Episode|Clip+All", "Consumer|Component|ComponentItem+All", "Token+All",
	`All+All{parent="NAME"}`}

// showActs shows what people did, and why, over all logs, the newest first.
func (c *Console) showActs(v *visit) (view, error) {
	of := v1.ActFilter{Actor: v.field("actor"), Filter: v.field("filter"), Before: v.field("before")}
	d := actList{Of: of, Examples: examplesOfActs}
	page, err := v.api.ActPage(v.Context(), d.Of, v.field("cursor"))
	status := http.StatusOK
	if fault.Is(err, fault.Invalid) && (d.Of.Filter != "" || d.Of.Before != "") {
		d.Wrong, err = plain(err.Error()), nil
		status = http.StatusUnprocessableEntity
	}
	d.Items, d.Looked = page.Items, page.Looked
	if v.field("cursor") != "" {
		d.First = "?" + query("actor", d.Of.Actor, "filter", d.Of.Filter, "before", d.Of.Before)
	}
	d.Next = v.more("cursor", page.Cursor)

	command := joined("archivist event acts", option("--actor", of.Actor), option("--filter", of.Filter),
		option("--before", of.Before))
	return view{Title: "Who did what", Body: d, Command: command, Status: status,
		Still: d.First != "" || d.Wrong != "",
		Said:  terminal.Count(len(d.Items), "act") + " on this page."}, err
}

// Filtered reports whether the page leaves something out.
func (d actList) Filtered() bool { return d.Of != v1.ActFilter{} }
