package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/terminal"
)

// A command that acts has the name of its action in the API.

// acting are the flags of every action.
type acting struct {
	Reason  string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	DryRun  bool   `help:"Show what would be done, with all warnings, but change nothing."`
	Confirm bool   `help:"Accept the warnings of an action that needs it."`
	Key     string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

// ending is the flag of actions that can end by themselves.
type ending struct {
	Until given `help:"${help_until}" placeholder:"TIME"`
}

// batchActCmd acts on a batch.
type batchActCmd struct {
	ID string `arg:"" name:"batch" help:"Id of a batch."`
	acting
}

func (batchActCmd) prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *batchActCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(), c.acting, ending{})
}

func (c *batchActCmd) target() ingest.Target {
	return ingest.Target{Kind: ingest.TargetBatch, ID: c.ID}
}

// batchHoldCmd holds a batch.
type batchHoldCmd struct {
	batchActCmd
	ending
}

// Run is that of batchActCmd, with an end.
func (c *batchHoldCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(), c.acting, c.ending)
}

// collectionActCmd acts on a collection.
type collectionActCmd struct {
	Name string `arg:"" help:"Name of a collection."`
	acting
}

func (collectionActCmd) prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *collectionActCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(), c.acting, ending{})
}

func (c *collectionActCmd) target() ingest.Target {
	return ingest.Target{Kind: ingest.TargetCollection, ID: c.Name}
}

// collectionHoldCmd holds a collection.
type collectionHoldCmd struct {
	collectionActCmd
	ending
}

// Run is that of collectionActCmd, with an end.
func (c *collectionHoldCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(), c.acting, c.ending)
}

// pauseCmd pauses the queue or the storage.
type pauseCmd struct {
	resumeCmd
	ending
}

// Run is that of resumeCmd, with an end.
func (c *pauseCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(k), c.acting, c.ending)
}

// resumeCmd ends a pause of the queue or the storage.
type resumeCmd struct{ acting }

func (resumeCmd) prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *resumeCmd) Run(a *app, k *kong.Context) error {
	return a.act(k, c.target(k), c.acting, ending{})
}

// target is named by the command above this one: queue or storage.
func (*resumeCmd) target(k *kong.Context) ingest.Target {
	return ingest.Target{Kind: ingest.TargetKind(k.Selected().Parent.Name)}
}

// request is the request of the flags of a command.
func (a *app) request(k *kong.Context, c acting, e ending) (in v1.Action, err error) {
	in = v1.Action{Action: k.Selected().Name, Reason: c.Reason, DryRun: c.DryRun, Confirm: c.Confirm}
	in.Until, err = a.moment("--until", string(e.Until), 1)
	return in, err
}

// act acts on a target other than a job, and prints the result.
func (a *app) act(k *kong.Context, on ingest.Target, c acting, e ending) error {
	in, err := a.request(k, c, e)
	if err != nil {
		return err
	}
	r, err := a.client.Act(a.ctx, on, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return a.confirmable(err)
	}
	return a.print(r, func(p terminal.Page) { a.acted(p, r.ActionOutcome, r.Warnings, in.Reason) })
}

// duration is a number of days or weeks; shorter ones are durations of Go.
var duration = regexp.MustCompile(`^([0-9]{1,4})(d|w)$`)

// moment is the time that a flag gives, in ISO 8601: as such, as a date, or as a duration
// from now on, or back if the direction is -1.
func (a *app) moment(flag, text string, direction time.Duration) (string, error) {
	if text == "" {
		return "", nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Format(time.RFC3339), nil
		}
	}
	d, err := time.ParseDuration(text)
	if m := duration.FindStringSubmatch(text); m != nil {
		d, err = time.ParseDuration(m[1] + "h")
		d *= map[string]time.Duration{"d": 24, "w": 7 * 24}[m[2]]
	}
	if err != nil || d <= 0 {
		return "", usage("%s: found %q; expected a time in ISO 8601, e.g. 2026-11-22T18:00:00Z, a date, or a duration "+
			"such as 90m, 2h, 3d or 1w", flag, text)
	}
	return a.now().Add(direction * d).UTC().Format(time.RFC3339), nil
}

// confirmable adds to the error of an action that is refused only for want of a confirmation the
// command that confirms it.
func (a *app) confirmable(err error) error {
	if !errors.Is(err, ingest.ErrUnconfirmed) {
		return err
	}
	why := strings.TrimSuffix(err.Error(), "; "+ingest.ErrUnconfirmed.Error())
	return fault.New(fault.Of(err), "%s; to do it nevertheless, run: %s", why, a.again(nil, "--confirm"))
}

// acted prints what an action did and what usually follows; for programs, the state after it.
func (a *app) acted(p terminal.Page, r v1.ActionOutcome, warnings []string, reason string) {
	if !p.ForPeople() {
		p.Fields("target", r.Target, "state", r.To, "changed", strconv.FormatBool(r.Changed), "summary", r.Summary)
	} else {
		p.Fields(heading(r), r.Summary)
	}
	if p.ForPeople() && r.From != "" {
		p.Fields("state", r.From+" → "+r.To)
	}
	warned(p, warnings)
	if r.DryRun {
		showCommand(p, "to do it", a.doIt(r.NeedsConfirm))
		return
	}
	if r.Next != nil {
		showCommand(p, "next", nextCommand(*r.Next, reason))
	}
	if r.Operation != "" {
		p.Fields("operation", r.Operation, "follow it", "archivist operation watch "+r.Operation)
	}
}

// showCommand prints a command to be pasted: for people in a line of its own, which is not
// broken.
func showCommand(p terminal.Page, title, command string) {
	if !p.ForPeople() {
		p.Fields(title, command)
		return
	}
	fmt.Fprintf(p, "%s\n  %s\n", terminal.Bold.Of(title+":"), terminal.Printable(command))
}

// heading is the title of the summary of an action.
func heading(r v1.ActionOutcome) string {
	switch {
	case r.DryRun:
		return "dry run"
	case r.Changed:
		return "done"
	}
	return "unchanged"
}

// doIt is the command that does what a dry run has shown.
func (a *app) doIt(confirm bool) string {
	if confirm {
		return a.again([]string{"--dry-run"}, "--confirm")
	}
	return a.again([]string{"--dry-run"})
}

// nextCommand is the command that starts a bulk operation.
func nextCommand(b v1.Bulk, reason string) string {
	words := []string{"archivist", "job", b.Action}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	add("--batch", b.Filter.Batch)
	add("--collection", b.Filter.Collection)
	add("--state", strings.ToLower(b.Filter.State))
	add("--before", b.Filter.Before)
	add("--message", b.Filter.Message)
	if b.Filter.KeepOwnHolds {
		words = append(words, "--keep-own-holds")
	}
	add("--until", b.Until)
	if b.Priority != nil {
		add("--priority", strconv.Itoa(*b.Priority))
	}
	add("--reason", reason)
	if b.Confirm {
		words = append(words, "--confirm")
	}
	return quoted(words)
}

// again is the command line of this command without some flags and with others. It does not
// show the key of the API.
func (a *app) again(without []string, with ...string) string {
	words := []string{"archivist"}
	for i := 0; i < len(a.args); i++ {
		arg := a.args[i]
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case arg == "--api-key":
			i++ // its value
		case name == "--api-key", slices.Contains(without, name), slices.Contains(with, name):
		default:
			words = append(words, arg)
		}
	}
	return quoted(append(words, with...))
}

// plainWord is a word that a shell leaves as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted joins words to a command line for a shell.
func quoted(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if !plainWord.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}
