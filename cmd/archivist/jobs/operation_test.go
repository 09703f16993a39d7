package jobs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// bulks is an archive that does an operation on 3,000 jobs: the first look finds it planning, each
// other 1,000 jobs more done.
type bulks struct {
	in    v1.OperationRequest
	looks int
	end   func(*v1.Operation) // changes the operation when it is done
}

func (s *bulks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o := v1.Operation{ID: "OP", Action: s.in.Action, State: v1.OperationRunning, DryRun: s.in.DryRun, Planning: true,
		Filter: s.in.Filter, Counts: v1.OperationCounts{Planned: 500, Left: 500}}
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/operations"); path {
	case "":
		s.in = v1.OperationRequest{}
		_ = json.NewDecoder(r.Body).Decode(&s.in)
		o.Action, o.Filter, o.DryRun = s.in.Action, s.in.Filter, s.in.DryRun
		_ = json.NewEncoder(w).Encode(o)
		return
	case "/OP/refusals":
		_ = json.NewEncoder(w).Encode(v1.List[v1.Refusal]{Items: []v1.Refusal{
			{Job: "B-00001", Reason: "it is Completed"}}})
		return
	case "/OP/items":
		_ = json.NewEncoder(w).Encode(v1.List[v1.OperationItem]{Items: []v1.OperationItem{
			{Job: "B-00001", Outcome: v1.ItemRefused, Message: "it is Completed"},
			{Job: "B-00002", Outcome: v1.ItemDone, Message: "it continues"}}})
		return
	case "/OP/findings":
		_ = json.NewEncoder(w).Encode(v1.List[v1.Finding]{Items: []v1.Finding{{Invariant: "batch-counts",
			Subject: "batch:B", Evidence: "3 are not 2", Command: "archivist doctor --repair"}}})
		return
	}
	s.looks++
	if s.looks > 1 {
		o.Planning = false
		o.Counts = v1.OperationCounts{Planned: 3000, Done: 1000 * min(s.looks-2, 3)}
		o.Counts.Left = 3000 - o.Counts.Done
	}
	if s.looks > 4 {
		o.State = v1.OperationDone
		s.end(&o)
	}
	_ = json.NewEncoder(w).Encode(o)
}

func bulkOn(t *testing.T, end func(*v1.Operation)) (*bulks, *commandtest.Console) {
	s := &bulks{end: end}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, with(t, srv.URL)
}

func well(*v1.Operation) {}

// TestBulkAsks: the flags become the filter of an operation, and those of an action its
// fields.
func TestBulkAsks(t *testing.T) {
	one := 1
	for line, want := range map[string]v1.OperationRequest{
		"job requeue --batch B --all-failed": {Action: "requeue", Filter: &v1.JobFilter{Batch: "B", State: v1.Failed}},
		"job release -c maps --all-held --confirm": {Action: "release",
			ActionOptions: v1.ActionOptions{Confirm: true}, Filter: &v1.JobFilter{Collection: "maps", State: v1.Held}},
		"job delete --state FAILED --before 3d": {Action: "delete",
			Filter: &v1.JobFilter{State: v1.Failed, Before: "2026-11-19T06:00:00Z"}},
		"job hold -c maps --until 2h": {Action: "hold", Until: "2026-11-22T08:00:00Z",
			Filter: &v1.JobFilter{Collection: "maps"}},
		"job prioritize -b B --priority 1 --state pending": {Action: "prioritize", Priority: &one,
			Filter: &v1.JobFilter{Batch: "B", State: v1.Pending}},
		"job requeue -c maps --message 404 --before 2026-11-20": {Action: "requeue",
			Filter: &v1.JobFilter{Collection: "maps", Message: "404", Before: "2026-11-20T00:00:00Z"}},
	} {
		s, c := bulkOn(t, well)
		want.Reason = "x"
		c.Want(t, line+" --reason x --no-watch", 0, "OP")
		if !reflect.DeepEqual(s.in, want) || s.looks > 0 {
			t.Errorf("%s: %+v %+v", line, s.in, s.in.Filter)
		}
	}
	for _, line := range []string{"job requeue --reason x", "job requeue B-00001 --batch B --reason x",
		"job delete --all-failed --all-held --reason x"} {
		with(t, "http://127.0.0.1:1").Want(t, line, command.ExitUsage, "give ")
	}
}

// TestEmptyFlags: a flag with an empty value is refused. It does not select all jobs, or hold
// without an end.
func TestEmptyFlags(t *testing.T) {
	for line, says := range map[string]string{
		"job delete --all-failed --batch=":            "--batch: the value is empty",
		"job requeue --all-failed -c X --collection=": "--collection: the value is empty",
		"job requeue -b B --message=":                 "--message: the value is empty",
		"job requeue --all-failed --before=":          "--before: the value is empty",
		"job requeue -b B --state=":                   "there is no state",
		"collection hold maps --until=":               "--until: the value is empty",
		"queue pause --until=":                        "--until: the value is empty",
		"job hold -b B --until=":                      "--until: the value is empty",
	} {
		with(t, "http://127.0.0.1:1").Want(t, line+" --reason x", command.ExitUsage, says)
	}
}

// TestShowJobs: the jobs of an operation are listed on request only, those refused once.
func TestShowJobs(t *testing.T) {
	refuses := func(o *v1.Operation) { o.Counts = v1.OperationCounts{Planned: 2, Done: 1, Refused: 1} }
	s, c := bulkOn(t, refuses)
	s.looks = 5
	c.Want(t, "operation show OP --jobs", 0, "B-00002\tdone\tit continues")
	s, c = bulkOn(t, refuses)
	s.looks = 5
	c.Want(t, "operation show OP", 0, "B-00001")
	if strings.Contains(c.Both.String(), "B-00002") {
		t.Errorf("shown without being asked for:\n%s", &c.Both)
	}
}

// TestNextIsACommand: the command that is offered after an action starts the operation that
// the archive has named.
func TestNextIsACommand(t *testing.T) {
	one := 7
	for _, next := range []v1.Bulk{
		{Action: "release", Filter: v1.JobFilter{Collection: "maps", State: v1.Held}},
		{Action: "hold", Filter: v1.JobFilter{Batch: "B", Message: "it's 404"}, Until: "2026-11-23T06:00:00Z"},
		{Action: "prioritize", Filter: v1.JobFilter{State: v1.Pending, Before: "2026-11-20T00:00:00Z"}, Priority: &one,
			Confirm: true},
	} {
		s, c := bulkOn(t, well)
		line := nextCommand(next, "the 2nd reason")
		words := strings.NewReplacer(`'it'\''s 404'`, "it's\x00404", "'the 2nd reason'", "the\x002nd\x00reason").Replace(line)
		args := strings.Fields(words)[1:]
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x00", " ")
		}
		want := v1.OperationRequest{Action: next.Action, Filter: &next.Filter, Until: next.Until,
			Priority:      next.Priority,
			ActionOptions: v1.ActionOptions{Reason: "the 2nd reason", Confirm: next.Confirm}}
		if code := c.Args(append(args, "--no-watch")...); code != 0 || !reflect.DeepEqual(s.in, want) {
			t.Errorf("%s: %d %+v %s", line, code, s.in, &c.Err)
		}
	}
}

// TestOperationOnATerminal: a bar with the rate and the remaining time, which fits; at the end
// the result, what was refused, and the exit code of a conflict.
func TestOperationOnATerminal(t *testing.T) {
	s, c := bulkOn(t, func(o *v1.Operation) { o.Counts.Done, o.Counts.Refused = 2999, 1 })
	c.Width, c.Env["NO_COLOR"] = 110, "1"
	c.OnWait = func() { c.Now = c.Now.Add(10*time.Second - c.Waits[len(c.Waits)-1]) } // 100 jobs a second
	code := c.Run("job requeue -b B --all-failed --reason x")
	shown := strings.Split(c.Err.String(), "\r\x1b[K")
	const third = "[=============       ]  66 %  2000 of 3000 jobs done, 100 a second, 10s left"
	if code != fault.Edges[fault.Conflict].Exit || len(shown) < 5 || shown[1] != "500 jobs found so far" ||
		shown[4] != third {
		t.Errorf("%d %q", code, shown)
	}
	for _, line := range shown {
		if len([]rune(strings.TrimSpace(strings.Split(line, "\n")[0]))) >= c.Width {
			t.Errorf("it does not fit: %q", line)
		}
	}
	const want = "100 %  2999 of 3000 jobs done, 1 refused\n\nrefused  B-00001\n  it is Completed\n"
	if c.Out.String() != want || !strings.Contains(c.Err.String(), "1 of 3000 jobs refused") {
		t.Errorf("%s%s", &c.Out, &c.Err)
	}
	if s.in.Filter.Batch != "B" {
		t.Errorf("%+v", s.in)
	}
}

// TestOperationInAPipe: lines at a modest pace, without a bar; a dry run says what would be
// done, and the command that does it.
func TestOperationInAPipe(t *testing.T) {
	_, c := bulkOn(t, well)
	c.Want(t, "job requeue -b B --reason x --dry-run", 0, "")
	const want = "500 jobs found so far\n100 %  3000 of 3000 jobs would be done\n" +
		"to do it\tarchivist job requeue -b B --reason x\n"
	if c.Out.String() != want || c.Err.String() != "operation OP\n" {
		t.Errorf("%s%s", &c.Out, &c.Err)
	}
}

// TestOperationAsJSON: each line is the operation after a change; the last has what was refused.
func TestOperationAsJSON(t *testing.T) {
	_, c := bulkOn(t, func(o *v1.Operation) { o.Counts.Refused = 1 })
	if code := c.Run("job requeue -b B --reason x --json state,counts,refusals"); code != 4 {
		t.Error(code, c.Err.String())
	}
	lines := strings.Split(strings.TrimSpace(c.Out.String()), "\n")
	var first, last operationReport
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || first.Counts.Planned != 500 {
		t.Errorf("%v: %s", err, lines[0])
	}
	err := json.Unmarshal([]byte(lines[len(lines)-1]), &last)
	if err != nil || len(lines) != 5 || last.State != v1.OperationDone || len(last.Refusals) != 1 {
		t.Errorf("%v: %s", err, &c.Out)
	}
}

// TestOperationGoesOn: an interrupt ends the command only, which says how to follow and to
// stop the operation; so does an archive that does not respond. An operation that somebody
// has interrupted can be continued.
func TestOperationGoesOn(t *testing.T) {
	const says = "operation OP continues; to follow it, run archivist operation show OP --watch, " +
		"to stop it, archivist operation interrupt OP --reason TEXT"
	_, c := bulkOn(t, well)
	ctx, cancel := context.WithCancel(t.Context())
	c.Ctx, c.OnWait = ctx, cancel
	c.Want(t, "job requeue -b B --reason x", command.ExitInterrupted, says)

	_, c = bulkOn(t, well)
	c.Env["ARCHIVIST_API"] = "http://127.0.0.1:1"
	c.Want(t, "operation show OP --watch", 7, says)

	s, c := bulkOn(t, well)
	s.end = func(o *v1.Operation) { o.State = v1.OperationInterrupted }
	c.Want(t, "operation show OP --watch", 4, "archivist operation continue OP --reason TEXT")
}

// TestNothingMatches: an operation that selects no job says so, and succeeds.
func TestNothingMatches(t *testing.T) {
	_, c := bulkOn(t, func(o *v1.Operation) { o.Counts = v1.OperationCounts{} })
	c.Want(t, "job release -c maps --reason x", 0, "no job matches\n")
}

// TestDoctor: findings have their evidence and the command that repairs them, and exit code 4.
func TestDoctor(t *testing.T) {
	s, c := bulkOn(t, func(o *v1.Operation) {
		o.Counts = v1.OperationCounts{Checked: 42, Findings: 1}
	})
	c.Width, c.Env["NO_COLOR"] = 80, "1"
	c.Want(t, "doctor", 4, "\nbroken  batch-counts  batch:B\n  3 are not 2\n  archivist doctor --repair\n")
	if s.in.Action != v1.Doctor || s.in.Repair || s.in.Reason == "" || s.in.Filter != nil {
		t.Errorf("%+v", s.in)
	}
	s.looks = 0
	s.end = func(o *v1.Operation) { o.Counts = v1.OperationCounts{Checked: 42, Findings: 1, Repaired: 1} }
	c.Want(t, "doctor --repair --reason Sunday", 0, "42 items checked, 1 finding, 1 repaired\n")
	if !s.in.Repair || s.in.Reason != "Sunday" {
		t.Errorf("%+v", s.in)
	}
}
