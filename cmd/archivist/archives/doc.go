// Package archives has the commands on archives with revisions, on the revisions and their tasks, and on the
// files that define tasks.
//
// A revision is named ARCHIVE/NUMBER, a task ARCHIVE/NUMBER/NAME, and a run of a task by hand or by schedule has
// a number after that. Commands that are used in a task itself know by its environment of which archive and
// revision it is: they send its token, and refuse to wait for themselves.
//
// What is wrong with files that define tasks is found without an API by the code of the queue (workflow.go,
// workflowfiles.go), as is what a commit would plan. The commands on what is planned ask the API; each explain
// names the one thing that is waited for in the end.
package archives
