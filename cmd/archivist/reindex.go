package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
)

type reindexCmd struct {
	ARK    string `arg:"" optional:"" help:"ARK of one object."`
	All    bool   `help:"All objects of the storage root."`
	Cursor string `help:"With --all: go on where an earlier run stopped."`
}

func (c *reindexCmd) Run(a *app) error {
	if (c.ARK == "") != c.All {
		return fault.New(fault.Invalid, "give an ARK, or --all")
	}
	path := "/v1/reindex?"
	if c.ARK != "" {
		id, err := ark.Parse(c.ARK)
		if err != nil {
			return fault.New(fault.Invalid, "%w", err)
		}
		path += "ark=" + url.QueryEscape(id.String())
	}
	sum, err := c.pages(a, path)
	if err != nil {
		return err
	}
	if err := a.print(sum, func(w io.Writer) {
		fmt.Fprintf(w, "%d objects looked at, %d had rows missing\n", sum.Objects, sum.Changed)
		for _, f := range sum.Failed {
			fmt.Fprintf(w, "not brought back: %s: %s\n", printable(cmp.Or(f.ARK, f.Stored)), printable(f.Why))
		}
	}); err != nil || len(sum.Failed) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "%d of %d objects were not brought back as a whole; the list says why",
		len(sum.Failed), sum.Objects)
}

// pages asks for one page after the other. What was done until an error is printed,
// and how to go on.
func (c *reindexCmd) pages(a *app, path string) (sum v1.Reindexed, err error) {
	for cursor := c.Cursor; ; {
		var page v1.Reindexed
		if err := a.client.Call(a.ctx, http.MethodPost, path+"&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			for _, f := range sum.Failed {
				fmt.Fprintf(a.err, "not brought back: %s: %s\n", printable(cmp.Or(f.ARK, f.Stored)), printable(f.Why))
			}
			if cursor != "" && c.All {
				fmt.Fprintf(a.err, "%d objects are done; go on with --cursor %q\n", sum.Objects, cursor)
			}
			return sum, err
		}
		sum.Objects += page.Objects
		sum.Changed += page.Changed
		sum.Failed = append(sum.Failed, page.Failed...)
		if cursor = page.Cursor; cursor == "" {
			return sum, nil
		}
		fmt.Fprintf(a.err, "%d objects, %d changed, %d failed …\n", sum.Objects, sum.Changed, len(sum.Failed))
	}
}
