package research

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
	"archivist/pkg/research/curation"
)

// researchMediaCmd is for episodes, or for clips.
type researchMediaCmd struct {
	List   mediaListCmd   `cmd:"" help:"List them, in the order of research."`
	Show   mediaShowCmd   `cmd:"" help:"Show one."`
	Import mediaImportCmd `cmd:"" help:"Import records from a file of CSV or JSON Lines."`
	Retry  mediaRetryCmd  `cmd:"" help:"Research again what was set aside or deferred."`
}

// kindOfCommand is whether a command is about episodes or clips: the name of its parent, which is also the part
// of the path (v1.Episodes, v1.Clips).
func kindOfCommand(k *kong.Context) string { return k.Selected().Parent.Name }

// mediaListCmd lists episodes or clips.
type mediaListCmd struct {
	projectName
	State string `help:"ready, closed, live, set-aside, deferred or withdrawn: only those." placeholder:"STATE"`
	command.Limit
}

func (mediaListCmd) Prints() any { return v1.ResearchMedia{} }

// Run lists them in the order of research. It requests one more than is shown, to detect that there are more.
func (c *mediaListCmd) Run(a *command.App, k *kong.Context) error {
	return command.List(a, c.Limit, mediaColumns...)(
		a.Client.ResearchMedia(a.Ctx, c.Project, kindOfCommand(k), c.State, c.More()))
}

// mediaColumns are in the order of what decides the order of research: the priority, then when it was curated
// first.
var mediaColumns = []terminal.Column[v1.ResearchMedia]{
	{Title: "key", Text: func(m v1.ResearchMedia) string { return m.Key }},
	{Title: "id", Text: func(m v1.ResearchMedia) string { return m.ID }, Share: 1},
	{Title: "priority", Text: func(m v1.ResearchMedia) string { return strconv.Itoa(m.Priority) }},
	{
		Title: "curated",
		Text:  func(m v1.ResearchMedia) string { return command.Minute(m.Initial) },
		Raw:   func(m v1.ResearchMedia) string { return m.Initial },
	},
	{Title: "state", Text: func(m v1.ResearchMedia) string { return m.State }},
	{Title: "researched", Text: coverageText},
	{Title: "reason", Text: func(m v1.ResearchMedia) string { return m.Reason }, Share: 1},
}

// coverageText is how many pairs of an episode are researched; "" for clips.
func coverageText(m v1.ResearchMedia) string {
	if m.Coverage == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d", m.Coverage.Researched, m.Coverage.Pairs)
}

// mediaShowCmd shows an episode or a clip.
type mediaShowCmd struct {
	projectName
	Key string `arg:"" help:"Its key."`
}

func (mediaShowCmd) Prints() any { return v1.ResearchMedia{} }

// Run shows it.
func (c *mediaShowCmd) Run(a *command.App, k *kong.Context) error {
	return command.Show(a, showMedia)(a.Client.ResearchMediaOf(a.Ctx, c.Project, kindOfCommand(k), c.Key))
}

// showMedia prints an episode or a clip, with what curators say of it and how far its research is.
func showMedia(p terminal.Page, m v1.ResearchMedia) {
	p.Fields("key", m.Key, "source", m.Source, "id", m.ID, "title", m.Title, "recording", m.URL,
		"sha256", m.SHA256, "priority", strconv.Itoa(m.Priority), "curated first", m.Initial,
		"curated last", m.Latest, "state", m.State, "reason", m.Reason, "until", m.Until,
		"researched", coverageText(m))
}

// mediaRetryCmd makes an episode or clip researchable again that was set aside or deferred, e.g. because its
// recording has been replaced.
type mediaRetryCmd struct {
	projectName
	Key    string `arg:"" optional:"" help:"Its key."`
	All    bool   `help:"All that are set aside or deferred."`
	Why    string `help:"With --all: only those whose problem has this text." placeholder:"TEXT"`
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
}

func (mediaRetryCmd) Prints() any { return v1.ResearchMedia{} }

// Run requests it, of one or of all.
func (c *mediaRetryCmd) Run(a *command.App, k *kong.Context) error {
	switch {
	case c.All == (c.Key != ""):
		return command.Usage("give a key, or --all")
	case c.Why != "" && !c.All:
		return command.Usage("--why is for --all")
	case c.All:
		return c.all(a, kindOfCommand(k))
	}

	return command.Show(a, showMedia)(a.Client.RetryResearch(a.Ctx, c.Project, kindOfCommand(k), c.Key, c.Reason))
}

// all retries one after the other, and shows those that it has retried. One that is not away any more is left out. It
// can be repeated: what was retried is not listed then.
func (c *mediaRetryCmd) all(a *command.App, kind string) error {
	var done []v1.ResearchMedia
	line := a.StatusTo(a.Errors)
	defer line.End()
	for _, state := range []string{"set-aside", "deferred"} {
		list, err := a.Client.ResearchMedia(a.Ctx, c.Project, kind, state, 0)
		if err != nil {
			return err
		}

		for _, m := range list {
			if !strings.Contains(m.Reason, c.Why) {
				continue
			}

			m, err := a.Client.RetryResearch(a.Ctx, c.Project, kind, m.Key, c.Reason)
			if fault.Is(err, fault.Conflict) {
				continue
			}

			if err != nil {
				return fmt.Errorf("after %d of them: %w", len(done), err)
			}

			done = append(done, m)
			line.Show(fmt.Sprintf("%d retried", len(done)), false)
		}
	}

	line.End()
	return command.List(a, command.Limit{}, mediaColumns...)(done, nil)
}

// mediaImportCmd imports a file of records. It can be repeated, and continued at a line.
type mediaImportCmd struct {
	projectName
	File   string `arg:"" help:"File of CSV (.csv) or JSON Lines (.jsonl, .ndjson)."`
	Source string `help:"Source of records that name none." placeholder:"SOURCE"`
	// The lines before it are kept already.
	FromLine int `help:"Begin at this line: that is how an import that ended is continued." placeholder:"LINE"`
}

func (mediaImportCmd) Prints() any { return imported{} }

// Help says what a file has.
func (mediaImportCmd) Help() string {
	return `The first line of a CSV file has the names of its columns; a line of JSON Lines is an object with these names:

  source,id,url,title,size,sha256,priority,curated,initial,withdrawn

Source and id identify a record; id and url are required. A record without curated is as old as the file, so that an
import that is repeated changes nothing. Records that are refused are listed with their lines; the others are kept.`
}

// imported is what an import did. Refused is never nil: JSON has [] for none.
type imported struct {
	Accepted int           `json:"accepted"` // records
	Refused  []refusedLine `json:"refused"`
}

// refusedLine is a record that was refused: its line in the file, counted from 1, and why.
type refusedLine struct {
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

// importing is an import that is under way: records that are collected for the next request, with their lines.
type importing struct {
	*command.App
	project, kind string
	records       []v1.ResearchRecord
	lines         []int
	done          imported
	line          *terminal.Status
}

// batchOfRecords is the most that a request takes (v1.ResearchRecords).
const batchOfRecords = 100

// mostTries is how often records are sent that the API cannot keep right now. With the waits of 1 to 4 s between
// them that is ten seconds.
const mostTries = 5

// Run sends the records in batches, in the order of the file. A record that is refused does not end it; a
// failure does, and says at which line the same command continues.
func (c *mediaImportCmd) Run(a *command.App, k *kong.Context) error {
	format, err := curation.FormatOf(c.File)
	if err != nil {
		return err
	}

	file, err := os.Open(c.File)
	if err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}

	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return err
	}

	// The time of the file stands for the date of curation of records that have none: it does not change when
	// the file is imported again.
	made := about.ModTime().UTC().Format(time.RFC3339)
	in := &importing{
		App:     a,
		project: c.Project,
		kind:    kindOfCommand(k),
		line:    a.StatusTo(io.Discard),
	}

	in.done.Refused = []refusedLine{}
	err = c.sendAll(in, file, format, made)
	in.line.End()
	return in.end(c.File, err)
}

// sendAll reads a file and sends its records from line --from-line on, in batches; made is the time of the file.
func (c *mediaImportCmd) sendAll(in *importing, file io.Reader, format curation.Format,
	made string) error {
	err := curation.Read(file, format, func(line int, r curation.Record) error {
		if line < c.FromLine {
			return nil
		}
		in.records = append(in.records, recordOf(r, c.Source, made))
		in.lines = append(in.lines, line)
		if len(in.records) < batchOfRecords {
			return nil
		}
		return in.send()
	})
	if err != nil {
		return err
	}
	return in.send()
}

// recordOf is a record of a file as it is sent. One without a date has that of the file (made), so that an
// import that is repeated changes nothing; numbers of dates are milliseconds, as the API takes them.
func recordOf(r curation.Record, source, made string) v1.ResearchRecord {
	out := v1.ResearchRecord{
		Source:    cmp.Or(r.Source, source),
		ID:        r.ID,
		Title:     r.Title,
		URL:       r.URL,
		Size:      r.Size,
		SHA256:    r.SHA256,
		Withdrawn: r.Withdrawn,
		Priority:  r.Priority,
		Curated:   made,
	}

	if r.Curated != 0 {
		out.Curated = strconv.FormatInt(int64(r.Curated), 10)
	}

	if r.Initial != 0 {
		out.Initial = strconv.FormatInt(int64(r.Initial), 10)
	}
	return out
}

// send sends the records that are collected, those that cannot be kept right now several times. The API answers
// with an entry for each record, in their order. After it, nothing is left to be sent; after an error, lines
// begins with the first record that may not be kept.
func (in *importing) send() error {
	for try := 1; len(in.records) > 0; try++ {
		answers, err := in.Client.Curate(in.Ctx, in.project, in.kind, in.records)
		if err != nil {
			return err
		}

		// Answers are matched by their places.
		if len(answers) != len(in.records) {
			return fault.New(fault.Unavailable, "the API answered %d of %d records", len(answers),
				len(in.records))
		}

		var again []v1.ResearchRecord
		var lines []int
		for i, r := range answers {
			switch {
			case r.Problem == "":
				in.done.Accepted++
			case r.Retry && try < mostTries:
				again, lines = append(again, in.records[i]), append(lines, in.lines[i])
			case r.Retry:
				return fault.New(fault.Unavailable, "%s", r.Problem)
			default:
				in.done.Refused = append(in.done.Refused, refusedLine{in.lines[i], r.Problem})
			}
		}

		in.line.Show(fmt.Sprintf("%s kept, up to line %d",
			terminal.Count(in.done.Accepted, "record"),
			in.lines[len(in.lines)-1]), false)

		// What is to be tried again is all that is left.
		in.records, in.lines = again, lines
		if len(again) > 0 {
			err = in.Wait(in.Ctx, time.Duration(try)*time.Second)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// end prints what was done, and says how an import that has ended is continued. It fails if records were
// refused: the others are kept.
func (in *importing) end(file string, err error) error {
	if err != nil && len(in.lines) > 0 &&
		(fault.Is(err, fault.Unavailable) || errors.Is(err, context.Canceled)) {
		fmt.Fprintf(in.Errors,
			"archivist: %s kept; archivist research %s import %s %s --from-line %d continues\n",
			terminal.Count(in.done.Accepted, "record"), in.kind, in.project, file, in.lines[0])
	}

	if err != nil {
		return err
	}

	err = in.Print(in.done, func(p terminal.Page) {
		p.Fields("kept", terminal.Count(in.done.Accepted, "record"))
		terminal.Table(p, in.done.Refused, refusedColumns...)
	})
	if err != nil {
		return err
	}

	if len(in.done.Refused) > 0 {
		return fault.New(fault.Invalid,
			"%s refused; correct the file and import it again: what is kept stays as it is",
			terminal.Count(len(in.done.Refused), "record"))
	}
	return nil
}

// refusedColumns say which line of the file was refused, and why.
var refusedColumns = []terminal.Column[refusedLine]{
	{Title: "line", Text: func(r refusedLine) string { return strconv.Itoa(r.Line) }},
	{Title: "problem", Text: func(r refusedLine) string { return r.Problem }, Share: 1},
}
