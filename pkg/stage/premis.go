package stage

import (
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/premis"
)

// preservation is what happened to the version until now, as PREMIS: one event
// each for the whole version. What comes later, from its storing on, is in the
// object's history.
func preservation(j *ingest.Job) premis.Document {
	local := func(value string) premis.Identifier { return premis.Identifier{Type: "local", Value: value} }
	us := local("archivist")
	d := premis.Document{Object: premis.Identifier{Type: "ARK", Value: j.Primary}, Agents: []premis.Agent{{ID: us, Name: "Archivist", Type: "software"}}}
	for _, id := range j.LocalIDs {
		d.Alternatives = append(d.Alternatives, local(id))
	}
	agents := []premis.Identifier{us}
	if j.Submitter != "" {
		submitter := local("submitter:" + j.Submitter)
		agents = append(agents, submitter)
		d.Agents = append(d.Agents, premis.Agent{ID: submitter, Name: j.Submitter, Type: "person"})
	}
	add := func(kind string, at int64, outcome, note, detail string, args ...any) {
		d.Events = append(d.Events, premis.Event{ID: local(fmt.Sprintf("%s#%s-%d", j.ID, "premis", len(d.Events)+1)), Type: kind, Time: time.UnixMilli(at),
			Detail: fmt.Sprintf(detail, args...), Outcome: outcome, Note: note, Agents: agents})
	}
	if j.Payload.Type == ingest.TypeObjectManifest {
		add("validation", j.Fetched, "success", "", "the submission manifest was held against the rules of its profile")
	}
	outcome, note := "success", ""
	if j.Warned > 0 {
		outcome, note = "warning", fmt.Sprintf("%d files have a right digest and another size than the depositor said; see %s", j.Warned, FilesName)
	}
	add("transfer", j.Fetched, outcome, note, "%d files, %d bytes were fetched from where the depositor said", j.Files, j.Bytes)
	add("message digest calculation", j.Fetched, "success", "", "sha256, sha512 and CRC64NVME of every file, and the depositor's own algorithm")
	if j.Checked > 0 {
		add("fixity check", j.Fetched, "success", "", "%d of %d files had a digest of the depositor; all were found right", j.Checked, j.Files)
	}
	add("information package creation", j.Stamp, "success", "", "identifiers, descriptions and the list of files were written for job %s of batch %s", j.ID, j.Batch)
	return d
}
