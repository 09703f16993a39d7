package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "archivist/pkg/api/v1"
)

// checkHealth runs the doctor on the whole system. Its findings are the error.
func checkHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	o, err := client.Start(ctx, v1.OperationRequest{Action: "doctor",
		ActionOptions: v1.ActionOptions{Reason: "the end of the tests"}}, "")
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for err == nil && o.State == "Running" {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the doctor does not end: %+v", o)
		case <-tick.C:
			o, err = client.Operation(ctx, o.ID)
		}
	}
	if err != nil {
		return err
	}
	found, err := client.Findings(ctx, o.ID, 0)
	all := []error{err}
	for _, f := range found {
		all = append(all, fmt.Errorf("the doctor finds %s of %s: %s", f.Invariant, f.Subject, f.Evidence))
	}
	if o.State != "Done" || o.Counts.Checked == 0 {
		all = append(all, fmt.Errorf("the doctor has checked nothing: %+v", o))
	}
	return errors.Join(all...)
}
