package api

import v1 "archivist/pkg/api/v1"

var (
	fixityExample = v1.FixityCheck{
		In:       v1.InStorage,
		Checked:  timeExample,
		Outcome:  "ok",
		OnRecord: 1,
		Version:  1,
		Files:    14,
		Bytes:    3160112,
	}

	repairRequestExample = v1.RepairRequest{File: "v1/content/01M7/producer/map.tif",
		Reason: "The fixity check found it damaged."}
	repairExample = v1.Repair{
		ID:         "01M7ZBMEYHBB62YP6RY21T1GQ9",
		In:         v1.InStorage,
		State:      "planning",
		Key:        "0a1/b2c/3d4/fk4tq65d6k/v1/content/01M7/producer/map.tif",
		ProposedBy: "ada",
		Reason:     "The fixity check found it damaged.",
		Proposed:   timeExample,
	}

	formatsExample = v1.FileFormats{
		Path: "producer/map.tif",
		Size: 3150112,
		Formats: []v1.Format{{
			ID:        "fmt/353",
			Name:      "Tagged Image File Format",
			MediaType: "image/tiff",
			Basis:     "extension match tif; byte match at 0, 4",
		}},
	}
)
