package component_test

import (
	"slices"
	"testing"

	"archivist/pkg/components/component"
)

// TestDoubts: a name that is almost that of a recorded event is doubted, and so is a filter for what never happens;
// names that only people record are not.
func TestDoubts(t *testing.T) {
	all := []component.Definition{{Name: "structure", Event: "Structure_checked"},
		{Name: "metadata", Event: "Metadata_checked"}}
	d := component.Definition{Name: "derivatives", Event: "Derivatives_made",
		PastSuccess: []string{"Strcture_checked", "Metadata_checked", "Delivered"}, PastFailure: []string{"Unpacked"},
		Future: []string{"Derivatives_made"}, Old: []string{"Derivative_made"},
		Items: &component.Items{Filter: "Object+Create|Install"}}
	want := []string{"pastSuccess: no component records Strcture_checked; did you mean Structure_checked?",
		"old: no component records Derivative_made; did you mean Derivatives_made?",
		"items.filter: Object+install: no event about it has that action"}
	if got := component.Doubts(d, all); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	d.PastSuccess, d.Old, d.Items = []string{"Structure_checked"}, nil, nil
	if got := component.Doubts(d, all); got != nil {
		t.Errorf("%q", got)
	}
}
