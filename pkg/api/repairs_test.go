package api_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/replica"
)

// TestRepairs: a repair is proposed and confirmed; each time the component that does the work gets the
// object, and only if there is a second bucket.
func TestRepairs(t *testing.T) {
	a, client, root := kept(t)
	const ark = "ark:/99999/fk4x"
	a.Components = &component.Store{Table: a.Queue.Table, Now: a.Queue.Now, NewID: a.Queue.NewID,
		Functions: []string{preservation.FixityCheck, preservation.Identification, preservation.DelayedBatches,
			preservation.Replication, preservation.CopyCheck, preservation.FileRepair}}
	in := v1.RepairRequest{File: "v1/inventory.json", Reason: "it is damaged"}
	if _, err := client.ProposeRepair(t.Context(), ark, in); !fault.Is(err, fault.Conflict) {
		t.Errorf("without a second bucket: %v", err)
	}
	definitions := preservation.Definitions(preservation.Options{Replica: true})
	err := preservation.Install(t.Context(), a.Components, definitions)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Components.Sync(t.Context(), "object:"+ark); err != nil {
		t.Fatal(err)
	}
	proposed, err := client.ProposeRepair(t.Context(), ark, in)
	if err != nil || proposed.State != replica.Planning || !strings.HasSuffix(proposed.Key, "/v1/inventory.json") {
		t.Fatalf("got %+v, %v", proposed, err)
	}
	ready := func(want bool) {
		t.Helper()
		x, err := a.Components.Standing(t.Context(), preservation.FileRepair, "object:"+ark)
		if err != nil || x.Ready != want {
			t.Errorf("ready: %+v, %v; want %t", x, err, want)
		}
	}
	ready(true)
	worker := &replica.Replica{Table: a.Queue.Table, NewID: a.Queue.NewID, Now: a.Queue.Now,
		Inventory: inventory.Store{Table: a.Queue.Table}, Root: root.Root, To: root.Derived}
	if _, err := worker.Repair(t.Context(), ark, proposed.ID); err != nil {
		t.Error(err)
	}
	_, err = client.ConfirmRepair(t.Context(), ark, proposed.ID, v1.RepairConfirmation{Token: "x", Reason: "yes"})
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a repair that is not planned was confirmed: %v", err)
	}
	all, err := client.Repairs(t.Context(), ark)
	if err != nil || len(all) != 1 || all[0].ID != proposed.ID {
		t.Errorf("got %+v, %v", all, err)
	}
}
