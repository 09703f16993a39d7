package v1

import (
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
)

// Kind is what an id names.
type Kind string

// The kinds of ids.
const (
	KindUnknown Kind = ""
	KindBatch   Kind = "batch"
	KindJob     Kind = "job"
	KindObject  Kind = "object"
)

// KindOf detects what an id names by its form. The id of an object is an ARK. The id of a
// job is the id of its batch, a hyphen and its row in the manifest. The id of a batch has
// no hyphen.
func KindOf(id string) Kind {
	batch, row, isJob := strings.Cut(id, "-")
	switch {
	case strings.HasPrefix(id, "ark:"):
		return KindObject
	case strings.ContainsAny(id, "/ :") || batch == "":
		return KindUnknown
	case !isJob:
		return KindBatch
	}

	if _, err := strconv.ParseUint(row, 10, 32); err != nil {
		return KindUnknown
	}
	return KindJob
}

// pathOf is the path of the resource that an id names.
func pathOf(id string) (string, error) {
	switch KindOf(id) {
	case KindObject:
		return ObjectPath(id), nil
	case KindBatch:
		return at("batches", id), nil
	case KindJob:
		return at("jobs", id), nil
	}
	return "", fault.New(fault.Invalid, "%q is not the id of a batch, a job or an object; "+
		"batch and job ids are printed by archivist submit and archivist job list", id)
}
