package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Of returns the parts of a set for a commit.
func Of(s Set, c Commit) []Part {
	fill := strings.NewReplacer("$SEED", fmt.Sprint(c.Seed()), "$LATER", fmt.Sprint(c.Seed()+stride/2),
		"$QUARTER", fmt.Sprint(c.Quarter()))
	var out []Part
	for _, p := range sets[s] {
		p.Command = fill.Replace(p.Command)
		out = append(out, p)
	}
	return out
}

// Plays reports whether make test or make test-more runs a test of a folder, such as "pkg/ingest/queue".
func Plays(dir, test string) bool {
	return slices.ContainsFunc(slices.Concat(sets[Test], sets[More]), func(p Part) bool { return p.plays(dir, test) })
}

func (p Part) plays(dir, test string) bool {
	_, arguments, isTest := strings.Cut(p.Command, "go test ")
	words := strings.Fields(arguments)
	return isTest && slices.ContainsFunc(words, func(word string) bool { return covers(word, dir) }) &&
		matches(words, "-run", test, true) && !matches(words, "-skip", test, false)
}

// matches reports whether the pattern behind a flag has the name of a test; otherwise is the answer without the flag.
func matches(words []string, flag, test string, otherwise bool) bool {
	i := slices.Index(words, flag)
	if i < 0 {
		return otherwise
	}
	name, _, _ := strings.Cut(words[i+1], "/")
	return regexp.MustCompile(name).MatchString(test)
}

// covers reports whether a pattern of packages such as ./pkg/... has a folder.
func covers(pattern, dir string) bool {
	below, all := strings.CutSuffix(pattern, "/...")
	return pattern == "./"+dir || all && strings.HasPrefix("./"+dir+"/", below+"/")
}
