package queue

import (
	"fmt"
	"hash/fnv"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// A job and a batch are listed under what people know of them, and under what they are: in the lists of its collection,
// and in those of all collections, which are split so that no partition has to take too much. It is written in the
// transaction that makes the job, or changes what is known of it, and is removed with the job. The sort key is the
// job's place in the list of its collection, which never changes.
//
//	NAMED#local#{id}                              {created}#{job}
//	NAMED#ark#{ark}                               {created}#{job}
//	NAMED#submitter#{collection}#{name}           {created}#{job}
//	NAMED#state#{collection}#{state}              {created}#{job}, of the states in which jobs rest
//	NAMED#message#{collection}                    {created}#{job}
//	NAMED#all#{part}                              {created}#{job}
//	NAMED#all#{part}#submitter#{name}             {created}#{job}
//	NAMED#all#{part}#state#{state}                {created}#{job}
//	NAMED#all#{part}#message                      {created}#{job}
//	NAMED#batch#submitter#{collection}#{name}     {created}#{batch}, and so on
//	NAMED#batch#rejected                          {created}#{batch}
const (
	namedPK    = "NAMED"
	namedJob   = namedPK + "#"
	namedBatch = namedPK + "#batch#"
)

// The parts of the lists of all collections. A page reads each of them; all jobs and batches of the archive are written
// to them, most of them twice in some lists.
const (
	partsOfJobs    = 4
	partsOfBatches = 2
)

func namedLocal(id string) string { return namedJob + "local#" + id }

func namedARK(ark string) string { return namedJob + "ark#" + ark }

// namedSubmitter is of a collection: a person may submit millions of jobs. of is namedJob or namedBatch, here and
// below.
func namedSubmitter(of, collection, submitter string) string {
	return of + "submitter#" + collection + "#" + ingest.Cut(submitter, ingest.MaxSubmitter)
}

func namedState(of, collection, state string) string {
	return of + "state#" + collection + "#" + state
}

func namedMessage(of, collection string) string { return of + "message#" + collection }

// parts are how many parts a list of all collections has.
func parts(of string) int {
	if of == namedBatch {
		return partsOfBatches
	}
	return partsOfJobs
}

// partOf is the part of a job or batch. It follows from its id, so it stays the same.
func partOf(of, id string) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % uint32(parts(of)))
}

// namedAll is a part of the list of all jobs or batches; the others are of all collections, too.
func namedAll(of string, part int) string { return fmt.Sprintf("%sall#%d", of, part) }

func allSubmitter(of string, part int, submitter string) string {
	return namedAll(of, part) + "#submitter#" + ingest.Cut(submitter, ingest.MaxSubmitter)
}

func allState(of string, part int, state string) string {
	return namedAll(of, part) + "#state#" + state
}

func allMessage(of string, part int) string { return namedAll(of, part) + "#message" }

// passing reports whether jobs only pass through a state. They are listed under it in the lists of all collections
// only: a row more for each state would cost a sixth of what an ingest writes, and few are in these states at once.
func passing(of, state string) bool {
	_, stage := ingest.StageOf(ingest.State(state))
	return of == namedJob && (stage || state == string(ingest.Provisioning))
}

// namedRejected are the batches of all collections that failed before they had jobs.
const namedRejected = namedBatch + "rejected"

// mostSaid is how much of a message is in a row under which it is listed, in bytes.
const mostSaid = 1000

// shown is a row that lists a job or batch. In a list of messages it begins with that; in the lists of all collections
// it says what never changes, so that a list can be read by that without the rows of the jobs.
type shown struct {
	table.Owned
	Text       string `dynamo:"said,omitempty"`
	Collection string `dynamo:"coll,omitempty"`
	Submitter  string `dynamo:"submitter,omitempty"`
}

// placeOf is the place of a job or batch in a list: newest last.
func placeOf(created int64, id string) string { return fmt.Sprintf("%013d#%s", created, id) }

// Listed are the rows under which a job is listed. One that is not made yet has none.
func Listed(j *ingest.Job) (rows []table.Row) {
	if j.Created == 0 {
		return nil
	}

	var names []string
	for _, id := range j.LocalIDs {
		names = append(names, namedLocal(id))
	}
	if j.Primary != "" {
		names = append(names, namedARK(j.Primary))
	}
	place := placeOf(j.Created, j.ID)
	rows = listedAt(j.ID, place, names...)
	return append(rows, listedIn(namedJob, j.ID, place, j.Collection, string(j.State), j.Depositor(),
		j.Message)...)
}

// listedBatch are the rows under which a batch is listed.
func listedBatch(b *ingest.Batch) []table.Row {
	place := placeOf(b.Created, b.ID)
	rows := listedIn(namedBatch, b.ID, place, b.Collection, string(b.State), b.Depositor(), b.Message)
	if b.State == ingest.BatchFailed && b.Unpacked == 0 {
		rows = append(rows, listedAt(b.ID, place, namedRejected)...)
	}
	return rows
}

// listedIn are the rows of a job or batch in the lists of its collection, and in those of all.
func listedIn(of, id, place, collection, state, submitter, message string) []table.Row {
	part := partOf(of, id)
	var names []string
	all := []string{namedAll(of, part), allState(of, part, state)}
	if !passing(of, state) {
		names = append(names, namedState(of, collection, state))
	}
	if submitter != "" {
		names = append(names, namedSubmitter(of, collection, submitter))
		all = append(all, allSubmitter(of, part, submitter))
	}
	rows := listedAt(id, place, names...)

	text := ingest.Cut(message, mostSaid)
	row := func(pk, text, collection, submitter string) {
		own := table.Owned{Head: table.Head{PK: pk, SK: place}, Owner: id}
		rows = append(rows, &shown{Owned: own, Text: text, Collection: collection,
			Submitter: submitter})
	}
	for _, name := range all {
		row(name, "", collection, submitter)
	}
	if message != "" {
		row(namedMessage(of, collection), text, "", "")
		row(allMessage(of, part), text, collection, submitter)
	}
	return rows
}

func listedAt(id, place string, names ...string) []table.Row {
	keys := make([]table.Key, len(names))
	for i, name := range names {
		keys[i] = table.Key{PK: name, SK: place}
	}
	return table.OwnedAt(id, keys...)
}
