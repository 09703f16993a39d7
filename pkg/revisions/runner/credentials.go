package runner

import (
	"strings"

	"archivist/pkg/revisions/workflow"
)

// Credentials are those with which one run reads and writes its files, and reads its secrets. They are passed to the
// runner with its Job, and kept nowhere.
type Credentials struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
	Token  string `json:"token"`
}

// Call is the input of the function task-runner. Without credentials the runner has those of its own role.
type Call struct {
	Job
	As *Credentials `json:"as,omitempty"`
}

// Reach is what a run needs of AWS: what it reads and writes in the work bucket, as prefixes of keys, and the names of
// the secrets that it may read, as their prefix.
type Reach struct{ Reads, Writes, Secrets string }

// Reach is what the run of a job may reach: it writes its own files, and reads those of its archive, where the files of
// the revision and what other tasks have left are.
func (j *Job) Reach() Reach {
	ref, _, _ := strings.Cut(strings.TrimPrefix(j.Prefix, Prefix), "/")
	return Reach{Reads: Prefix + ref + "/", Writes: j.Prefix, Secrets: workflow.SecretsOf(j.Archive)}
}
