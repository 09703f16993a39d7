package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// functions are what templates can call.
var functions = template.FuncMap{
	"shown": shown, "cut": cut, "sentence": sentence, "brief": brief,
	"size": terminal.Size, "number": number[int64], "clock": clock,
	"count": number[int], "counted": counted, "utc": utc, "at": at, "tone": tone, "seconds": seconds,
	"path": url.PathEscape, "detail": detail, "pairs": pairs, "list": texts,
	"marks": marks, "objectPage": pageOfObject, "percent": percent,
	"host": host, "title": title, "quoted": quoted, "lasting": lasting,
}

// longest is how many characters of a stored text a list shows. A page of a single thing shows all.
const longest = 160

// cut is a stored text as a list shows it.
func cut(text string) string {
	r := []rune(text)
	if len(r) > longest {
		return shown(string(r[:longest])) + "…"
	}
	return shown(text)
}

// shown is a stored text with its invisible characters made visible.
var shown = terminal.Visible

// number is a number with a comma after each three digits.
func number[N int | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// counted is a number of things, e.g. 1 file, 1,200 files.
func counted(n int, noun string) string {
	return strings.Replace(terminal.Count(n, noun), strconv.Itoa(n), number(n), 1)
}

// utc is a time of the API for people: 2026-11-30 09:30:00 UTC.
func utc(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return shown(text)
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// seconds is a duration for people: 0.4 s, 12 s, 3 min 5 s, 2 h 7 min, 3 d 4 h.
func seconds(n float64) string {
	d := time.Duration(n * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", n)
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// tone is the class of a state, one of four.
func tone(state string) string {
	if class, known := tones[state]; known {
		return class
	}
	switch state {
	case v1.Completed, v1.OperationDone, v1.ItemDone, "success":
		return "good"
	case v1.Failed, v1.ItemRefused, "failure":
		return "bad"
	case v1.Held, v1.OperationInterrupted, v1.Deleted:
		return "warn"
	case v1.Pending, v1.ItemLeft:
		return "rest"
	}
	return "runs"
}

// detail is the detail of an event in one line: its fields with their values, in their order.
func detail(raw json.RawMessage) string {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return cut(string(raw))
	}
	var parts []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		text := string(value)
		_ = json.Unmarshal(value, &text) // what is no text stays as it is written
		text = timeIn(name, text)
		parts = append(parts, fmt.Sprintf("%s %s", name, text))
	}
	return cut(strings.Join(parts, " · "))
}

// timesIn are the fields of details whose numbers are times, in milliseconds since 1970.
var timesIn = []string{"started", "ended", "since", "until", "due", "at", "expires"}

// timeIn is a field of a detail, in ISO 8601 if it is a time as rows have it.
func timeIn(name json.Token, text string) string {
	field, _ := name.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1e12 || ms > 1e13 || !slices.Contains(timesIn, field) {
		return text
	}
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

// at is a field of a form, for what is said of it: wrong is what is wrong with fields, by their
// names.
func at(wrong map[string]string, name string) map[string]any {
	return map[string]any{"Wrong": wrong, "Name": name}
}

// pairs makes the argument of a template of names and values.
func pairs(all ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(all); i += 2 {
		out[fmt.Sprint(all[i])] = all[i+1]
	}
	return out
}

// texts are several texts, for templates.
func texts(all ...string) []string { return all }

// percent is a part of a whole in percent, rounded down: 100 is all.
func percent(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return part * 100 / whole
}

// host is the host of a URL, "" for another text.
func host(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// title is a word with a capital.
func title(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + word[1:]
}

// quoted is an argument of a command of a shell.
func quoted(text string) string {
	if strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@,+", r)
	}) < 0 && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// option is an option of a command with its value, after a blank; "" if there is no value. One that
// begins as an option does is joined to its name: otherwise it would be read as another option.
func option(name, value string) string {
	switch {
	case value == "":
		return ""
	case strings.HasPrefix(value, "-") && strings.HasPrefix(name, "--"):
		return " " + name + "=" + quoted(value)
	case strings.HasPrefix(value, "-"):
		return " " + name + quoted(value)
	}
	return " " + name + " " + quoted(value)
}

// joined is a command with options and arguments, each of which begins with a blank.
func joined(command string, more ...string) string { return command + strings.Join(more, "") }

// arguments are the last arguments of a command, each after a blank. If one begins as an option does,
// it is said that no option follows.
func arguments(all ...string) (out string) {
	for _, text := range all {
		if strings.HasPrefix(text, "-") && !strings.HasPrefix(out, " -- ") {
			out = " --" + out
		}
		out += " " + quoted(text)
	}
	return out
}

// parse reads a time of the API; the zero time for another text.
func parse(text string) time.Time {
	t, _ := time.Parse(time.RFC3339, text) // the API has no others
	return t
}
