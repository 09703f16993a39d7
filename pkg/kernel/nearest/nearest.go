// Package nearest finds what a misspelt name may have been meant to be.
package nearest

import "strings"

// To is the first of the names that differ from a text in the fewest characters, and in at
// most a third of them; "" if there is none. Case does not count. The text is to be short: the time grows with its
// length.
func To(text string, names []string) string {
	best, least := "", max(1, min(len(text), 60)/3)+1
	for _, name := range names {
		if n := distance(strings.ToLower(text), strings.ToLower(name)); n < least {
			best, least = name, n
		}
	}
	return best
}

// Within are the names that differ from a text in at most so many characters, and in at least one, in their order. Case
// does not count.
func Within(most int, text string, names []string) (near []string) {
	for _, name := range names {
		if name != text && distance(strings.ToLower(text), strings.ToLower(name)) <= most {
			near = append(near, name)
		}
	}
	return near
}

// distance is the number of bytes to insert, remove or replace (source: Levenshtein). It keeps one
// row of the table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
