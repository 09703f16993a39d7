package merritt

import (
	"strings"
	"testing"
)

// group has the scenarios below a heading of the second level, by heading; "" is that of the
// heading itself.
type group map[string]func(*testing.T)

// groups are the scenarios, in the order of the headings.
var groups = map[string]group{
	"Conventions": {
		"":                         numbers,
		"Job Creation":             jobCreation,
		"Locking Batches and Jobs": deadWorker,
		"Acquiring a Batch":        lockBatch("unpack"),
		"Acquiring a Job":          lockJob("download"),
	},
	"Consumer Daemons to Create": {
		"": daemons,
	},
	"Batch: API Call Triggers the Creation and Queuing of a Batch": {
		"":         submission,
		"Input":    submissionInput,
		"ZK Nodes": submission,
	},
	"Batch: Acquire Pending Batch": {
		"Identifying Pending Batches":   pendingBatches,
		"Create Lock":                   lockBatch("unpack"),
		"State Description":             unpacking,
		"Batch: Pending to Held":        batchPendingToHeld,
		"Batch: Pending --> Processing": batchPendingToProcessing,
		"Output":                        batchPendingToProcessing,
		"Output / Job Details":          jobDetails,
		"Output / Place jobs in job queue, allowing sorting by priority": jobQueue,
		"Output / Place jobs references in batch queue":                  batchPendingToProcessing,
	},
	"Batch: Held --> Pending (Admin Action)": {
		"": batchHeldToPending,
	},
	"The Job Queue": {
		"": jobQueue,
	},
	"Job: Acquire Pending Job": {
		"Create Lock":                 lockGates,
		"Job: Pending --> Failed":     jobPendingToFailed,
		"Job: Pending --> Held":       jobPendingToHeld,
		"Job: Pending --> Estimating": jobPendingToEstimating,
		"Status":                      jobPendingToEstimating,
	},
	"Job: Held --> Pending (Admin Action)": {
		"":       jobHeldToPending,
		"Status": jobHeldToPending,
	},
	"Job: Acquire Estimating Job": {
		"Create Lock":                      lockJob("estimate"),
		"State Description":                estimating,
		"Output":                           estimated,
		"Job: Estimating --> Provisioning": jobEstimatingToProvisioning,
	},
	"Job: Acquire Provisioning Job": {
		"Create Lock":                       lockGates,
		"State Description":                 provisioning,
		"Job: Provisioning --> Downloading": jobProvisioningToDownloading,
	},
	"Job: Acquire Downloading Job": {
		"Create Lock":                               lockJob("download"),
		"State Description":                         downloading,
		"Ouptut (if changes detected)":              downloading,
		"Job: Downloading --> Processing":           jobDownloadingToProcessing,
		"Job: Downloading --> Failed (downloading)": jobDownloadingToFailed,
	},
	"Job: Acquire Processing Job": {
		"Create Lock":                   lockJob("process"),
		"State Description":             processing,
		"Output":                        processing,
		"Job: Processing --> Recording": jobProcessingToRecording,
		"Job: Processing --> Failed (processing)": jobProcessingToFailed,
	},
	"Job: Acquire Recording Job": {
		"Create Lock":                           lockJob("record"),
		"State Description":                     recording,
		"Job: Recording --> Notify":             jobRecordingToNotify,
		"Job: Recording --> Failed (recording)": jobRecordingToFailed,
	},
	"Job: Acquire Notify Job": {
		"Create Lock":               lockJob("notify"),
		"State Description":         notifying,
		"Job: Notify --> Completed": jobNotifyToCompleted,
		"Job: Notify --> Failed":    jobNotifyToFailed,
	},
	"Resuming failed jobs": {
		"": resuming,
		"Job: Failed --> Downloading (Admin Action)": resumed(failedDownloading),
		"Job: Failed --> Processing (Admin Action)":  resumed(failedProcessing),
		"Job: Failed --> Recording (Admin Action)":   resumed(failedRecording),
		"Job: Failed --> Notify (Admin Action)":      resumed(failedNotify),
	},
	"Job: Completed --> DELETED (Automated Task)": {
		"": jobCompletedCleaned,
	},
	"Job: Failed --> DELETED (Admin Action)": {
		"": jobFailedToDeleted,
	},
	"Job: Held --> DELETED (Admin Action)": {
		"": jobHeldToDeleted,
	},
	"Batch: Processing --> Reporting (Automated by event)": {
		"": batchProcessingToReporting,
	},
	"Batch: Acquire Reporting Batch": {
		"Create Lock":                    lockBatch("report"),
		"State Description":              reporting,
		"Output":                         reporting,
		"Batch: Reporting --> Completed": batchReportingToCompleted,
		"Batch: Reporting --> Failed":    batchReportingToFailed,
	},
	"Batch: Failed --> UpdateReporting (Admin Action)": {
		"": batchFailedToUpdateReporting,
	},
	"Batch: Acquire Update Reporting Batch": {
		"Create Lock":                          lockUpdateReporting,
		"State Description":                    updateReporting,
		"Output":                               updateReporting,
		"Batch: UpdateReporting --> Completed": batchUpdateReportingToCompleted,
		"Batch: UpdateReporting --> Failed":    batchUpdateReportingToFailed,
	},
	"Batch: Failed --> DELETED (Admin Action)": {
		"": batchFailedToDeleted,
	},
	"Batch: Held --> Deleted (Admin Action)": {
		"": batchHeldToDeleted,
	},
	"Batch: Completed --> Automatic Cleanup": {
		"": batchCompletedCleanup,
	},
}

// scenarioOf is the scenario of a heading, nil if it has none.
func scenarioOf(heading string) func(*testing.T) {
	above, below, _ := strings.Cut(heading, " / ")
	return groups[above][below]
}
