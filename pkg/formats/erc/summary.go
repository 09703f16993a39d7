package erc

import "unicode/utf8"

// maxSummary limits the summary of an element, in bytes. A row in the table has several of
// them, and at most 400 KB.
const maxSummary = 2000

// Summary is an element on a row: its values, cut between characters if they are long. It is
// "" if all are absent; values are separated by "; ".
func Summary(values []string) string {
	text := ""
	for _, v := range values {
		if Absent(v) {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += v
		if len(text) > maxSummary {
			break
		}
	}

	if len(text) <= maxSummary {
		return text
	}

	const more = "…"
	end := maxSummary - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
