package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// collectionCmd is for the managers of collections: a profile has the settings for all
// submissions to a collection.
type collectionCmd struct {
	Show collectionShowCmd `cmd:"" help:"Show a collection's profile."`
	Set  collectionSetCmd  `cmd:"" help:"Create or replace a collection's profile."`

	Hold    collectionHoldCmd `cmd:"" help:"Hold a collection: no work on its submissions starts."`
	Release collectionActCmd  `cmd:"" help:"End the hold of a collection."`
}

// collectionShowCmd shows the defaults for a collection that has no profile of its own.
type collectionShowCmd struct {
	Name string `arg:"" help:"Name of a collection."`
}

func (collectionShowCmd) prints() any { return v1.Collection{} }

// Run succeeds even without a stored profile: each collection has at least the defaults.
func (c *collectionShowCmd) Run(a *app) error {
	got, err := a.client.Collection(a.ctx, c.Name)
	if err != nil {
		return err
	}
	return a.showCollection(got)
}

// collectionSetCmd replaces the whole profile: a field that the file leaves out gets its
// default.
type collectionSetCmd struct {
	Name string `arg:"" help:"Name of a collection."`
	File string `arg:"" help:"JSON file that holds the profile, e.g. profile.json; - reads the standard input."`
}

func (collectionSetCmd) prints() any { return v1.Collection{} }

// Run refuses a file with an unknown field: a misspelt name would be ignored silently.
func (c *collectionSetCmd) Run(a *app) error {
	in, err := a.open(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	var p v1.Profile
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return fault.New(fault.Invalid, "%s is not a profile: %w; "+
			"archivist collection show %s --json profile prints one", c.File, err, c.Name)
	}
	got, err := a.client.PutCollection(a.ctx, c.Name, p)
	if err != nil {
		return err
	}
	return a.showCollection(got)
}

// showCollection prints what differs from the defaults.
func (a *app) showCollection(c v1.Collection) error {
	return a.print(c, func(p terminal.Page) {
		profile := c.Profile
		own, digests, priority, callback := "", "", "", ""
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
			callback = fmt.Sprintf("%s, signed by %s, %s", b.URL, b.Secret, b.Mode)
		}
		p.Fields("collection", c.Name, "held", holdText(c.Hold), "profile", own, "title", profile.Title,
			"priority", priority, "shoulder", profile.Shoulder, "digests", digests,
			"notification", strings.Join(profile.Notification, ", "),
			"suppress", profile.Suppress, "callback", callback)
	})
}

// open opens a file of the user, or the standard input for -.
func (a *app) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.machine.in), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return f, nil
}
