package api

import v1 "archivist/pkg/api/v1"

var (
	fixityExample = v1.FixityCheck{Checked: timeExample, Outcome: "ok", Version: 1, Files: 14, Bytes: 3160112}

	formatsExample = v1.FileFormats{Path: "producer/map.tif", Size: 3150112, Formats: []v1.Format{{ID: "fmt/353",
		Name: "Tagged Image File Format", MediaType: "image/tiff", Basis: "extension match tif; byte match at 0, 4"}}}
)
