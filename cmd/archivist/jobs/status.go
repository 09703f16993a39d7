package jobs

import (
	"fmt"
	"strconv"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// StatusCmd shows the whole deployment on one screen. Its exit code tells a script whether a person is needed.
type StatusCmd struct {
	Watch bool `short:"w" help:"Show it again and again, until it is interrupted."`
}

// Prints is an empty value of what it prints; its fields are those of --json.
func (StatusCmd) Prints() any { return v1.Status{} }

// Help says what the exit code means.
func (StatusCmd) Help() string {
	return "The exit code is 4 if something needs a person or could not be read, which is " +
		"marked by ! or ?, and 0 if " +
		"not. Pauses and holds are decided by people, and so need none."
}

// Run shows it once, or until it is interrupted.
func (c *StatusCmd) Run(a *command.App) error {
	if c.Watch {
		return a.Watch(func() (command.Snapshot, error) {
			s, err := a.Client.Status(a.Ctx)
			var rows []string
			for _, row := range statusRows(s) {
				rows = append(rows, row.String())
			}
			return command.Snapshot{Things: []any{s}, Text: statusLine(s), Rows: rows,
				State: fmt.Sprint(rows)}, err
		})
	}

	s, err := a.Client.Status(a.Ctx)
	if err != nil {
		return err
	}
	err = a.Print(s, func(p terminal.Page) {
		if !p.ForPeople() {
			terminal.Table(p, partsOf(s), statusColumns...)
			return
		}
		for _, row := range statusRows(s) {
			row.print(p)
		}
	})
	if err == nil && s.Attention {
		err = fault.New(fault.Conflict, "%s", statusLine(s))
	}
	return err
}

// statusLine is the status in a line.
func statusLine(s v1.Status) string {
	needed, unknown := 0, 0
	for _, part := range s.Sections {
		switch part.State {
		case v1.SectionAttention:
			needed++
		case v1.SectionUnavailable:
			unknown++
		}
	}

	text := command.Minute(s.At) + ": nothing needs a person"
	if s.Attention {
		text = fmt.Sprintf("%s: %s a person", command.Minute(s.At), needs(needed))
	}
	if unknown > 0 {
		text += fmt.Sprintf("; %s could not be read", terminal.Count(unknown, "section"))
	}
	return text
}

func needs(sections int) string {
	if sections == 1 {
		return "1 section needs"
	}
	return strconv.Itoa(sections) + " sections need"
}

// shownLines is how many lines of a section are on the screen; JSON has more.
const shownLines = 5

// statusMarks stand before what a person should look at.
var statusMarks = map[string]string{v1.SectionAttention: "! ", v1.SectionUnavailable: "? "}

// statusRow is a row of the screen: of a section, of which it has the name, of one of its lines, or a command.
type statusRow struct{ section, text, command string }

// String is the row in one line.
func (r statusRow) String() string {
	switch {
	case r.section != "":
		return fmt.Sprintf("%-15s%s", r.section, r.text)
	case r.command != "":
		return "    " + r.command
	}
	return "  " + r.text
}

// print prints the row in as many lines as it needs. A command is on a line of its own that is not broken: it can be
// copied.
func (r statusRow) print(p terminal.Page) {
	switch {
	case r.section != "":
		p.Fields(r.section, r.text)
	case r.command != "":
		fmt.Fprintln(p, terminal.Printable(r.String()))
	default:
		p.Lines("  ", r.text)
	}
}

// statusRows are the rows of the screen: one for each section, and below it what it consists of.
func statusRows(s v1.Status) (rows []statusRow) {
	for _, part := range s.Sections {
		head := statusRow{section: part.Name, text: statusMarks[part.State] + part.Summary}
		if part.Command != "" && part.State != v1.SectionAbsent {
			head.text += " [" + part.Command + "]"
		}
		rows = append(rows, head)

		for _, l := range part.Lines[:min(len(part.Lines), shownLines)] {
			rows = append(rows, statusRow{text: lineText(l)})
			if l.Command != "" && l.Command != part.Command {
				rows = append(rows, statusRow{command: l.Command})
			}
		}
		if more := len(part.Lines) - shownLines; more > 0 {
			rows = append(rows, statusRow{text: "and " + terminal.Count(more, "more line")})
		}
		if part.Cut != "" {
			rows = append(rows, statusRow{text: part.Cut})
		}
	}
	return rows
}

// lineText is a line of a section, with its number and its age.
func lineText(l v1.StatusLine) string {
	text := l.Text
	if l.Count > 1 {
		text = ingest.Number(l.Count) + " × " + text
	}
	if l.Attention {
		text = statusMarks[v1.SectionAttention] + text
	}
	if l.Since != "" {
		text += ", since " + command.Minute(l.Since)
	}
	return text
}

// statusPart is a line of a section, or a section without lines, for programs.
type statusPart struct {
	v1.StatusLine
	of v1.StatusSection
}

// partsOf are the rows for programs: one for each section, and one for each of its lines.
func partsOf(s v1.Status) (all []statusPart) {
	for _, part := range s.Sections {
		all = append(all, statusPart{v1.StatusLine{Text: part.Summary,
			Count:     int64(len(part.Lines)),
			Attention: statusMarks[part.State] != "", Command: part.Command}, part})
		for _, l := range part.Lines {
			all = append(all, statusPart{l, part})
		}
	}
	return all
}

// statusColumns are for programs only.
var statusColumns = []terminal.Column[statusPart]{
	{Text: func(p statusPart) string { return p.of.Name }},
	{Text: func(p statusPart) string { return p.of.State }},
	{Text: func(p statusPart) string { return strconv.FormatBool(p.Attention) }},
	{Text: func(p statusPart) string { return strconv.FormatInt(p.Count, 10) }},
	{Text: func(p statusPart) string { return p.Since }},
	{Text: func(p statusPart) string { return p.Text }},
	{Text: func(p statusPart) string { return p.Command }},
}
