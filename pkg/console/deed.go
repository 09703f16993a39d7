package console

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// doing is a deed as it is asked for.
type doing struct {
	deedOffer
	Values  url.Values // of the fields
	Reason  string
	Wrong   string // why the API did not accept it
	Field   string // that is wrong, if that is known
	Confirm bool   // it only has to be confirmed
	Trial   *v1.FilterTrialResult
	Page    string
}

// Value is that of a field.
func (d doing) Value(name string) string { return d.Values.Get(name) }

// doingOf reads which deed on which thing is meant.
func doingOf(from url.Values) (d doing, err error) {
	d.Kind, d.IDs, d.Values = from.Get("kind"), from["id"], from
	d.Reason = strings.TrimSpace(from.Get("reason"))
	var known bool
	d.deed, known = deedOf(d.Kind, from.Get("deed"))
	all := deeds[d.Kind]
	wrong := func(id string) bool { return id == "" || id == "." || id == ".." } // these would lead to another address
	if !known || len(d.IDs) != all.parts(d.deed) || slices.ContainsFunc(d.IDs, wrong) {
		return d, fault.New(fault.Invalid, "there is no such action on this")
	}
	d.Page = addressOf(all.Page, d.IDs)
	return d, nil
}

// parts is how many parts the id has of what a deed is done to.
func (k deedKind) parts(d deed) (needs int) {
	for _, at := range placeOfID.FindAllString(k.Path+k.Page+d.Path, -1) {
		n, _ := strconv.Atoi(strings.Trim(at, "{}"))
		needs = max(needs, n+1)
	}
	return needs
}

// body is the request of the API. An error is an Invalid that begins with the name of the field.
func (d doing) body() (map[string]any, error) {
	out := map[string]any{"reason": d.Reason}
	if d.Path == "" {
		out["action"] = cmp.Or(d.Action, d.Name)
	}
	for _, f := range d.Fields {
		text := strings.TrimSpace(d.Value(f.Name))
		if f.Form == "" {
			text = f.Value
		}
		if text == "" {
			continue
		}
		value, err := f.value(text)
		if err != nil {
			return nil, err
		}
		out[f.Name] = value
	}
	return out, nil
}

// value is what is sent of a field. An error is an Invalid that begins with its name.
func (f asking) value(text string) (any, error) {
	switch f.Form {
	case "number":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: found %q; expected a whole number", f.Name, cut(text))
		}
		return n, nil
	case "flag":
		return true, nil
	case "names":
		return namesIn(text), nil
	case "values":
		values := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if !ok {
				return nil, fault.New(fault.Invalid, "%s: found %q; expected NAME=VALUE", f.Name, cut(line))
			}
			values[name] = value
		}
		return values, nil
	case "":
		if text == "true" {
			return true, nil
		}
		if f.List {
			return []string{text}, nil
		}
	}
	return text, nil
}

// command is the command that does the same. What is still to be written is named in capitals.
func (d doing) command() string {
	if d.Command == "" {
		return ""
	}
	out, options, last := filledIn(d.Command, d.IDs, quoted), "", []string{}
	for _, f := range d.Fields {
		switch value := f.inCommand(d.Value(f.Name)); {
		case f.Form == "names":
			last = append(last, namesIn(value)...)
		case f.Option == "" && f.Form != "" && value != "":
			last = append(last, value)
		default:
			options += f.options(value)
		}
	}
	options += option("--reason", cmp.Or(d.Reason, "TEXT"))
	args := arguments(last...)
	if strings.HasPrefix(args, " -- ") { // no option can follow
		return out + options + args
	}
	return out + args + options
}

// inCommand is a value of the field as a command has it: of one that is needed, and is not there yet, the name.
func (f asking) inCommand(value string) string {
	if value == "" && f.Required {
		return strings.ToUpper(cmp.Or(strings.TrimLeft(f.Option, "-"), f.Name))
	}
	return value
}

// options are the options of a command for a value of the field, each after a blank.
func (f asking) options(value string) (out string) {
	switch {
	case f.Option == "" || f.Form == "flag" && value == "":
		return ""
	case f.Form == "flag" || f.Form == "":
		return " " + f.Option
	case f.Form == "values":
		for line := range strings.Lines(value) {
			out += option(f.Option, strings.TrimSpace(line))
		}
		return out
	}
	return option(f.Option, value)
}

// view is the page of the form of a deed.
func (d doing) view() view {
	heading := d.Title
	if d.Confirm {
		heading += "?"
	}
	return view{Title: heading, Body: d, Still: true, Command: d.command()}
}

// showDeed shows the form of a deed. Its fields can be given by the address.
func (c *Console) showDeed(v *visit) (view, error) {
	d, err := v.doing(v.URL.Query())
	return d.view(), err
}

// doing reads which deed is meant. An error also says that the visitor may not do it.
func (v *visit) doing(from url.Values) (doing, error) {
	d, err := doingOf(from)
	if err == nil && !v.may(d.Role) {
		err = fault.New(fault.Denied, "this needs the role %s", d.Role)
	}
	return d, err
}

// actDeed does a deed. What is lost, or what a filter selects, is shown first. A form that the API does
// not accept is shown again, with what is wrong.
func (c *Console) actDeed(v *visit, key string) error {
	d, err := v.doing(v.PostForm)
	if err != nil {
		return err
	}
	body, err := d.body()
	to := ""
	switch {
	case err != nil:
	case !d.decided(v.PostForm):
		err = d.try(v)
		if err == nil && (d.Loses || d.Trial != nil) {
			d.Confirm = true
			c.show(v, http.StatusOK, "deed", d.view())
			return nil
		}
	}
	if err == nil {
		to, err = d.do(v, body, key)
	}
	if fault.Is(err, fault.Invalid) && !v.via.refused {
		d.Wrong = err.Error()
		d.Field = d.fieldOf(d.Wrong)
		c.show(v, fault.At(err).Status, "deed", d.view())
		return nil
	}
	if err == nil {
		redirect(v, to)
	}
	return err
}

// decided reports whether a form asks for the deed itself: what loses something has to be confirmed.
func (d doing) decided(form url.Values) bool {
	return form.Get("step") == "do" && (!d.Loses || form.Get("sure") != "")
}

// do asks the API to do a deed, and returns the address of the page that follows, below /console/.
func (d doing) do(v *visit, body map[string]any, key string) (string, error) {
	made, err := call[struct {
		ID string `json:"id"`
	}](v, http.MethodPost, addressOf(cmp.Or(d.Path, deeds[d.Kind].Path), d.IDs), body, key)
	to := d.Page
	if d.To != "" {
		to = addressOf(strings.Replace(d.To, "{id}", url.PathEscape(made.ID), 1), d.IDs)
	}
	return telling(to, d.Kind+"."+d.Name), err
}

// try tries the filter of a deed, if it has one, on what is kept of the log.
func (d *doing) try(v *visit) error {
	i := slices.IndexFunc(d.Fields, func(f asking) bool { return f.Form == "filter" })
	if i < 0 || d.Value(d.Fields[i].Name) == "" {
		return nil
	}
	out, err := v.api.TryFilter(v.Context(), v1.FilterTrial{Filter: d.Value(d.Fields[i].Name),
		Partition: d.Value("partition")})
	d.Trial = &out
	if err != nil {
		return fault.New(fault.Of(err), "%s: %s", d.Fields[i].Name,
			strings.TrimPrefix(err.Error(), "filter: "))
	}
	return nil
}

// KindsOfDeeds are addresses of forms of deeds, below /console/, that together have each kind of field, and lose
// something or not. The things to which they are done do not exist.
func KindsOfDeeds() (all []string) {
	known := map[string]bool{}
	for _, kind := range slices.Sorted(maps.Keys(deeds)) {
		for _, d := range deeds[kind].Deeds {
			before := len(known)
			known[fmt.Sprint(d.Loses)] = true
			for _, f := range d.Fields {
				known[f.Form] = true
			}
			if len(known) == before {
				continue
			}
			q := url.Values{"kind": {kind}, "deed": {d.Name}}
			for range deeds[kind].parts(d) {
				q.Add("id", "1")
			}
			all = append(all, "deed?"+q.Encode())
		}
	}
	return all
}

// fieldOf is the field of the form that a message of the API is about, "" if it is about no such field.
func (d doing) fieldOf(message string) string {
	for _, f := range d.Fields {
		if strings.HasPrefix(message, f.Name+":") || strings.Contains(message, "body."+f.Name) {
			return f.Name
		}
	}
	if strings.Contains(message, "body.reason") || strings.HasPrefix(message, "reason") {
		return "reason"
	}
	return ""
}

// namesIn are the names of a list with commas.
func namesIn(text string) (all []string) {
	for name := range strings.SplitSeq(text, ",") {
		trimmed := strings.TrimSpace(name)
		if trimmed != "" {
			all = append(all, trimmed)
		}
	}
	return all
}
