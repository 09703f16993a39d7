package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// correcting is the page on which the description of an object is corrected.
type correcting struct {
	ARK    string
	Path   string // of the object, below /console/
	N      int    // the version that the form has; the next one is made
	Fields []described
	Local  string // the local ids that the object has, one in each line
	Ids    string // those that it is to have
	Listed int    // how many are listed, if it may have more; else 0
	Reason string
	Wrong  map[string]string // what is wrong with fields, by their names
	Other  string            // what else is wrong
	Sure   bool              // what is changed is shown, to be confirmed
	Change []changed
	Next   int
}

// described is a field of a description: the creator, the title or the date.
type described struct {
	Name, Label string
	Is          string // what the version says, several values with semicolons
	Count       int    // of the values
	Value       string // what is written in the form
}

// changed is a change, as the preview shows it.
type changed struct{ What, Was, Is string }

// mostLocalIDs is how many local ids the API lists of an object.
const mostLocalIDs = 100

// showCorrect shows the form that corrects the description of an object, with what its newest version says.
func (c *Console) showCorrect(v *visit) (view, error) {
	p, err := v.correctingOf(v.ark())
	return p.view(), err
}

// correctingOf reads what an object is described by. An error also says that the visitor may not correct it.
func (v *visit) correctingOf(ark string) (p correcting, err error) {
	if !v.may(access.Administrator) {
		return p, fault.New(fault.Denied, "corrections need the role %s", access.Administrator)
	}
	o, err := v.api.Object(v.Context(), ark)
	if err != nil {
		return p, err
	}
	d, err := v.api.Description(v.Context(), o.ARK, o.Version)
	if err != nil {
		return p, err
	}
	p = correcting{ARK: o.ARK, Path: pageOfObject(o.ARK), N: o.Version, Next: o.Version + 1,
		Local: strings.Join(o.LocalIDs, "\n")}
	if len(o.LocalIDs) >= mostLocalIDs {
		p.Listed = len(o.LocalIDs)
	}
	p.Ids = p.Local
	for _, f := range []struct {
		name, label string
		values      []string
	}{{"who", "Creator", d.Who}, {"what", "Title", d.What}, {"when", "Date", d.When}} {
		is := strings.Join(f.values, "; ")
		p.Fields = append(p.Fields, described{Name: f.name, Label: f.label, Is: is,
			Count: len(f.values), Value: is})
	}
	return p, nil
}

// view is the page.
func (p correcting) view() view {
	heading := "Correct the description"
	if p.Sure {
		heading += "?"
	}
	in := p.request()
	command := fmt.Sprintf("archivist object correct %s", p.ARK)
	command += option("--who", in.Who) + option("--what", in.What) + option("--when", in.When)
	for _, id := range in.AddLocal {
		command += option("--add-local-id", id)
	}
	for _, id := range in.WithdrawLocal {
		command += option("--withdraw-local-id", id)
	}
	command += fmt.Sprintf(" --if-version %d", p.N) + option("--reason", cmp.Or(p.Reason, "TEXT"))
	return view{Title: heading, Body: p, Still: true, Command: command}
}

// request is the correction: only what was changed.
func (p correcting) request() v1.CorrectionRequest {
	in := v1.CorrectionRequest{IfVersion: p.N, Reason: p.Reason}
	to := map[string]*string{"who": &in.Who, "what": &in.What, "when": &in.When}
	for _, f := range p.Fields {
		if f.Value != f.Is {
			*to[f.Name] = f.Value
		}
	}
	had, has := linesOf(p.Local), linesOf(p.Ids)
	in.AddLocal = slices.DeleteFunc(slices.Clone(has), func(id string) bool {
		return slices.Contains(had, id)
	})
	in.WithdrawLocal = slices.DeleteFunc(slices.Clone(had), func(id string) bool {
		return slices.Contains(has, id)
	})
	return in
}

// changes are what the correction changes, for people.
func (p correcting) changes() (all []changed) {
	for _, f := range p.Fields {
		if f.Value != f.Is {
			all = append(all, changed{f.Label, f.Is, f.Value})
		}
	}
	in := p.request()
	for _, id := range in.AddLocal {
		all = append(all, changed{"Local id", "", id})
	}
	for _, id := range in.WithdrawLocal {
		all = append(all, changed{"Local id", id, ""})
	}
	return all
}

// linesOf are the lines of a text that have something.
func linesOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		id := strings.TrimSpace(line)
		if id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// correct shows what a correction changes, and then makes it: a batch of one job. Nothing is sent if the object has
// another version than the form; what was written is shown again then.
func (c *Console) correct(v *visit, key string) error {
	id, err := v.sentARK()
	if err != nil {
		return err
	}
	p, err := v.correctingOf(id)
	if err != nil {
		return err
	}
	p.written(v.PostForm)
	if made, err := v.madeBefore(p); made != "" || err != nil {
		if err == nil {
			redirect(v, "batches/"+url.PathEscape(made)+"?did=corrected")
		}
		return err
	}
	status := p.check(v.PostForm)
	if status == http.StatusOK {
		if v.PostForm.Get("step") == "do" {
			made, err := v.api.Correct(v.Context(), p.ARK, p.request(), key)
			switch {
			case err == nil:
				redirect(v, "batches/"+url.PathEscape(made.ID)+"?did=corrected")
				return nil
			case v.via.refused || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Denied):
				return err
			}
			status = fault.At(err).Status
			p.Wrong, p.Other = faultsOf(err, map[string]string{"who": "who", "what": "what", "when": "when",
				"addLocal": "ids", "withdrawLocal": "ids", "reason": "reason"})
		} else {
			p.Sure, p.Change = true, p.changes()
		}
	}
	c.show(v, status, "correct", p.view())
	return nil
}

// madeBefore is the batch that has made the newest version, if this form asked for that before:
// the version follows the one of the form, it says what the form says, and its batch has the
// reason and the visitor. Else it is "".
func (v *visit) madeBefore(p correcting) (batch string, err error) {
	before := fmt.Sprint(p.N - 1)
	if v.PostForm.Get("step") != "do" || v.PostForm.Get("n") != before || len(p.changes()) > 0 {
		return "", nil
	}
	jobs, err := v.api.JobPage(v.Context(), v1.Filter{ARK: p.ARK}, "")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(jobs.Items, func(j v1.Job) bool { return j.Version == p.N })
	if i < 0 {
		return "", nil
	}
	made, err := v.api.Batch(v.Context(), jobs.Items[i].Batch)
	if fault.Is(err, fault.NotFound) { // it is removed some time after it has ended
		return "", nil
	}
	if err == nil && made.Note == p.Reason && v.isActor(made.Submitter) {
		batch = made.ID
	}
	return batch, err
}

// isActor reports whether an actor of events is the visitor: the subject of the token, and what
// follows it. Where nobody signs in, all are one.
func (v *visit) isActor(actor string) bool {
	return v.is.Subject == "" || actor == v.is.Subject || strings.HasPrefix(actor, v.is.Subject+" (")
}

// written takes what the form has.
func (p *correcting) written(form url.Values) {
	for i := range p.Fields {
		p.Fields[i].Value = strings.TrimSpace(form.Get(p.Fields[i].Name))
	}
	p.Ids = strings.Join(linesOf(form.Get("ids")), "\n")
	p.Reason = strings.TrimSpace(form.Get("reason"))
}

// check finds out what is wrong with what was written, and returns the status of the page: 200 if nothing is.
func (p *correcting) check(form url.Values) int {
	p.Wrong = map[string]string{}
	if form.Get("n") != fmt.Sprint(p.N) {
		p.Other = fmt.Sprintf("The object has a version since you opened the form: it is at version %d now. Compare "+
			"what you wrote with what it says, and send it again if it differs.", p.N)
		return fault.Edges[fault.Stale].Status
	}
	for _, f := range p.Fields {
		if f.Value == "" && f.Is != "" {
			p.Wrong[f.Name] = "an empty field changes nothing. To withdraw the value, say why " +
				"there is none: (:unkn) if it is not known"
		}
	}
	if p.Reason == "" {
		p.Wrong["reason"] = "say why the object is corrected"
	}
	switch {
	case len(p.Wrong) > 0:
	case len(p.changes()) == 0:
		p.Other = "Nothing is changed: all fields are as they were."
	default:
		return http.StatusOK
	}
	return fault.Edges[fault.Invalid].Status
}
