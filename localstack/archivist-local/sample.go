package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

func client(o localstack.Outputs) *v1.Client {
	return &v1.Client{URL: o.APIURL, HTTP: http.DefaultClient}
}

// submit submits each object of the sample; again, with another note beside the
// files, it makes the next version.
func submit(ctx context.Context, s *localstack.Stack, o localstack.Outputs) ([]string, error) {
	objects, err := localstack.SampleObjects()
	if err != nil {
		return nil, err
	}
	fmt.Printf("submitting %d objects: %s\n", len(objects), names(objects))
	var ids []string
	for _, obj := range objects {
		known, err := client(o).Objects(ctx, v1.Filter{Collection: o.SampleCollection, LocalID: obj.LocalID})
		if err != nil {
			return nil, err
		}
		round := 1
		if len(known) > 0 {
			round = known[0].Version + 1
		}
		b, err := client(o).Submit(ctx, v1.BatchRequest{Collection: o.SampleCollection, Submitter: "make run",
			Payload:     v1.Payload{URL: fmt.Sprintf("%s/manifests/%s.checkm?round=%d", o.SampleURL, obj.LocalID, round), Type: "object-manifest"},
			Identifiers: &v1.Identifiers{Local: []string{obj.LocalID}}, Metadata: &v1.Metadata{Who: obj.Who, What: obj.What, When: obj.When}},
			fmt.Sprintf("sample-%s-%d", obj.LocalID, round))
		if err != nil {
			return nil, err
		}
		ids = append(ids, b.ID)
	}
	return ids, nil
}

// stored prints where each job's object is.
func stored(ctx context.Context, o localstack.Outputs, batches []string) error {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"ark", "version", "files", "bytes", "inventory sha512", "where stored"})
	for _, b := range batches {
		jobs, err := client(o).Jobs(ctx, v1.Filter{Batch: b})
		if err != nil {
			return err
		}
		for _, j := range jobs {
			obj, err := client(o).Object(ctx, j.Identifiers.Primary)
			if err != nil {
				return err
			}
			t.AppendRow(table.Row{obj.ARK, fmt.Sprintf("v%d", j.Version), j.Progress.Files, j.Progress.Bytes, j.InventoryDigest[:16] + "…", "s3://" + o.StorageBucket + "/" + obj.Stored})
		}
	}
	t.Render()
	return nil
}
