package ingest

import "strconv"

// Bytes writes a number of bytes, as in 1,400 bytes.
func Bytes(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return Number(n) + " bytes"
}

// Counted writes a number of things with their name, as in 1 job or 1,400 jobs. name is in
// the singular, and its plural ends in s.
func Counted[N ~int | ~int64](n N, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return Number(n) + " " + name + "s"
}

// Number writes a number with a comma after each three digits, as in 1,400.
func Number[N ~int | ~int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	first := 1
	if n < 0 {
		first = 2
	}
	for i := len(text) - 3; i >= first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
