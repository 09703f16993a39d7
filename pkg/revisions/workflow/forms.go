package workflow

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxText is how many bytes a name, a pattern, or a duration has at most.
const maxText = 500

// Forms of texts.
var (
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

	// secretName is that of a secret of an archive in Secrets Manager (source: its API, CreateSecret): see SecretsOf.
	secretName = regexp.MustCompile(`^archivist/tasks/[a-z][a-z0-9-]{0,39}/[A-Za-z0-9/_+=.@-]{1,400}$`)

	// imageName is that of a repository of images, with a registry, a tag or a digest.
	imageName = regexp.MustCompile(`^[a-z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9])?(@sha256:[0-9a-f]{64})?$`)
	shellName = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9._/+-]{0,99}$`)
	decimal   = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,9})$`)
)

// reservedEnv begins the variables that the system sets.
const reservedEnv = "ARCHIVIST_"

// name reads a name of a task or a lock. "" and a problem if it has another form.
func (s *source) name(key string, n *node) string {
	return s.form(key, n, TaskName,
		"up to 60 letters, digits, dots, hyphens and underscores, the first a letter or "+
			"a digit")
}

// form reads a text of a form; "" and a problem if it has another. expected says what the form is,
// to people.
func (s *source) form(key string, n *node, form *regexp.Regexp, expected string) string {
	v := s.text(key, n, 1024)
	if v != "" && !form.MatchString(v) {
		s.refuse(n, "%s: %q: expected %s", key, clip(v), expected)
		return ""
	}
	return v
}

// choice reads one of some words; the first and a problem if it is none of them.
func (s *source) choice(key string, n *node, of ...string) string {
	if n.kind == text && slices.Contains(of, n.text) {
		return n.text
	}
	s.refuse(n, "%s: %s: expected %s", key, n.said(), strings.Join(of, ", "))
	return of[0]
}

// pairs reads a mapping of variables, with a function for each value; nil if there is none. Names
// are those that every shell accepts; those that begin with reservedEnv are set by the runner, and
// cannot be.
func pairs[T any](s *source, key string, n *node, most int, value func(name string, v *node) T) map[string]T {
	if n.kind != mapping {
		s.refuse(n, "%s: expected %s, not %s", key, mapping, n.said())
		return nil
	}

	if len(n.keys) > most {
		s.refuse(n, "%s: %d variables; at most %d are accepted", key, len(n.keys), most)
		return nil
	}

	all := map[string]T{}
	for i, name := range n.keys {
		_, twice := all[name.text]
		switch {
		case twice:
			s.refuse(name, "%s: %s is set twice", key, name.text)
		case !envName.MatchString(name.text):
			s.refuse(name,
				"%s: %q is no name of a variable: letters, digits and underscores, the first no digit",
				key, clip(name.text))
		case strings.HasPrefix(name.text, reservedEnv):
			s.refuse(name, "%s: %s: variables that begin with %s are set by the system", key,
				clip(name.text), reservedEnv)
		default:
			all[name.text] = value(key+"."+name.text, n.values[i])
		}
	}

	if len(all) == 0 {
		return nil
	}
	return all
}

// variable reads the value of a variable, of at most most bytes.
func (s *source) variable(name string, v *node, most int) string {
	if !v.scalar() || v.kind == empty {
		s.refuse(v, "%s: expected text, not %s", name, v.kind)
		return ""
	}
	return s.fits(name, v, most)
}

// integer reads a whole number between two, both included. Forms such as 0x10, 1_000 or 010 are
// refused: YAML's versions do not agree on what they are.
func (s *source) integer(key string, n *node, least, most int) int {
	v, err := strconv.Atoi(n.text)
	if n.kind != integer || !decimal.MatchString(n.text) || err != nil || v < least || v > most {
		s.refuse(n, "%s: %s: expected a whole number from %d to %d", key, n.said(), least, most)
		return least
	}
	return v
}

// duration reads a text such as 90s or 1h30m, or a whole number of seconds, between two, both
// included. Parts of a second are refused: no timer here is that exact.
func (s *source) duration(key string, n *node, least, most time.Duration) time.Duration {
	const expected = "expected a duration such as 90s, 5m or 1h30m, or a whole number of seconds"
	var v time.Duration
	var err error
	switch {
	// A number is of seconds, so that a value without a unit is never of nanoseconds.
	case n.kind == integer && decimal.MatchString(n.text):
		v, err = time.ParseDuration(n.text + "s")
	case n.kind == text:
		v, err = time.ParseDuration(n.text)
	default:
		s.refuse(n, "%s: %s: %s", key, n.said(), expected)
		return least
	}

	switch {
	case err != nil:
		s.refuse(n, "%s: %s: %s", key, n.said(), expected)
	case v < least || v > most:
		s.refuse(n, "%s: %s: expected from %s to %s", key, n.said(), brief(least), brief(most))
	case v%time.Second != 0:
		s.refuse(n, "%s: %s: expected whole seconds", key, n.said())
	default:
		return v
	}
	return least
}

// brief is a duration without the units that are zero.
func brief(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = strings.TrimSuffix(s, zero[1:]) // 5m0s becomes 5m, and 1h0m becomes 1h
		}
	}
	return s
}

// patterns reads patterns of paths, in their order, since the last one that matches decides. Only
// exclusions would match nothing, which cannot be meant.
func (s *source) patterns(key string, n *node) []string {
	var all []string
	positive := false
	for _, v := range s.entries(key, n, MaxPaths) {
		p := s.text(key, v, maxText)
		if p == "" {
			continue
		}
		err := checkPattern(p)
		if err != nil {
			s.refuse(v, "%s: %q: %s", key, clip(p), err)
		}
		positive = positive || !strings.HasPrefix(p, "!")
		all = append(all, p)
	}

	if len(all) > 0 && !positive {
		s.refuse(n, `%s: only exclusions, which match nothing; begin with "**"`, key)
	}
	return all
}
