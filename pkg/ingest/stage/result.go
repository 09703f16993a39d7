package stage

import (
	"errors"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

var next = ingest.Result{Outcome: ingest.StepNext}

// errStopped ends the reading of the rows.
var errStopped = errors.New("stopped")

// failed turns an error of fetching into a result: content that cannot be fetched fails
// the job. It can be requeued once the source is corrected, unless its address is refused.
// A source that asks to wait is asked again later.
func failed(j *ingest.Job, err error) (ingest.Result, error) {
	switch {
	case !unfetched(err):
		return ingest.Result{}, err
	case !mayRecover(err):
		return ingest.Fail(false, err.Error()+". Correct the URL, then submit it again"), nil
	}
	if after := fetch.AskedToWait(err); after > 0 && after <= ingest.MaxDefer {
		return ingest.Defer(after, err.Error()), nil
	}
	return ingest.Fail(true, err.Error()+". Correct the source, then "+j.Again()), nil
}

// unfetched reports whether an error is the source's, not our own. Errors of our own storage have
// another kind, or none.
func unfetched(err error) bool {
	var access *fetch.AccessError
	return !errors.As(err, &access) && (fault.Is(err, fault.Invalid) || fault.Is(err, fault.Unavailable))
}

// mayRecover reports whether the source may answer differently later.
func mayRecover(err error) bool {
	var refused *fetch.RefusedError
	return unfetched(err) && (!errors.As(err, &refused) || refused.Why != "") // a profile can be changed
}
