package e2e

import (
	"fmt"
	"slices"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/formats/checkm"
)

// TestFilesAreEvents: a consumer whose filter names files is called with each file of a version, and one
// whose filter names collections with the object that was added; a dry run selects the same. A
// download of a file is counted.
func TestFilesAreEvents(t *testing.T) {
	begin(t)
	const files = 13
	filter := "File+Create{parent=files}:Collection+Add{id=files}"
	apply(t, consumer.Definition{Name: "each-file", Filter: filter, Target: own(t), Batch: 5})
	src := newSource(t)
	var rows []checkm.Row
	var want []string
	for i := range files {
		path := fmt.Sprintf("/files-%02d.txt", i)
		src.put(path, []byte(path))
		rows = append(rows, src.row(path))
	}
	j := preservePayload(t, "files",
		v1.Payload{URL: src.manifest(t, "/files.checkm", rows...), Type: "object-manifest"})
	for _, row := range rows {
		want = append(want, fmt.Sprintf("%s/v%d/producer/%s", j.Identifiers.Primary, j.Version, row.Name))
	}
	want = append(want, "files")
	slices.Sort(want)
	var got []string
	until(t, "the consumer is called with all files", soon, func() bool {
		got = subjects(t, "each-file")
		slices.Sort(got)
		got = slices.Compact(got) // at least once
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("it was called with %v, expected %v", got, want)
	}
	for _, b := range calls(t, "each-file") {
		if len(b.Events) > 5 {
			t.Errorf("a call of %d events", len(b.Events))
		}
	}
	trial, err := client.TryFilter(t.Context(), v1.FilterTrial{Filter: filter, Partition: "files"})
	if err != nil || trial.Selected != len(want) {
		t.Errorf("a dry run selects %+v, %v", trial, err)
	}
	counted(t, j)
}

// counted downloads a file twice, and waits until both are counted.
func counted(t *testing.T, j v1.Job) {
	t.Helper()
	for range 2 {
		if got := string(content(t, j, "producer/files-07.txt")); got != "/files-07.txt" {
			t.Errorf("the content is %q", got)
		}
	}
	until(t, "the downloads are counted", soon, func() bool {
		of, err := client.ObjectStatistics(t.Context(), j.Identifiers.Primary)
		if err != nil {
			t.Fatal(err)
		}
		return of.Downloads == 2
	})
	all, err := client.StatisticsOf(t.Context(), "files", "", "")
	if err != nil || all.Downloads != 2 || all.Files != 13 || all.Objects != 1 {
		t.Errorf("the statistics are %+v, %v", all, err)
	}
}
