package status

import (
	"context"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// alarms are those that are raised.
func (s *Service) alarms(ctx context.Context, out *section) error {
	if s.Alarms == nil {
		out.State, out.Summary = v1.SectionAbsent, "this deployment has no alarms"
		return nil
	}

	raised, more, err := s.Alarms(ctx)
	if err != nil {
		return err
	}
	out.cut(more, "the first %d alarms were read", len(raised))
	for _, a := range raised {
		command, _ := CommandOf(a.Name)
		out.add(v1.StatusLine{Text: a.Name + ": " + a.Text, Attention: true, Count: 1,
			Since: ingest.Timestamp(a.Since.UnixMilli()), Command: command})
	}
	out.Summary = "none is raised"
	if len(raised) > 0 {
		out.Summary = ingest.Counted(len(raised), "alarm") + " raised"
	}
	return nil
}

// The commands that show what several alarms are about.
const (
	showQueue    = "archivist queue show"
	listResearch = "archivist research list"
	listArchives = "archivist archive list"
	inLogs       = "" // only the logs of functions, a queue of dead letters or AWS show more
)

// ofAlarms are the commands that show what an alarm of the deployment is about, by the ids of the
// alarms in infra/alarms.go.
var ofAlarms = map[string]string{
	"SchedulerSilent":       showQueue,
	"SchedulerErrors":       showQueue,
	"DeadWake":              inLogs,
	"ManyRepairs":           "archivist event list --filter 'Job+All{type=job.repaired}'",
	"Crashes":               showQueue,
	"Stuck":                 showQueue,
	"RepairErrors":          "archivist doctor",
	"GateErrors":            showQueue,
	"Refused":               inLogs,
	"MissingRows":           "archivist doctor",
	"OldestWaiting":         showQueue,
	"SpaceUsed":             showQueue,
	"FailedJobs":            "archivist job list --state failed",
	"DeadLetters":           inLogs,
	"ApiErrors":             inLogs,
	"Throttles":             "archivist settings",
	"TableWrites":           inLogs,
	"TableReads":            inLogs,
	"FailedBatchExecutions": "archivist batch list",
	"AdminErrors":           "archivist operation list",
	"PreservationFailures":  "archivist object preservation status",
	"EventProblems":         "archivist consumer list",
	"ResearchDeadLetters":   inLogs,
	"ResearchSetAside":      listResearch,
	"ResearchersPaused":     listResearch,
	"ResearchFeedsFailing":  listResearch,
	"ResearchLeasesExpired": listResearch,
	"ResearchResent":        listResearch,
	"ArchivesStopped":       listArchives,
	"RevisionsUnreadable":   listArchives,
	"TasksLost":             listArchives,
	"TasksResent":           listArchives,
	"MailFailures":          "archivist batch list",
	"MailBounces":           inLogs,
	"MailComplaints":        inLogs,
}

// KnownAlarms is how many alarms there are.
var KnownAlarms = len(ofAlarms)

// CommandOf is the command that shows what an alarm is about, "" if none does, and whether the
// alarm is one of this release. CloudFormation makes the name of an alarm of the name of the
// stack, the id of the alarm with eight digits of a digest, and more.
func CommandOf(alarm string) (command string, known bool) {
	const digest = 8
	for part := range strings.SplitSeq(alarm, "-") {
		for _, id := range []string{part, part[:max(len(part)-digest, 0)]} {
			command, known = ofAlarms[id]
			if known {
				return command, true
			}
		}
	}
	return "", false
}
