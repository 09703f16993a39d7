package command

import (
	"embed"
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// The libraries for it are no longer maintained (those for kong use posener/complete,
// last changed in 2019), and little is needed: the parser knows all commands.

//go:embed completion/*
var completionFiles embed.FS

// CompletionCmd prints a script. The script calls this program for each word, so it need not be installed again
// when commands change.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}"`
}

// Offline marks it as a command that needs no API.
func (CompletionCmd) Offline() {}

// Help explains how to use the script.
func (CompletionCmd) Help() string {
	return "bash:  source <(archivist completion bash)\n\n" +
		"zsh:   archivist completion zsh > \"${fpath[1]}/_archivist\"\n\n" +
		"fish:  archivist completion fish > ~/.config/fish/completions/archivist.fish"
}

// Run prints the script unchanged, to a file or for the shell to read.
func (c *CompletionCmd) Run(a *App) error {
	script, err := completionFiles.ReadFile("completion/" + c.Shell)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(script)
	return err
}

// completeArg is the command by which the scripts request candidates: archivist __complete WORD…, of which the
// last is the word at the cursor. It is no command of the parser, so that help does not show it.
const completeArg = "__complete"

// candidate is a possible next word, with its help, which shells but bash show.
type candidate struct{ word, help string }

// complete prints the candidates for the last word of a command line, which may be incomplete: each in a line,
// with its help after a tab. It always succeeds, and asks no API: nobody waits for a network at a press of Tab.
func complete(p Program, m Machine, words []string) int {
	parser := p.Parser(m, func(int) {})
	for _, w := range p.nextWords(m, parser.Model.Node, words) {
		fmt.Fprintf(m.Out, "%s\t%s\n", w.word, strings.ReplaceAll(w.help, "\n", " "))
	}
	return 0
}

// nextWords returns the candidates for the last of some words, which may be incomplete. They are whole words,
// with what stands before the completed part: --flag=, and the earlier items of a list.
func (p Program) nextWords(m Machine, root *kong.Node, words []string) []candidate {
	last := ""
	if n := len(words); n > 0 {
		words, last = words[:n-1], words[n-1]
	}

	if last == "=" { // bash makes it a word
		last = ""
	}

	node, flag, at := follow(root, words)

	// The text before the part that is completed: --flag=, and the items of a list.
	head := ""
	name, value, isAssigned := strings.Cut(last, "=")
	if f := flagOf(node, name); isAssigned && f != nil {
		flag, head, last = f, name+"=", value
	}

	if i := strings.LastIndex(last, ","); flag != nil && i >= 0 {
		head, last = head+last[:i+1], last[i+1:]
	}

	var out []candidate
	for _, c := range p.possible(m, node, flag, at, last) {
		if len(c.word) >= len(last) && strings.EqualFold(c.word[:len(last)], last) {
			out = append(out, candidate{head + c.word, c.help})
		}
	}
	return out
}

// possible returns what can be next: values of a flag, flags, commands or arguments. at is the number of
// arguments before; further ones are taken for the last, which may be repeated.
func (p Program) possible(m Machine, node *kong.Node, flag *kong.Flag, at int, last string) (out []candidate) {
	switch {
	case flag != nil:
		return p.values(m, node, flag.Value)
	case strings.HasPrefix(last, "-"):
		for _, f := range allFlags(node) {
			out = append(out, candidate{"--" + f.Name, f.Help})
		}
	case len(node.Children) > 0:
		for _, child := range node.Children {
			out = append(out, candidate{child.Name, child.Help})
		}
	case len(node.Positional) > 0:
		return p.values(m, node, node.Positional[min(at, len(node.Positional)-1)])
	}
	return out
}

// values returns the possible values of a flag or an argument: those of an enum, of a type with the method
// Candidates, and what this computer knows (profiles, fields, topics); none if they are not known, as ids are.
func (p Program) values(m Machine, node *kong.Node, v *kong.Value) (out []candidate) {
	words := v.EnumSlice()
	if known, is := v.Target.Interface().(interface{ Candidates() []string }); is {
		words = known.Candidates()
	}

	// What depends on this computer is known by the name of the flag or argument.
	switch v.Name {
	case "profile":
		if s, _, err := readConfig(m); err == nil {
			words = s.Profiles
		}
	case "json":
		if command, is := node.Target.Addr().Interface().(printer); is {
			words = append(FieldNames(reflect.TypeOf(command.Prints())), "all")
		}
	case "topic":
		words = p.topicNames()
	}

	for _, word := range words {
		if word != "" {
			out = append(out, candidate{word: word})
		}
	}
	return out
}
