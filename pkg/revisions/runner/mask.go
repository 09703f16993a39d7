package runner

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// stars stand for a secret in the output.
const stars = "***"

// shortLine is the length from which a line of a secret is hidden by itself: keys have such lines,
// and the others of a text that has more than one ("}", "--") are words that the output may have in
// any case.
const shortLine = 8

// hidden are the texts that must not be seen because of a secret: the secret without the blanks
// around it, as shells drop them, and its lines, if they are long enough (shortLine). None for an
// empty secret.
func hidden(secret string) (texts []string) {
	whole := strings.TrimSpace(secret)
	if whole == "" {
		return nil
	}

	texts = append(texts, whole)
	for line := range strings.Lines(whole) {
		line = strings.TrimSpace(line)
		if len(line) >= shortLine && line != whole {
			texts = append(texts, line)
		}
	}
	return texts
}

// mask hides texts in a stream, also those that come in pieces. What could be the beginning of one
// is held back until it is known.
type mask struct {
	texts [][]byte // longest first

	// Whether a text begins with the byte: most bytes are shown without comparing anything.
	first [256]bool

	// The end of what was read and not shown yet: shorter than the longest text, or than a
	// character.
	held []byte
}

func newMask(texts []string) *mask {
	m := &mask{}
	for _, t := range texts {
		m.texts = append(m.texts, []byte(t))
		m.first[t[0]] = true
	}
	slices.SortFunc(m.texts, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// next returns what can be shown of the stream after the next bytes, as UTF-8: what is none becomes
// U+FFFD. last: nothing follows, so all that was held back is shown.
func (m *mask) next(data []byte, last bool) string {
	m.held = append(m.held, data...)
	var out []byte
	i := 0
	for i < len(m.held) {
		n, wait := m.at(m.held[i:], last)
		if wait {
			break
		}

		if n > 0 {
			out = append(out, stars...)
			i += n
			continue
		}

		if !last && !utf8.FullRune(m.held[i:]) {
			break
		}

		_, width := utf8.DecodeRune(m.held[i:])
		out = append(out, m.held[i:i+width]...)
		i += width
	}

	m.held = append(m.held[:0], m.held[i:]...)
	return strings.ToValidUTF8(string(out), "\uFFFD")
}

// at returns the length of the text that the bytes begin with, or whether more bytes could make
// them one, or a longer one. The longest text counts, so that no part of it is left behind the
// stars of a shorter one.
func (m *mask) at(b []byte, last bool) (n int, wait bool) {
	if !m.first[b[0]] {
		return 0, false
	}

	for _, t := range m.texts {
		if bytes.HasPrefix(b, t) {
			return len(t), false
		}
		if !last && len(b) < len(t) && bytes.HasPrefix(t, b) {
			return 0, true
		}
	}
	return 0, false
}
