package merritt

import (
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// otherTypes are the names of types in Merritt's own code, in lower case.
var otherTypes = map[string]string{"manifest": ingest.TypeObjectManifest,
	"batchmanifest":          ingest.TypeBatchManifest,
	"batchmanifestfile":      ingest.TypeSingleFileBatch,
	"batchmanifestcontainer": ingest.TypeContainerBatch}

// setType sets the type of the payload.
func setType(in *Request, values []string) error {
	name := strings.ToLower(values[0])
	if other, is := otherTypes[name]; is {
		name = other
	}
	if !slices.Contains(v1.PayloadTypes, name) {
		return fault.New(fault.Invalid, "type: found %q; expected one of %s", ingest.Cut(values[0],
			100),
			strings.Join(v1.PayloadTypes, ", "))
	}
	in.Batch.Payload.Type = name
	return nil
}

// setSize sets the size of the payload.
func setSize(in *Request, values []string) error {
	size, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || size < 0 {
		return fault.New(fault.Invalid, "size: found %q; expected a number of bytes",
			ingest.Cut(values[0], 100))
	}
	in.Batch.Payload.Size = &size
	return nil
}

// setPrimary sets the ARK of the object. It may be in the path, and in two fields: all name one.
func setPrimary(in *Request, values []string) error {
	given, err := ark.Parse(values[0])
	if err != nil {
		return fault.New(fault.Invalid, "primaryIdentifier: %w", err)
	}
	ids := in.identifiers()
	if ids.Primary != "" && ids.Primary != given.String() {
		return fault.New(fault.Invalid, "primaryIdentifier: the path and the fields "+
			"primaryIdentifier and object name "+
			"two objects, %s and %s", ids.Primary, given)
	}
	ids.Primary = given.String()
	return nil
}

// checkFormat checks the form of the answer; FormatOf finds it.
func checkFormat(_ *Request, values []string) error {
	if _, known := formats[strings.ToLower(values[0])]; !known {
		return fault.New(fault.Invalid, "responseForm: found %q; expected xml or json",
			ingest.Cut(values[0], 100))
	}
	return nil
}
