package terminal

import "strings"

// barWidth is the number of characters between the ends of a bar.
const barWidth = 20

// Bar is a part of a whole as a bar of fixed width: "[===== ]". A whole of 0 is empty; more
// than the whole is full.
func Bar(done, whole int64) string {
	n := int64(0)
	if whole > 0 {
		n = barWidth * min(done, whole) / whole
	}
	return "[" + strings.Repeat("=", int(n)) + strings.Repeat(" ", barWidth-int(n)) + "]"
}
