package jobs

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

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// A command that acts has the name of its action in the API.

// acting are the flags of every action. The reason is required, because the events of the action are the record
// of why an archive was changed.
type acting struct {
	Reason string `required:"" help:"Why. It is kept in the events." placeholder:"TEXT"`
	// DryRun shows the warnings, too, and whether Confirm will be needed.
	DryRun  bool `help:"Show what would be done, with all warnings, but change nothing."`
	Confirm bool `help:"Accept the warnings of an action that needs it."`
	// Key makes a repeat of the command harmless; by default a new one is made for each command, which covers
	// only repeats by the network.
	Key string `name:"idempotency-key" help:"${help_action_key}" placeholder:"KEY"`
}

// ending is the flag of actions that can end by themselves: holds and pauses. Without it a person must end them.
type ending struct {
	Until given `help:"${help_until}" placeholder:"TIME"`
}

// given is the value of a flag that cannot be empty. A script whose variable is not set would otherwise act on
// all jobs instead of those of a batch, or hold without an end.
type given string

// UnmarshalText refuses an empty value. kong calls it only if the flag is given.
func (g *given) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("the value is empty; leave the flag out if none is wanted")
	}
	*g = given(text)
	return nil
}

// batchActCmd is an action on a batch that has nothing but a reason: release, cancel, delete, update-report,
// clean-up.
type batchActCmd struct {
	ID string `arg:"" name:"batch" help:"Id of a batch."`
	acting
}

func (batchActCmd) Prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *batchActCmd) Run(a *command.App, k *kong.Context) error {
	return act(a, k, c.target(), c.acting, ending{})
}

// target is the batch.
func (c *batchActCmd) target() ingest.Target {
	return ingest.Target{Kind: ingest.TargetBatch, ID: c.ID}
}

// batchHoldCmd holds a batch: what waits does not start, what runs goes on.
type batchHoldCmd struct {
	batchActCmd
	ending
}

// Run is that of batchActCmd, with an end.
func (c *batchHoldCmd) Run(a *command.App, k *kong.Context) error {
	return act(a, k, c.target(), c.acting, c.ending)
}

// collectionActCmd acts on a collection.
type collectionActCmd struct {
	Name string `arg:"" help:"Name of a collection."`
	acting
}

func (collectionActCmd) Prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *collectionActCmd) Run(a *command.App, k *kong.Context) error {
	return act(a, k, c.target(), c.acting, ending{})
}

// target is the collection, by its name.
func (c *collectionActCmd) target() ingest.Target {
	return ingest.Target{Kind: ingest.TargetCollection, ID: c.Name}
}

// collectionHoldCmd holds a collection: no work on its submissions starts, also on those that come later.
type collectionHoldCmd struct {
	collectionActCmd
	ending
	beginning
}

// Run is that of collectionActCmd, with an end, and asks about a collection that was never used.
func (c *collectionHoldCmd) Run(a *command.App, k *kong.Context) error {
	if err := c.known(a, c.Name, c.DryRun); err != nil {
		return err
	}
	return act(a, k, c.target(), c.acting, c.ending)
}

// pauseCmd pauses the queue or the storage. The commands are the same: its name says which of them it is.
type pauseCmd struct {
	resumeCmd
	ending
}

// Run is that of resumeCmd, with an end.
func (c *pauseCmd) Run(a *command.App, k *kong.Context) error {
	return act(a, k, queueOrStorage(k), c.acting, c.ending)
}

// resumeCmd ends a pause of the queue or the storage, and has the flags of pauseCmd but the end.
type resumeCmd struct{ acting }

func (resumeCmd) Prints() any { return v1.ActionResult{} }

// Run does the action that the command is named after.
func (c *resumeCmd) Run(a *command.App, k *kong.Context) error {
	return act(a, k, queueOrStorage(k), c.acting, ending{})
}

// ofStorage ends the names of the commands of queue that are about the storage.
const ofStorage = "-storage"

// queueOrStorage is the target of a command such as queue pause-storage.
func queueOrStorage(k *kong.Context) ingest.Target {
	if strings.HasSuffix(k.Selected().Name, ofStorage) {
		return ingest.Target{Kind: ingest.TargetStorage}
	}
	return ingest.Target{Kind: ingest.TargetQueue}
}

// request is the request of the flags of a command. Its error is a time that cannot be read.
func request(a *command.App, k *kong.Context, c acting, e ending) (in v1.Action, err error) {
	in = v1.Action{
		Action:  strings.TrimSuffix(k.Selected().Name, ofStorage),
		Reason:  c.Reason,
		DryRun:  c.DryRun,
		Confirm: c.Confirm,
	}
	in.Until, err = moment(a, "--until", string(e.Until), 1)
	return in, err
}

// act acts on a target other than a job, and prints the result. A refusal for want of a confirmation is a
// Conflict with the command that confirms.
func act(a *command.App, k *kong.Context, on ingest.Target, c acting, e ending) error {
	in, err := request(a, k, c, e)
	if err != nil {
		return err
	}
	r, err := a.Client.Act(a.Ctx, on, in, cmp.Or(c.Key, rand.Text()))
	if err != nil {
		return confirmable(a, err)
	}
	return a.Print(r, func(p terminal.Page) { acted(a, p, r.ActionOutcome, r.Warnings, in.Reason) })
}

// duration is a number of days or weeks, which time.ParseDuration does not know; shorter ones are durations of
// Go.
var duration = regexp.MustCompile(`^([0-9]{1,4})(d|w)$`)

// moment is the time that a flag gives, in ISO 8601 and UTC: as such, as a date (its beginning in UTC), or as a
// duration from now on, or back if the direction is -1; "" if the flag is not given. Whether the time makes
// sense is decided by the archive.
func moment(a *command.App, flag, text string, direction time.Duration) (string, error) {
	if text == "" {
		return "", nil
	}

	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC().Format(time.RFC3339), nil
		}
	}

	// Units of Go, such as 90m or 1h30m; days and weeks are not among them, because days can have 23 or 25
	// hours. Here a day has 24.
	d, err := time.ParseDuration(text)
	if m := duration.FindStringSubmatch(text); m != nil {
		d, err = time.ParseDuration(m[1] + "h")
		d *= map[string]time.Duration{"d": 24, "w": 7 * 24}[m[2]]
	}

	if err != nil || d <= 0 {
		return "", command.Usage("%s: found %q; expected a time in ISO 8601, "+
			"e.g. 2026-11-22T18:00:00Z, a date, or a duration such as 90m, 2h, 3d or 1w", flag, text)
	}
	return a.Now().Add(direction * d).UTC().Format(time.RFC3339), nil
}

// confirmable adds to the error of an action that is refused only for want of a confirmation the command that
// confirms it, and takes the advice away that is meant for callers of the API. Other errors stay as they are.
func confirmable(a *command.App, err error) error {
	if !errors.Is(err, ingest.ErrUnconfirmed) {
		return err
	}
	why := strings.TrimSuffix(err.Error(), "; "+ingest.ErrUnconfirmed.Error())
	return fault.New(fault.Of(err), "%s; to do it nevertheless, run: %s", why,
		again(a, nil, "--confirm"))
}

// acted prints what an action did and what usually follows: the command that does it after a dry run, the next
// action that the archive proposes, the operation that was started. For programs it prints the state after it.
func acted(a *command.App, p terminal.Page, r v1.ActionOutcome, warnings []string, reason string) {
	if !p.ForPeople() {
		p.Fields("target", r.Target, "state", r.To, "changed", strconv.FormatBool(r.Changed),
			"summary", r.Summary)
	} else {
		p.Fields(heading(r), r.Summary)
	}

	if p.ForPeople() && r.From != "" {
		p.Fields("state", r.From+" → "+r.To)
	}

	warned(p, warnings)
	if r.DryRun {
		showCommand(p, "to do it", doIt(a, r.NeedsConfirm))
		return
	}

	if r.Next != nil {
		showCommand(p, "next", nextCommand(*r.Next, reason))
	}

	if r.Operation != "" {
		p.Fields("operation", r.Operation, "follow it", "archivist operation show "+r.Operation+" --watch")
	}
}

// showCommand prints a command to be pasted: for people in a line of its own, which is not broken, because a
// terminal would paste the break.
func showCommand(p terminal.Page, title, command string) {
	if !p.ForPeople() {
		p.Fields(title, command)
		return
	}
	fmt.Fprintf(p, "%s\n  %s\n", terminal.Bold.Of(title+":"), terminal.Printable(command))
}

// heading is the title of the summary of an action. Unchanged is no failure: what was wanted is so already.
func heading(r v1.ActionOutcome) string {
	switch {
	case r.DryRun:
		return "dry run"
	case r.Changed:
		return "done"
	}
	return "unchanged"
}

// doIt is the command that does what a dry run has shown, with --confirm if the archive has said that it is
// needed.
func doIt(a *command.App, confirm bool) string {
	if confirm {
		return again(a, []string{"--dry-run"}, "--confirm")
	}
	return again(a, []string{"--dry-run"})
}

// nextCommand is the command that starts the bulk operation that the archive proposes, e.g. the release of the
// jobs after that of their collection. reason is that of the action before. States are lower-case, as people
// write them; the flag takes both.
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

// again is the command line of this command without some flags and with others.
func again(a *command.App, without []string, with ...string) string {
	words := []string{"archivist"}
	for _, arg := range a.Args {
		name, _, _ := strings.Cut(arg, "=")
		if !slices.Contains(without, name) && !slices.Contains(with, name) {
			words = append(words, arg)
		}
	}
	return quoted(append(words, with...))
}

// plainWord is a word that a shell leaves as it is. Everything else is quoted, also what some shells would
// leave.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted joins words to a command line for a shell. A word in single quotes is literal but for the quote itself
// ("Single-Quotes" in POSIX, Shell Command Language).
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
