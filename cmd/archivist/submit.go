package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type submitCmd struct {
	Source     string   `arg:"" help:"URL of a file or of a manifest."`
	Collection string   `required:"" short:"c" help:"Collection."`
	Type       string   `help:"file, object-manifest, batch-manifest or single-file-batch-manifest; told from the content when not given." placeholder:"TYPE"`
	Filename   string   `help:"Name under which a file is kept." placeholder:"NAME"`
	Digest     string   `help:"Digest of the payload, e.g. sha256:2cf2…" placeholder:"ALGORITHM:HEX"`
	Local      []string `name:"local-id" help:"Your own identifier of the object; a known one makes a new version." placeholder:"ID" sep:"none"`
	ARK        string   `help:"ARK of the object." placeholder:"ARK"`
	Who        string   `help:"Creator."`
	What       string   `help:"Title."`
	When       string   `help:"Date."`
	Submitter  string   `help:"Who submits." env:"USER"`
	Note       string   `help:"A note on the batch."`
	Key        string   `name:"idempotency-key" help:"Submitting again with the same key gives the same batch." placeholder:"KEY"`
	Watch      bool     `short:"w" help:"Watch the batch until it ends."`
}

func (c *submitCmd) Run(a *app) error {
	in := v1.BatchRequest{Collection: c.Collection, Submitter: c.Submitter, Note: c.Note, Payload: v1.Payload{URL: c.Source, Type: c.Type, Filename: c.Filename},
		Identifiers: &v1.Identifiers{Primary: c.ARK, Local: c.Local}, Metadata: &v1.Metadata{Who: c.Who, What: c.What, When: c.When}}
	if c.Digest != "" {
		algorithm, value, ok := strings.Cut(c.Digest, ":")
		if !ok {
			return fault.New(fault.Invalid, "--digest: expected ALGORITHM:HEX, e.g. sha256:2cf2…")
		}
		in.Payload.Digest = &v1.Digest{Algorithm: algorithm, Value: value}
	}
	key := c.Key
	if key == "" {
		key = rand.Text() // so that a repeat by the network is no second batch
	}
	out, err := a.client.Submit(a.ctx, in, key)
	if err != nil {
		return err
	}
	if err := a.print(out, func(w io.Writer) { fmt.Fprintf(w, "batch %s %s\n", printable(out.ID), printable(out.State)) }); err != nil || !c.Watch {
		return err
	}
	return a.watchBatches([]string{out.ID})
}
