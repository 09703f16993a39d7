package command

import (
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"archivist/pkg/kernel/terminal"
)

// Parser makes the parser of the commands. It calls exit after --help and --version, and then goes on. A wrong
// tag panics (kong.Must): it is a mistake of the program, which every test finds.
func (p Program) Parser(m Machine, exit func(int)) *kong.Kong {
	return kong.Must(p.Commands,
		kong.Name("archivist"),
		kong.Description(p.Description),
		kong.Writers(m.screen(m.Out), m.screen(m.Err)),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{
			Compact:             true,
			NoExpandSubcommands: true,
			WrapUpperBound:      terminal.UsualWidth,
		}),
		p.Vars,
		kong.Vars{
			"version": "archivist " + buildVersion(),
			"topics":  strings.Join(p.topicNames(), ", "),
		},
		longHelp(p.Texts))
}

// buildVersion is the version of the build, as Go has noted it in the program: the tag of a release, else
// "(devel)" or a pseudo-version; with the first 12 digits of the commit, unless it has them.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}

	out := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(out, s.Value[:12]) {
			out += " (" + s.Value[:12] + ")"
		}
	}
	return strings.TrimSpace(out)
}

// target is the command that was chosen, as a pointer to its struct, so that methods of the pointer are found,
// too; nil if none was.
func target(k *kong.Context) any {
	if k == nil || k.Selected() == nil {
		return nil
	}
	return k.Selected().Target.Addr().Interface()
}

// follow parses words, starting at a command. It returns the command that they lead to, the flag whose value is
// next, if any, and the number of arguments so far. It is more lenient than the parser: the words may be wrong,
// or not complete yet.
func follow(node *kong.Node, words []string) (_ *kong.Node, flag *kong.Flag, at int) {
	for _, word := range words {
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		named := flagOf(node, word)
		switch {
		case word == "=":
		case flag != nil:
			flag = nil // it was its value
		case named != nil && !named.IsBool():
			flag = named
		case strings.HasPrefix(word, "-"):
		case child >= 0:
			node, at = node.Children[child], 0
		default:
			at++
		}
	}
	return node, flag, at
}

// allFlags are the flags of a command and of those above it.
func allFlags(node *kong.Node) (flags []*kong.Flag) {
	for _, group := range node.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}

// flagOf returns the flag that a word names, as --name or -n, nil for none. Flags in one word with their value
// (-cmaps) are not known here.
func flagOf(node *kong.Node, word string) *kong.Flag {
	for _, f := range allFlags(node) {
		if word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short) {
			return f
		}
	}
	return nil
}
