package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// sample preserves the sample, unless an earlier demo with --keep has, and shows it.
func (d *Demo) sample(ctx context.Context) error {
	if d.options.Empty {
		return nil
	}

	client := &v1.Client{URL: d.APIURL, HTTP: http.DefaultClient, User: "demo", Bearer: d.token}
	known, err := client.Objects(ctx, v1.Filter{Collection: localstack.SampleCollection})
	if err != nil {
		return err
	}

	if len(known) == 0 {
		err = d.submit(ctx, client)
		if err != nil {
			return err
		}
	}

	known, err = client.Objects(ctx, v1.Filter{Collection: localstack.SampleCollection})
	if err != nil {
		return err
	}

	// Shown also if it was preserved by an earlier demo: these are the ids to try commands with.
	d.say("Preserved in the collection %q:", localstack.SampleCollection)
	for _, o := range known {
		d.say("  %s  v%d  %s", o.ARK, o.Version, o.Title)
	}
	return nil
}

// submit submits the sample, and waits until it is preserved. A batch that ends otherwise is an error.
func (d *Demo) submit(ctx context.Context, client *v1.Client) error {
	batches, err := localstack.SubmitSample(ctx, client, d.SampleURL, "archivist demo")
	if err != nil {
		return err
	}

	// The system is in this process, so looking costs next to nothing.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	// One batch after the other: all of them have to end, so it does not matter which is asked about.
	for len(batches) > 0 {
		b, err := client.Batch(ctx, batches[0])
		switch {
		case err != nil:
			return err
		case b.State == v1.Completed:
			batches = batches[1:]
			continue
		case v1.Ended(b.State):
			return fmt.Errorf("the sample's batch %s is %s: %s", b.ID, b.State, b.Message)
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
