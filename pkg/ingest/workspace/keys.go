package workspace

import (
	"cmp"
	"fmt"

	"archivist/pkg/ingest"
)

// The prefixes of the work bucket. A lifecycle rule removes what is left below Batches, but not
// what is below Jobs: a job may wait for ever, and an expiration counts from when a file was
// written.
const (
	Jobs    = "jobs/"    // of one job each: removed when the job ends
	Batches = "batches/" // of one batch each, while it is unpacked or reported
	Reports = "reports/" // of the batches that have ended
	Uploads = "uploads/" // of one upload each, by collection: removed with the upload (package upload)
)

// Prefix is where a job's work files are; no other job writes there.
func Prefix(job string) string { return Jobs + job + "/" }

// FileKey is where the content of a job's nth file is.
func FileKey(job string, n int) string { return fmt.Sprintf("%sfiles/%06d", Prefix(job), n) }

// PartialKey is where the state of an unfinished transfer is.
func PartialKey(job, what string) string { return Prefix(job) + "partial/" + what + ".json" }

func segmentPrefix(job string) string { return Prefix(job) + "ledger/" }

// segmentKey is where segment n of the ledger is, from 0. The numbers have six digits, so keys sort
// as numbers do.
func segmentKey(job string,
	n int) string {
	return fmt.Sprintf("%s%06d.json", segmentPrefix(job), n)
}

// unfinishedKey is where the files of a segment are noted that are there, until all are.
func unfinishedKey(job string, n int) string {
	return fmt.Sprintf("%sunfinished/%06d.json", Prefix(job), n)
}

// ManifestKey is the key of the manifest that the job's row names. Each try of Estimate
// keeps one of its own: a late worker does not change the one that was checked.
func ManifestKey(j *ingest.Job) string {
	return cmp.Or(j.Manifest, Prefix(j.ID)+"manifest.checkm")
}

// AttemptKey is where one try of a step keeps a file: no other try writes there.
func AttemptKey(job, attempt, name string) string { return Prefix(job) + attempt + "/" + name }

// SystemKey is where the system files of a job's version are listed, with the content
// of the small ones.
func SystemKey(job string) string { return Prefix(job) + "version.json" }

// PlanKey is the key of the plan for storing a job's version.
func PlanKey(job string) string { return Prefix(job) + "plan.json" }

func inventoryKey(job, attempt string) string { return planFolder(job, attempt) + "inventory.json" }

// contentKey is where segment n of a plan's new and reused content is.
func contentKey(job, attempt string, n int) string {
	return fmt.Sprintf("%scontent/%06d.json", planFolder(job, attempt), n)
}

func planFolder(job, attempt string) string { return Prefix(job) + "plan/" + attempt + "/" }

// BatchManifestKey is where the manifest of a batch is while the batch is unpacked.
func BatchManifestKey(batch string) string { return Batches + batch + "/manifest.checkm" }

// PageKey is where page n of a report in progress is.
func PageKey(b *ingest.Batch, n int) string { return fmt.Sprintf("%s%06d.json", PagePrefix(b), n) }

// PagePrefix is where the pages of a report in progress are. Each time that the batch
// enters Reporting or UpdateReporting has its own.
func PagePrefix(b *ingest.Batch) string {
	return fmt.Sprintf("%s%s/report-%d-%d/", Batches, b.ID, b.LastReport()+1, b.Entered)
}

// EarlierKey is where the results of the report before the one in progress are.
func EarlierKey(b *ingest.Batch) string { return PagePrefix(b) + "earlier.json" }

// ReportKey is where report n of a batch is, from 1.
func ReportKey(batch string, n int) string { return numbered(batch, n) + ".json" }

// SummaryKey is the key of the part of a large report that mails show.
func SummaryKey(batch string, n int) string { return numbered(batch, n) + ".summary.json" }

// numbered begins the keys of report n. The first has no number: those of before
// update-report existed have none.
func numbered(batch string, n int) string {
	if n == 1 {
		return Reports + batch
	}
	return fmt.Sprintf("%s%s.%d", Reports, batch, n)
}
