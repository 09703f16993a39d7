package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type collectionCmd struct {
	Show collectionShowCmd `cmd:"" help:"Show a collection's profile."`
	Set  collectionSetCmd  `cmd:"" help:"Make or replace a collection's profile."`
}

type collectionShowCmd struct {
	Name string `arg:""`
}

func (c *collectionShowCmd) Run(a *app) error {
	got, err := a.client.Collection(a.ctx, c.Name)
	if err != nil {
		return err
	}
	return a.showCollection(got)
}

type collectionSetCmd struct {
	Name string `arg:""`
	File string `arg:"" help:"JSON file with the profile, - for the standard input." example:"profile.json"`
}

func (c *collectionSetCmd) Run(a *app) error {
	in := os.Stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return fault.New(fault.Invalid, "%w", err)
		}
		defer f.Close()
		in = f
	}
	var p v1.Profile
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return fault.New(fault.Invalid, "%s is no profile: %w", c.File, err)
	}
	got, err := a.client.PutCollection(a.ctx, c.Name, p)
	if err != nil {
		return err
	}
	return a.showCollection(got)
}

func (a *app) showCollection(c v1.Collection) error {
	return a.print(c, func(w io.Writer) {
		p := c.Profile
		priority, callback := "", ""
		if p.Priority != nil {
			priority = fmt.Sprint(*p.Priority)
		}
		if p.Callback != nil {
			callback = fmt.Sprintf("%s, signed by %s, %s", p.Callback.URL, p.Callback.Secret, p.Callback.Mode)
		}
		if c.Default {
			fmt.Fprintln(w, "It has no profile of its own: the default holds.")
		}
		fields(w, "collection", c.Name, "title", p.Title, "priority", priority, "shoulder", p.Shoulder, "digests", map[bool]string{true: "required"}[p.RequireDigest],
			"notification", p.Notification, "suppress", p.Suppress, "callback", callback)
	})
}
