package console

import (
	"net/url"
	"strings"
)

// pagesOfCommands are the pages that show what commands of the status show, below /console/, by the
// words of the command. {} is the first argument.
var pagesOfCommands = map[string]string{
	"job list":             "jobs",
	"job show":             "jobs/{}",
	"batch list":           "batches",
	"queue show":           "queue",
	"queue holds":          "queue",
	"operation list":       "operations",
	"operation show":       "operations/{}",
	"event list":           "events",
	"consumer list":        "consumers",
	"consumer show":        "consumers/{}",
	"consumer parked":      "consumers/{}#parked",
	"object preservation":  "components",
	"component list":       "components",
	"component show":       "components/{}",
	"component line":       "components/{}?class=failed#line",
	"archive list":         "archives",
	"archive show":         "archives/{}",
	"research list":        "research",
	"research status":      "research/{}",
	"research differences": "research/{}#differ",
	"research reviews":     "research/{}#reviews",
	"doctor":               "doctor",
	"settings":             "settings",
	"explain":              "jobs/{}", // the status explains jobs
}

// pageOfCommand is the page that shows what a command of the status shows, below /console/; "" if
// there is none.
func pageOfCommand(command string) string {
	words, options := wordsOf(command)
	for n := min(len(words), 3); n > 1; n-- {
		page, known := pagesOfCommands[strings.Join(words[1:n], " ")]
		if !known {
			continue
		}
		if strings.Contains(page, "{}") {
			if len(words) == n {
				return ""
			}
			page = strings.Replace(page, "{}", url.PathEscape(words[n]), 1)
		}
		if state := options["state"]; state != "" { // the API begins it with a capital
			options["state"] = title(state)
		}
		of := query("state", options["state"], "message", options["message"], "filter", options["filter"])
		return withQuery(page, of)
	}
	return ""
}

// withQuery adds a query to an address: before its fragment, after the query that it has.
func withQuery(page, of string) string {
	if of == "" {
		return page
	}
	address, fragment, marked := strings.Cut(page, "#")
	if strings.Contains(address, "?") {
		address += "&" + of
	} else {
		address += "?" + of
	}
	if marked {
		address += "#" + fragment
	}
	return address
}

// wordsOf are the words of a command, and its options with their values, which can be in
// apostrophes.
func wordsOf(command string) (words []string, options map[string]string) {
	options = map[string]string{}
	name := ""
	for rest := strings.TrimSpace(command); rest != ""; rest = strings.TrimSpace(rest) {
		word, after, end := "", "", " "
		if rest[0] == '\'' {
			rest, end = rest[1:], "'"
		}
		word, after, _ = strings.Cut(rest, end)
		rest = after
		switch {
		case name != "":
			options[name], name = word, ""
		case strings.HasPrefix(word, "--"):
			name = word[2:]
		default:
			words = append(words, word)
		}
	}
	return words, options
}
