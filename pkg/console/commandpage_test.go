package console_test

import (
	"strings"
	"testing"

	"archivist/pkg/console"
)

// TestPagesOfCommands: what the status says by a command has its page: a failure those jobs that
// have failed for its cause, an alarm what it is about.
func TestPagesOfCommands(t *testing.T) {
	for command, page := range map[string]string{
		"archivist job list --state failed --message 'no route to host'": "" +
			"jobs?message=no+route+to+host&state=Failed",
		"archivist job list --state failed":   "jobs?state=Failed",
		"archivist job list --state held":     "jobs?state=Held",
		"archivist batch list --state failed": "batches?state=Failed",
		"archivist explain 01M7ZBMEYHBB62YP6RY21T1GQ9-00001": "" +
			"jobs/01M7ZBMEYHBB62YP6RY21T1GQ9-00001",
		"archivist queue show": "queue",
		"archivist event list --filter 'Job+All{type=job.repaired}'": "" +
			"events?filter=Job%2BAll%7Btype%3Djob.repaired%7D",
		"archivist consumer parked outside": "consumers/outside#parked",
		"archivist component line fixity-check failed": "" +
			"components/fixity-check?class=failed#line",
		"archivist component line fixity-check failed --filter a": "" +
			"components/fixity-check?class=failed&filter=a#line",
		"archivist consumer parked outside --message so": "consumers/outside?message=so#parked",
		"archivist object preservation status":           "components",
		"archivist archive show book":                    "archives/book",
		"archivist research reviews jingles":             "research/jingles#reviews",
		"archivist doctor":                               "doctor",
		"archivist operation show ABC --watch":           "operations/ABC",
		"archivist component show":                       "",
		"archivist else":                                 "",
		"archivist":                                      "",
		"":                                               "",
	} {
		if got := console.PageOfCommand(command); got != page {
			t.Errorf("%s: %q; expected %q", command, got, page)
		}
	}
	// An argument is one part of the path, whatever it has.
	got := console.PageOfCommand("archivist archive show a/../b?c")
	if strings.ContainsAny(strings.TrimPrefix(got, "archives/"), "/?") {
		t.Error(got)
	}
}
