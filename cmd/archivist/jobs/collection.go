package jobs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// CollectionCmd is for the managers of collections: a profile has the settings for all submissions to a
// collection. A hold of one stops the work that has not started.
type CollectionCmd struct {
	List collectionListCmd `cmd:"" help:"List the collections."`
	Show collectionShowCmd `cmd:"" help:"Show a collection's profile."`
	Set  collectionSetCmd  `cmd:"" help:"Create or replace a collection's profile."`

	Hold    collectionHoldCmd `cmd:"" help:"Hold a collection: no work on its submissions starts."`
	Release collectionActCmd  `cmd:"" help:"End the hold of a collection."`
}

// collectionListCmd lists what submissions have named: a collection need not be made.
type collectionListCmd struct{}

func (collectionListCmd) Prints() any { return v1.CollectionName{} }

// Run lists the names alone; the counts of each are in "archivist collection statistics".
func (collectionListCmd) Run(a *command.App) error {
	names, err := a.Client.Collections(a.Ctx)
	if err != nil {
		return err
	}

	list := make([]v1.CollectionName, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return a.Print(list, func(p terminal.Page) {
		terminal.Table(p, list, terminal.Column[v1.CollectionName]{Title: "collection",
			Text: func(c v1.CollectionName) string { return c.Name }})
	})
}

// collectionShowCmd shows a profile as it holds, with the defaults for a collection that has none of its own.
type collectionShowCmd struct {
	Name string `arg:"" help:"Name of a collection."`
}

func (collectionShowCmd) Prints() any { return v1.Collection{} }

// Run succeeds even without a stored profile: each collection has at least the defaults.
func (c *collectionShowCmd) Run(a *command.App) error {
	return command.Show(a, showCollection)(a.Client.Collection(a.Ctx, c.Name))
}

// collectionSetCmd replaces the whole profile: a field that the file leaves out gets its default. So the file is
// the truth, and can be kept under version control.
type collectionSetCmd struct {
	Name string `arg:"" help:"Name of a collection."`
	File string `arg:"" help:"JSON file that holds the profile, e.g. profile.json; - reads the standard input."`
	beginning
}

func (collectionSetCmd) Prints() any { return v1.Collection{} }

// Run refuses a file with an unknown field: a misspelt name would be ignored silently. The file is JSON, as
// `collection show --json profile` prints it.
func (c *collectionSetCmd) Run(a *command.App) error {
	in, err := a.Open(c.File)
	if err != nil {
		return err
	}

	defer in.Close()
	var p v1.Profile
	// Only the first JSON value of the file is read.
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return fault.New(fault.Invalid, "%s is not a profile: %w; "+
			"archivist collection show %s --json profile prints one", c.File, err, c.Name)
	}

	if err := c.known(a, c.Name, false); err != nil {
		return err
	}
	return command.Show(a, showCollection)(a.Client.PutCollection(a.Ctx, c.Name, p))
}

// showCollection prints what differs from the defaults: a field without a value is not shown.
func showCollection(p terminal.Page, c v1.Collection) {
	profile := c.Profile
	// A value that is "" is not printed.
	own, digests, priority, callback, hold := "", "", "", "", ""
	if c.Default {
		own = "none of its own: the defaults hold"
	}

	if profile.RequireDigest {
		digests = "required"
	}

	if profile.Priority != nil {
		priority = strconv.Itoa(*profile.Priority)
	}

	if b := profile.Callback; b != nil {
		callback = callbackText(*b)
	}

	if profile.LegalHold != nil {
		hold = *profile.LegalHold
	}

	containers := ""
	if is := profile.Containers; is != nil {
		containers = limitsOf(*is)
	}

	p.Fields("collection", c.Name, "held", holdText(c.Hold), "profile", own, "title",
		profile.Title,
		"priority", priority, "shoulder", profile.Shoulder, "digests", digests,
		"notification", strings.Join(profile.Notification, ", "),
		"suppress", profile.Suppress, "defers", strings.Join(profile.Defer, ", "), "callback", callback,
		"containers", containers, "sources", sourcesText(profile.Sources), "formats", formatsText(profile.Formats),
		"virus scan", map[bool]string{true: "of each file"}[profile.Scan], "ARKs at", profile.Register,
		"legal hold", hold, "retained until", profile.RetainUntil)
}

// callbackText says what is called for each preserved job, what signs it, and what a failure means.
func callbackText(b v1.Callback) string {
	var parts []string
	if b.URL != "" {
		parts = append(parts, b.URL)
	}
	if len(b.Hosts) > 0 {
		parts = append(parts, "those of submissions to "+strings.Join(b.Hosts, ", "))
	}
	signed := "not signed"
	if b.Secret != "" {
		signed = "signed by " + b.Secret
	}
	return strings.Join(append(parts, signed, b.Mode), ", ")
}

// named puts lists behind what they mean, without those that are empty.
func named(lists ...[]string) string {
	var all []string
	for _, list := range lists {
		if len(list) > 1 {
			all = append(all, list[0]+" "+strings.Join(list[1:], ", "))
		}
	}
	return strings.Join(all, "; ")
}

// sourcesText is where the content of a collection may come from.
func sourcesText(s *v1.Sources) string {
	if s == nil {
		return ""
	}
	secrets := []string{"secrets"}
	for _, c := range s.Credentials {
		secrets = append(secrets, fmt.Sprintf("%s of %s", c.Secret, c.Host))
	}
	return named(append([]string{"from"}, s.Allow...), append([]string{"not from"}, s.Deny...), secrets,
		append([]string{"buckets"}, s.Buckets...))
}

// formatsText is which formats a collection takes.
func formatsText(f *v1.Formats) string {
	if f == nil {
		return ""
	}
	others := []string{"others"}
	if f.Others != "" {
		others = append(others, f.Others)
	}
	return named(append([]string{"refuse"}, f.Refuse...), append([]string{"accept"}, f.Accept...),
		append([]string{"warn"}, f.Warn...), others)
}

// limitsOf is how a collection unpacks containers, as far as that is not the default.
func limitsOf(c v1.Containers) string {
	var all []string
	if c.Keep {
		all = append(all, "kept")
	}
	for _, limit := range []struct {
		most int64
		of   string
	}{{int64(c.MaxFiles), "files"}, {c.MaxBytes, "bytes"}, {c.MaxRatio, "times their size"}} {
		if limit.most > 0 {
			all = append(all, fmt.Sprintf("at most %s %s", strconv.FormatInt(limit.most, 10), limit.of))
		}
	}
	return strings.Join(all, ", ")
}
