package workflow

import (
	"errors"
	"regexp"
	"strings"
)

// Matches reports whether a task is for a revision that changed these paths. A task without filter
// is for all, also for one that changed nothing. Otherwise one path is enough that its patterns
// select (Selector).
func (t *Task) Matches(paths []string) bool {
	if len(t.Paths) == 0 {
		return true
	}
	selects := Selector(t.Paths)
	for _, p := range paths {
		if selects(p) {
			return true
		}
	}
	return false
}

// Selector reports which paths patterns select. The last pattern that matches a path decides: it is
// selected, or, if the pattern begins with "!", it is not. A path that none matches is not
// selected.
//
// Patterns are those that Parse accepts, for whole paths from the root of the archive: * is any
// number of characters but /, ? one of them, [a-z] one of these, [!a-z] one of the others, and **
// as a whole part of the path any number of folders, none too. So *.pdf is a file at the root, and
// **/*.pdf one anywhere. A pattern that Parse refuses matches nothing.
func Selector(patterns []string) func(path string) bool {
	type rule struct {
		is      *regexp.Regexp
		exclude bool
	}

	var rules []rule
	for _, p := range patterns {
		glob, exclude := strings.CutPrefix(p, "!")
		if is, err := compile(glob); err == nil {
			rules = append(rules, rule{is, exclude})
		}
	}
	return func(path string) bool {
		for i := len(rules) - 1; i >= 0; i-- {
			if rules[i].is.MatchString(path) {
				return !rules[i].exclude
			}
		}
		return false
	}
}

// checkPattern says what is wrong with a pattern, with or without "!"; nil if nothing is.
func checkPattern(p string) error {
	_, err := compile(strings.TrimPrefix(p, "!"))
	return err
}

// compile makes a regular expression of a pattern, whose time is linear in the path's length: the
// patterns of others can be chosen to be slow for a matcher that goes back. A pattern is for the
// whole path. Names may have line breaks, which are characters like others.
func compile(glob string) (*regexp.Regexp, error) {
	switch {
	case glob == "":
		return nil, errors.New("a pattern is missing")
	case strings.HasPrefix(glob, "/"):
		return nil, errors.New("a path begins at the root of the archive, without /")
	case strings.HasSuffix(glob, "/"):
		return nil, errors.New("a folder; write /** for the files in it")
	case strings.ContainsAny(glob, `\{}`):
		return nil, errors.New(`\, { and } have no meaning; write one pattern for each, or ? for the character`)
	}

	var b strings.Builder
	b.WriteString(`(?s)\A`)
	parts := strings.Split(glob, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part == "" || part == "." || part == "..":
			return nil, errors.New("empty parts, . and .. are not accepted")
		// A folder by itself has no path, so at least one character follows.
		case part == "**" && last:
			b.WriteString(`.+`)
			continue
		// Any number of whole folders, none too, each with its slash.
		case part == "**":
			b.WriteString(`(?:[^/]+/)*`)
			continue
		case strings.Contains(part, "**"):
			return nil, errors.New("** is a whole part of a path, as in **/*.pdf")
		}

		if err := compilePart(&b, part); err != nil {
			return nil, err
		}

		if !last {
			b.WriteByte('/')
		}
	}
	return regexp.Compile(b.String() + `\z`)
}

// compilePart adds what is between two slashes. None of its parts matches a slash.
func compilePart(b *strings.Builder, part string) error {
	for part != "" {
		switch part[0] {
		case '*':
			b.WriteString(`[^/]*`)
		case '?':
			b.WriteString(`[^/]`)
		case '[':
			end := strings.IndexByte(part, ']')
			if end < 0 {
				return errors.New("[ without ]")
			}
			if err := compileClass(b, part[1:end]); err != nil {
				return err
			}
			part = part[end:]
		default:
			end := strings.IndexAny(part, "*?[")
			if end < 0 {
				end = len(part)
			}
			b.WriteString(regexp.QuoteMeta(part[:end]))
			part = part[end:]
			continue
		}
		part = part[1:]
	}
	return nil
}

// compileClass adds characters and ranges of them. A class that excludes (!) does not match a
// slash, either.
func compileClass(b *strings.Builder, class string) error {
	open := "["
	if rest, not := strings.CutPrefix(class, "!"); not {
		open, class = "[^/", rest
	}

	chars := []rune(class)
	if len(chars) == 0 {
		return errors.New("[] names no character")
	}

	b.WriteString(open)
	for i := 0; i < len(chars); i++ {
		from, to := chars[i], chars[i]
		if i+2 < len(chars) && chars[i+1] == '-' {
			to = chars[i+2]
			i += 2
		}
		if from > to {
			return errors.New("the range " + string(from) + "-" + string(to) + " is empty")
		}
		b.WriteString(escape(from) + "-" + escape(to))
	}

	b.WriteByte(']')
	return nil
}

// escape is a character as a regular expression has it in a class.
func escape(r rune) string {
	if strings.ContainsRune(`\]^-[&~`, r) {
		return `\` + string(r)
	}
	return string(r)
}
