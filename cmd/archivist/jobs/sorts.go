package jobs

import v1 "archivist/pkg/api/v1"

// jobSort and batchSort are what lists are sorted by, listOrder is the order of one, callback
// what became of a callback. The API refuses others.
type (
	jobSort   string
	batchSort string
	listOrder string
	callback  string
)

// Candidates are the values for completion in a shell.
func (jobSort) Candidates() []string   { return v1.JobSorts }
func (batchSort) Candidates() []string { return v1.BatchSorts }
func (listOrder) Candidates() []string {
	return []string{v1.Newest, v1.Oldest, v1.Ascending, v1.Descending}
}
func (callback) Candidates() []string {
	return []string{v1.NoticeWaits, v1.NoticeDelivered, v1.NoticeFailed, v1.NoticeGivenUp}
}
