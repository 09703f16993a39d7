package ingest

import "slices"

// Stage is a step with a worker: one queue, one function, one state of a
// definition. A new stage is a row here, a file in pkg/ingest/stage and a state in the
// definition; a test requires the three sets to be equal.
type Stage struct {
	Name  string     // of the queue and of the function: "download"
	Job   State      // the job state that it works on, or ""
	Batch BatchState // the batch state that it works on, or ""
	Long  bool       // moves content: the long time-out and a time budget
	Tries int        // tries without progress before the item fails
}

// Stages lists every stage, in the order of the work. How long a stage may run follows
// from Long (timeouts.go); how long it waits between its tries is in retry.go.
var Stages = []Stage{
	{Name: "unpack", Batch: BatchPending, Tries: 10},
	{Name: "estimate", Job: Estimating, Tries: 10},
	{Name: "download", Job: Downloading, Long: true, Tries: 10},
	{Name: "process", Job: Processing, Long: true, Tries: 10},
	{Name: "store", Job: Storing, Long: true, Tries: 10},
	{Name: "record", Job: Recording, Long: true, Tries: 10},
	{Name: "notify", Job: Notify, Tries: 10},
	{Name: "report", Batch: BatchReporting, Tries: 10},
}

// StageNamed returns the stage of that name.
func StageNamed(name string) (Stage, bool) {
	return findStage(func(s Stage) bool { return s.Name == name })
}

// StageOf returns the stage that works on jobs in state s. Gates and ends have none.
func StageOf(s State) (Stage, bool) {
	return findStage(func(st Stage) bool { return st.Job == s && s != "" })
}

// StageOfBatch returns the stage that works on batches in state s. An update of a report is made by
// the stage that made the first.
func StageOfBatch(s BatchState) (Stage, bool) {
	if s == BatchUpdateReporting {
		s = BatchReporting
	}
	return findStage(func(st Stage) bool { return st.Batch == s && s != "" })
}

func findStage(is func(Stage) bool) (Stage, bool) {
	i := slices.IndexFunc(Stages, is)
	if i < 0 {
		return Stage{}, false
	}
	return Stages[i], true
}
