package console

import (
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// Deeds are the addresses of the forms of all deeds, below /console/, with a reason and a value of
// each field: text is that of fields in which anything can be written.
func Deeds(text string) (all []string) {
	values := map[string]string{"number": "1", "day": "2031-01-02", "flag": "yes", "text": text,
		"names": "First_done, Second_done", "values": "NAME=" + text, "filter": "Object+Modify"}
	for kind, k := range deeds {
		for _, d := range k.Deeds {
			q := url.Values{"kind": {kind}, "deed": {d.Name}, "reason": {text}}
			ids := map[string]bool{}
			for _, at := range placeOfID.FindAllString(k.Path+k.Page+d.Path, -1) {
				part := []string{"99999", "fk4tq65d6k"}[min(len(ids), 1)]
				if kind == "revision" && len(ids) == 1 {
					part = "1"
				}
				if !ids[at] {
					q.Add("id", part)
				}
				ids[at] = true
			}
			for _, f := range d.Fields {
				if f.Form == "choice" {
					values["choice"] = f.Choices[0]
				}
				if f.Form != "" {
					q.Set(f.Name, values[f.Form])
				}
			}
			all = append(all, "deed?"+q.Encode())
		}
	}
	return all
}

// ActCommands are the commands of all actions on things, with all that they ask for.
func ActCommands(text string) (all []string) {
	for kind, some := range acts {
		for _, a := range some {
			is := asked{Kind: kind, Act: a, Action: v1.Action{Reason: text}}
			if kind != "queue" && kind != "storage" {
				is.ID = "sample"
			}
			if a.Until {
				is.Action.Until = "2031-01-02T03:04:05Z"
			}
			if a.Priority {
				n := 5
				is.Action.Priority = &n
			}
			is.Action.Confirm = a.Loses
			all = append(all, commandOf(is))
		}
	}
	return all
}

// InTemplates are the commands that templates have, beside those of pages. What is filled in is 1.
func InTemplates() (all []string, err error) {
	found := regexp.MustCompile(`<code[^>]*>(archivist [^<]*)</code>`)
	choice := regexp.MustCompile(`\{\{if [^}]*\}\}(\w+)\{\{else\}\}\w+\{\{end\}\}`)
	inside := regexp.MustCompile(`\{\{[^}]*\}\}`)
	err = fs.WalkDir(files, "templates", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		for _, m := range found.FindAllStringSubmatch(string(text), -1) {
			is := strings.ReplaceAll(m[1], "{{.ARK}}", "ark:/99999/fk4tq65d6k")
			is = choice.ReplaceAllString(is, "$1")
			all = append(all, inside.ReplaceAllString(is, "1"))
		}
		return err
	})
	return all, err
}

// Sentence and Brief are what templates make of texts.
var Sentence, Brief = sentence, brief

// UnmarkedSentences are uses in templates of a message, a reason or the like by a function that
// leaves its times as they are.
func UnmarkedSentences() (all []string, err error) {
	unmarked := regexp.MustCompile(`\{\{(?:shown|cut) [$.A-Za-z]*\.(?:Reason|Message|Why|WhyNot|` +
		`Unread|Problem|Warning|Waiting|Summary|Other)\}\}`)
	err = fs.WalkDir(files, "templates", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		for _, use := range unmarked.FindAllString(string(text), -1) {
			all = append(all, path+": "+use)
		}
		return err
	})
	return all, err
}

// PageOfCommand is the page that shows what a command of the status shows.
var PageOfCommand = pageOfCommand

// LaterOutput is where a page of output with what the API has from a part on leads to.
func LaterOutput(log v1.TaskLog, from string) string {
	var t task
	t.page(log, from, 0, func(name, value string) string { return name + "=" + value })
	return t.Later
}

// Detail is what is said of the detail of an event.
var Detail = detail
