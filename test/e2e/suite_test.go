package e2e

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// part is when a test is played.
type part string

const (
	first part = "first" // by make test, while a person waits
	rest  part = "rest"  // by make test-more
)

var which = flag.String("part", "", "part of the tests that is played: first or rest; none = both")

// entry is one of the tests of this package.
type entry struct {
	name string
	// The lanes on which make test and make test-more play it. What is our own logic is played in the process; on
	// emulators is what only they can disprove: wire, permissions, event sources, state machines, signed URLs,
	// deployment, real processes that die. On one of them at least is also what uses a grant that nothing else uses.
	test, more string
	// alone: it ends processes, takes grants away, pauses, fills up or looks at what is not its own. The others are
	// played side by side.
	alone   bool
	seconds int    // on MiniStack (if not there: in the process), on two quiet cores
	finds   string // what only it can find
}

const (
	shares = false
	alone  = true
)

// suite has all tests of this package: what each is for, when it is played and where.
var suite = []entry{
	// Ingest.
	{"TestSampleIsPreserved", "process ministack", "localstack", alone, 8,
		"the main job on the real wire, by wake-ups alone"},
	{"TestBatchFailuresAreIsolated", "process ministack", "", shares, 4,
		"a failure of one object that reaches others"},
	{"TestContentLinksAreLimited", "ministack", "localstack", shares, 2,
		"a link to content that gives more than it should"},
	{"TestRepeatedSubmissionIsOneBatch", "process", "ministack localstack", shares, 2,
		"a repeated call that is made twice"},
	{"TestJobsOfOneObjectRunInOrder", "process", "ministack localstack", shares, 5,
		"a lock that an execution does not wait for"},
	{"TestWrongSubmissionsSayWhatIsWrong", "process", "", shares, 2, "a refusal without its reason"},
	{"TestSingleFileBatchMakesAnObjectOfEachRow", "process", "", shares, 2, "a row of a batch that is left out"},
	{"TestContainers", "process ministack", "localstack", shares, 4,
		"a container whose files are not those that its program unpacks"},
	{"TestDescriptionPrecedence", "process", "", shares, 2, "a description that hides another"},
	{"TestCorrections", "process", "ministack", shares, 5, "a withdrawn id that still names its object"},
	{"TestWithdrawal", "process", "ministack", shares, 5, "a file of a withdrawn object that is given out"},
	{"TestARKsResolve", "process ministack", "", shares, 5, "an ARK that a gateway does not pass on"},
	{"TestLegalHold", "process", "ministack", shares, 9, "a legal hold that is lost, or not shown"},
	{"TestManyObjectsInOneBatch", "process", "", alone, 5,
		"executions that are repeated when many run at once"},
	{"TestOrderOfSubmissions", "process", "", shares, 20, "a submission that a later one overtakes"},
	{"TestReindexRestoresRows", "process", "ministack", shares, 9, "a row that does not follow from the storage"},
	{"TestCallbackModes", "process", "ministack", shares, 6,
		"a secret that is not found, a signature that is wrong"},
	{"TestCallbackOfSubmission", "process", "ministack", shares, 6,
		"a row of the batch that the last stage may not read"},
	{"TestSources", "process", "ministack", shares, 6,
		"a password that a function may not read, a bucket that is refused"},
	{"TestUploads", "process", "ministack", shares, 8,
		"a signed request for a file that stores another one, and a grant that an upload needs"},
	{"TestMerrittClients", "process", "ministack", shares, 5,
		"a form of Merritt's clients that is not taken as they send it"},
	{"TestVirusScan", "process", "", shares, 3, "a virus that is stored"},
	{"TestExport", "process", "", shares, 6, "an export that other tools do not read"},
	{"TestEZID", "process", "ministack", shares, 12, "a registration that does not follow the object"},
	{"TestProfileSuppressesMail", "process", "", shares, 4, "a mail too many"},
	{"TestPREMISSamplesAreValid", "process", "", shares, 3, "samples that the published schema refuses"},
	{"TestPREMISIsValid", "process", "", shares, 3, "PREMIS that the published schema refuses"},
	{"TestPREMISImport", "process", "", shares, 2, "an import that is not exported again"},

	// What goes wrong, and what repairs it.
	{"TestJobsSurviveSimultaneousFaults", "ministack", "localstack", alone, 54,
		"lost messages, killed functions, stopped executions"},
	{"TestKilledUnpackingGoesOn", "", "ministack", alone, 40,
		"a real process that dies while it unpacks a container"},
	{"TestKilledDownloadResumesAtTheLastPart", "", "ministack", alone, 23,
		"a real process that dies in a large file"},
	{"TestStoreSurvivesDeathBeforeEachWrite", "", "ministack", shares, 35, "a real process that dies in Store"},
	{"TestConsumersSurviveDeath", "", "ministack", shares, 20, "a real process that dies in a consumer"},
	{"TestArchiveSurvivesLossOfItsTable", "", "ministack", alone, 62, "a deployment on a restored table"},
	{"TestDoctorRepairs", "process", "ministack", shares, 48, "a repair that the doctor may not make"},
	{"TestDayInTheLife", "process", "", alone, 30, "what an operator does in an order that no other test has"},
	{"TestAdminAction", "process", "ministack localstack", shares, 3,
		"the state machine admin-action and its errors"},
	{"TestAdminActionOnMany", "process", "ministack", shares, 3, "its loop over pages"},
	{"TestAdminActionThatTakesLong", "process", "ministack localstack", shares, 3,
		"an execution that ends before its operation"},
	{"TestOperatorFailsARunningJob", "process", "ministack", shares, 3, "an execution that goes on without its job"},
	{"TestOperations", "", "ministack", alone, 45, "alarms that are not raised, refusals without a cause"},
	{"TestMissingGrantIsReportedAndSurvived", "", "ministack", alone, 12,
		"a function that does not run with its own role"},

	// Events, consumers, components.
	{"TestConsumersSleepAndWake", "process ministack", "localstack", shares, 20,
		"event sources, and calls of somebody's function"},
	{"TestSearchFindsWithinSeconds", "process ministack", "", shares, 2,
		"an index that misses an event (how soon: inprocess.TestConsumersHearWithinSeconds)"},
	{"TestPublicEventsReachRules", "process", "ministack localstack", shares, 3,
		"events on the bus, and compiled patterns"},
	{"TestSleeperCatchesUp", "process", "ministack", shares, 4, "an event that is lost in a long sleep"},
	{"TestEventLoopEnds", "process", "", shares, 1, "consumers that call each other without end"},
	{"TestFilesAreEvents", "process", "", shares, 5, "files without events"},
	{"TestDerived", "process", "ministack", shares, 10, "thumbnails, zip files, archived events, messages in queues"},
	{"TestReplays", "process", "ministack localstack", shares, 40,
		"a replay that sends mail again, an index that is not rebuilt"},
	{"TestAssemblyLine", "process ministack", "", shares, 24,
		"components that work twice, never, or in a wrong order"},
	{"TestLongLine", "process", "", alone, 2, "a record that a long chain of causes leaves events out of"},
	{"TestPreservation", "process", "ministack", shares, 29,
		"the grants and the memory of the components that ship"},
	{"TestRepairFromCopy", "process", "ministack", shares, 10,
		"a copy from which nothing can be restored (on MiniStack with -replica)"},
	{"TestDepositHeals", "process", "ministack", shares, 6, "a repair by a deposit that its function may not tell"},
	{"TestDamageByHand", "process", "ministack", alone, 900,
		"a kind of damage over which something says that all is right (with -damage)"},

	// Research and revisions.
	{"TestResearchQueuesWork", "process ministack", "localstack", shares, 2,
		"queues of research, and the role of a researcher"},
	{"TestOpinions", "process", "ministack", shares, 5,
		"results of several researchers that are not compared, and grants for that"},
	{"TestResearchers", "", "ministack", shares, 93, "researchers as programs that are killed and wound down"},
	{"TestPendingWorkExpires", "", "ministack localstack", shares, 1, "a researcher that reads the queue of others"},
	{"TestRevisionsOfTheText", "process ministack", "", shares, 12,
		"tasks that start out of order, or go on when superseded"},
	{"TestRevisionsInAnyOrder", "process", "ministack localstack", shares, 6, "notices at once in any order"},
	{"TestRevisionsAreOperated", "", "ministack localstack", shares, 8, "processes that outlive their task"},
	{"TestRevisionsMadeByTasks", "process", "", shares, 3, "a hook, a token, a loop of commits"},
	{"TestObjectIsArchive", "process", "ministack localstack", shares, 12, "a version that starts no task"},
	{"TestStepsOfTasks", "process ministack", "", shares, 12,
		"outputs, parameters and persons that do not reach a task"},
	{"TestTaskRuns", "", "ministack localstack", shares, 37, "the runner: logs, outputs, secrets, time-outs, death"},
	{"TestTaskRunnerReachesOnlyRuns", "", "ministack", shares, 1, "a task that reaches more than its files"},

	// The API behind its gateway.
	{"TestTokens", "process ministack", "localstack", alone, 30,
		"a token that the gateway or the API should refuse, and answers of two forms"},
	{"TestNotifierToken", "process", "ministack", shares, 2, "a hook that may do more than notify"},
	{"TestConsole", "process", "ministack", shares, 3,
		"a cookie, a redirect or bytes that a gateway changes, and a link without the gateway's path"},
	{"TestDescriptionIsValid", "", "ministack", shares, 2, "an OpenAPI document that others refuse"},
	{"TestGeneratedClient", "", "ministack", shares, 6, "a description from which no client can be made"},
	{"TestRendererIsThePackages", "", "ministack", shares, 2, "a script that the gateway changes"},
	{"TestPageInBrowser", "", "ministack", shares, 13, "a page that does not work behind the gateway's path"},
}

// soak has the tests that LocalStack's open core plays in make soak only: they take minutes there, and what they are
// about is played on MiniStack.
var soak = []string{"TestJobsSurviveSimultaneousFaults", "TestReplays", "TestRevisionsAreOperated",
	"TestObjectIsArchive", "TestAdminActionThatTakesLong"}

// on reports whether a part plays a test on a lane; no part = either.
func (e *entry) on(lane string, played part) bool {
	test, more := slices.Contains(strings.Fields(e.test), lane), slices.Contains(strings.Fields(e.more), lane)
	switch played {
	case first:
		return test
	case rest:
		return more && (lane != core || !slices.Contains(soak, e.name))
	}
	return played == "" && (test || more)
}

// parallel is how many tests are played side by side: they mostly wait.
const parallel = "8"

// begin begins a test: it leaves out one that is of another part or lane, and plays it beside others unless it
// has to be alone. Those that are alone are played before all others.
func begin(t *testing.T) {
	t.Helper()
	e := entryOf(t.Name())
	if !e.on(*lane, part(*which)) {
		t.Skipf("make test plays it on %q, make test-more on %q", e.test, e.more)
	}
	if !e.alone {
		t.Parallel()
	}
}

func entryOf(name string) *entry {
	i := slices.IndexFunc(suite, func(e entry) bool { return e.name == name })
	if i < 0 {
		return nil
	}
	return &suite[i]
}

// choose limits a run to the tests of its part and lane: others are not even listed. It reports whether the command
// had chosen some tests already.
func choose() (chosen bool, err error) {
	var names []string
	for _, e := range suite {
		if e.on(*lane, part(*which)) {
			names = append(names, e.name)
		}
	}
	if len(names) == 0 {
		return false, fmt.Errorf("-part is %q: no test of it is played on %s", *which, *lane)
	}
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = f.Value.String() != "" })
	if !set["test.parallel"] {
		err = flag.Set("test.parallel", parallel)
	}
	if !set["test.run"] {
		err = cmp.Or(err, flag.Set("test.run", "^(TestSuite|"+strings.Join(names, "|")+")$"))
	}
	return set["test.run"] || set["test.skip"], err
}

// TestSuite: each test is in the table above, and begins with it.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !isTest(f.Name.Name) || f.Recv != nil {
				continue
			}
			found = append(found, f.Name.Name)
			if entryOf(f.Name.Name) == nil || !begins(f) {
				t.Errorf("%s is not in the table suite, or does not begin with begin(t)", f.Name.Name)
			}
		}
	}
	for _, name := range soak {
		if e := entryOf(name); e == nil || !e.on(core, "") || !e.on(ministack, "") {
			t.Errorf("%s is not played on LocalStack, or only there", name)
		}
	}
	for _, e := range suite {
		all := strings.Fields(e.test + " " + e.more)
		unknown := func(lane string) bool { return !slices.Contains([]string{process, ministack, core}, lane) }
		if !slices.Contains(found, e.name) || e.finds == "" || e.seconds == 0 || len(all) == 0 ||
			slices.ContainsFunc(all, unknown) {
			t.Errorf("%+v is of no test, or lacks something", e)
		}
	}
}

// isTest matches the names of tests, but not of TestMain and TestSuite.
func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") && name != "TestMain" && name != "TestSuite"
}

// begins reports whether the first statement of a test is begin(t).
func begins(f *ast.FuncDecl) bool {
	s, is := f.Body.List[0].(*ast.ExprStmt)
	if !is {
		return false
	}
	call, is := s.X.(*ast.CallExpr)
	if !is {
		return false
	}
	name, is := call.Fun.(*ast.Ident)
	return is && name.Name == "begin"
}

// without plays what needs no stack, for a reason.
func without(why string) {
	fmt.Println("SKIPPED: the end-to-end tests:", why)
	if err := flag.Set("test.run", "^TestSuite$"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
