// Package crash ends a function's process just before a chosen write to S3, so that
// tests on the local stack can verify that a job survives it.
//
// Only programs that are built with the tag "crash" do so; in all others an Injector
// is empty. A test writes a list of Points as JSON to a file, whose name is in the
// functions' environment, in the variable Env:
//
//	[{"stage": "store", "localId": "kill-3", "write": 3, "marker": "/tmp/died-3"}]
//
// A point happens once: the marker is written right before the end, and a point whose marker
// exists is left out, so the repeat of the step is not ended again. The exit status is 137,
// as after SIGKILL: no deferred function runs, and no response is sent.
package crash

// Env is the variable of the environment that names the file with the points.
const Env = "ARCHIVIST_CRASHES"

// Point is where a process ends, once. Of a consumer of events, Stage is "consumer", LocalID
// its name, and Write 0 just before its handler is called, 1 just after. The write counts
// from 1 within one call of the step, over all buckets.
type Point struct {
	Stage   string `json:"stage"`
	LocalID string `json:"localId"` // of the job
	Write   int64  `json:"write"`   // the step's nth write to S3, which is not made
	Marker  string `json:"marker"`  // file that is written when the process ends
}
