package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// homes are the pages of the kinds of things, and where the API acts on one; ID is to be replaced.
var homes = map[string]struct{ page, api string }{
	"job":        {"jobs/ID", "/v1/jobs/ID/actions"},
	"batch":      {"batches/ID", "/v1/batches/ID/actions"},
	"queue":      {"queue", "/v1/queue/actions"},
	"storage":    {"queue", "/v1/storage/actions"},
	"collection": {"collections/ID", "/v1/collections/ID/actions"},
	"operation":  {"operations/ID", "/v1/operations/ID/actions"},
}

// asked is a form by which a person acts.
type asked struct {
	Kind, ID string
	Act      act
	v1.Action
	Target string
	Key    string // of the request
}

// place is the page of the thing, below /console/, or where the API acts on it.
func (a asked) place(pattern string) string {
	return strings.Replace(pattern, "ID", url.PathEscape(a.ID), 1)
}

// preview is what an action would do, to be confirmed.
type preview struct {
	Asked  asked
	Result v1.ActionResult
	Page   string // of the thing
}

// reading reads a form by which a person acts on one thing.
func (v *visit) reading(key string) (a asked, err error) {
	a.Target, a.Key = v.PostForm.Get("target"), key
	a.Kind, a.ID, _ = strings.Cut(a.Target, ":")
	if _, known := homes[a.Kind]; !known || a.ID == "." || a.ID == ".." { // these would lead to another address
		return a, fault.New(fault.Invalid, "there is nothing to act on")
	}
	var known bool
	a.Act, known = actOf(a.Kind, v.PostForm.Get("action"))
	if !known {
		return a, fault.New(fault.Invalid, "there is no such action on this")
	}
	a.Action, err = v.action(a.Act)
	return a, err
}

// action reads what all forms of actions have. Without the confirmation that an act needs which loses something, it is
// a dry run, which asks for it. Until is what a browser's field of a time has: a time without a zone, which is UTC
// here, as its label says.
func (v *visit) action(of act) (a v1.Action, err error) {
	p := v.PostForm
	a = v1.Action{
		Action:  p.Get("action"),
		Reason:  strings.TrimSpace(p.Get("reason")),
		Confirm: p.Get("confirm") != "",
		DryRun:  p.Get("step") != "do" || of.Loses && p.Get("confirm") == "",
	}
	if text := strings.TrimSpace(p.Get("until")); text != "" {
		var t time.Time
		var err error
		for _, layout := range []string{"2006-01-02T15:04", time.DateOnly, time.RFC3339} {
			if t, err = time.Parse(layout, text); err == nil {
				break
			}
		}
		if err != nil {
			return a, fault.New(fault.Invalid,
				"until: found %q; expected a time in UTC: YYYY-MM-DDTHH:MM", cut(text))
		}
		a.Until = t.UTC().Format(time.RFC3339)
	}
	if text := strings.TrimSpace(p.Get("priority")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return a, fault.New(fault.Invalid,
				"priority: found %q; expected a number from 0 to 999", cut(text))
		}
		a.Priority = &n
	}
	return a, nil
}

// actOn acts on one thing: first it says what would be done, then it does it.
func (c *Console) actOn(v *visit, key string) error {
	a, err := v.reading(key)
	if err != nil {
		return err
	}
	home := homes[a.Kind]
	if a.Kind == "operation" { // it has no dry run: nothing is lost by either action
		_, err := call[v1.Operation](v, http.MethodPost, a.place(home.api),
			v1.OperationAction{Action: a.Act.Name, Reason: a.Reason}, key)
		if err == nil {
			redirect(v, a.place(home.page)+"?did="+a.Act.Name)
		}
		return err
	}

	if a.DryRun {
		key = ""
	}
	out, err := call[v1.ActionResult](v, http.MethodPost, a.place(home.api), a.Action, key)
	switch {
	case err != nil:
		return err
	case a.DryRun:
		c.show(v, http.StatusOK, "preview", view{Title: a.Act.Title + "?", Still: true,
			Body: preview{a, out, a.place(home.page)}, Command: commandOf(a)})
	case out.Operation != "":
		redirect(v, "operations/"+url.PathEscape(out.Operation))
	case out.Next != nil:
		redirect(v, "operations/new?did="+a.Act.Name+"&"+nextQuery(*out.Next))
	case !out.Changed:
		redirect(v, a.place(home.page)+"?did=nothing")
	default:
		redirect(v, a.place(home.page)+"?did="+a.Act.Name)
	}
	return nil
}

// nextQuery asks for the form of a bulk operation that usually follows.
func nextQuery(b v1.Bulk) string {
	own := ""
	if b.Filter.KeepOwnHolds {
		own = "yes"
	}
	f := b.Filter
	return query("action", b.Action, "batch", f.Batch, "collection", f.Collection, "state", f.State,
		"message", f.Message, "before", f.Before, "keepOwnHolds", own)
}

// commandOf is the command that does the same.
func commandOf(a asked) string {
	out := "archivist " + a.Kind + " " + a.Act.Name
	if a.Kind == "storage" {
		out = "archivist queue " + a.Act.Name + "-storage"
	}
	if a.ID != "" {
		out += " " + quoted(a.ID)
	}
	return out + optionsOf(a.Action)
}

// optionsOf are the options of a command that does an action.
func optionsOf(a v1.Action) (out string) {
	if a.Priority != nil {
		out += " --priority " + strconv.Itoa(*a.Priority)
	}
	out += option("--until", a.Until)
	if a.Confirm {
		out += " --confirm"
	}
	return out + option("--reason", a.Reason)
}
