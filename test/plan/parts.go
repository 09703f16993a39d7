package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// quick are the packages whose tests need nothing but this process.
const quick = "./pkg/... ./statemachines/... ./events/... ./localstack/... ./infra/toolchain ./infra/deploy " +
	"./cmd/... ./functions/... ./bench ./test ./test/docs ./test/merritt ./test/plan ./test/run ./test/mutants " +
	"./test/adversary/..."

// local builds and runs the program that starts emulators.
const local = "go run ./localstack/archivist-local "

// onCore plays the end-to-end tests on LocalStack's open core.
const onCore = "go test -count=1 -v -shuffle on -timeout 60m ./test/e2e -on localstack"

// garbage lets tests use memory in place of processors: a quarter less of their time. What reads all source at once
// gets less of it: staticcheck with empty caches took 463 seconds of processors, and 142 in this way, with 2 GB.
var (
	garbage = []string{"GOGC=800"}
	reading = []string{"GOGC=400"}
)

var (
	vet = Part{Name: "vet", Lane: Process, Env: reading, Command: "go vet ./...", Limit: 20 * time.Minute,
		Finds: "mistakes that compile"}
	staticcheck = Part{Name: "staticcheck", Lane: Process, Env: reading, Command: "go tool staticcheck ./...",
		Limit: 20 * time.Minute, Finds: "code that is never used, and mistakes that vet does not know"}
	process = Part{Name: "tests in the process", Lane: Process, Env: garbage,
		Command: "go test -count=1 -vet=off -shuffle=on " + quick,
		Limit:   40 * time.Minute, Finds: "a rule, a row, a route, a format that is wrong"}
	templates = Part{Name: "templates", Lane: Emulators, Command: "go test -count=1 -vet=off ./infra",
		Limit: 30 * time.Minute, Finds: "a grant, an alarm, a time in the templates that is wrong"}

	large = Part{Name: "an object of 20,000 files", Lane: Process,
		Command: "go test -count=1 -vet=off -v ./bench -run TestLargeObject -files 20000",
		Limit:   20 * time.Minute, Finds: "a stage whose memory grows with the object"}
	largest = Part{Name: "an object of 360,000 files", Lane: Process,
		Command: "go test -count=1 -vet=off -v -timeout 60m ./bench -run TestLargeObject -files 360000",
		Limit:   65 * time.Minute, Finds: "a stage whose memory grows with the object"}
	linters = Part{Name: "cfn-lint and checkov", Lane: Process, Command: "go run ./infra/deploy lint",
		Limit: 40 * time.Minute, Finds: "templates that CloudFormation refuses, or that are less safe than usual"}
	programs = Part{Name: "programs for tasks", Lane: Process, Command: "go test -count=1 -v ./infra/programs",
		Limit: 20 * time.Minute, Finds: "a program of the layer that does not run where there is nothing else"}
	dynamoDB = Part{Name: "rows on DynamoDB Local", Lane: Emulators,
		Command: local + "with dynamodb go test -count=1 -v -timeout 35m -skip " + many +
			" ./pkg/kernel/table/... ./pkg/kernel/lease ./pkg/ingest/queue",
		Limit: 40 * time.Minute, Finds: "where the table in the process and Amazon's own differ"}
	// The queue's tests are played on Amazon's own; on MiniStack it is played end to end.
	tables = Part{Name: "rows on MiniStack", Lane: Emulators,
		Command: local + "with ministack go test -count=1 -v ./pkg/kernel/table ./pkg/kernel/lease ./pkg/events/filter",
		Limit:   40 * time.Minute, Finds: "where the emulator's table differs"}

	inProcess = Part{Name: "end to end in the process", Lane: Emulators, Env: garbage,
		Command: "go test -count=1 -vet=off -v -shuffle on -timeout 40m ./test/e2e -on process",
		Limit:   45 * time.Minute, Finds: "a promise to users that our own logic breaks"}
	first = Part{Name: "end to end on MiniStack", Lane: Emulators,
		Command: "go test -count=1 -v -shuffle on -timeout 40m ./test/e2e -on ministack -part first",
		Limit:   45 * time.Minute, Finds: "wire, permissions, event sources, state machines, deployment"}
	rest = Part{Name: "end to end on MiniStack, the rest", Lane: Emulators,
		Command: "go test -count=1 -v -shuffle on -timeout 60m ./test/e2e -on ministack -part rest",
		Limit:   65 * time.Minute, Finds: "processes that die, grants that nobody uses"}
	// In the lane of the emulators, whose tests install the browser, too.
	pages = Part{Name: "console in a browser", Lane: Emulators, Env: garbage,
		Command: "go test -count=1 -vet=off -v -timeout 20m ./test/console -browser",
		Limit:   25 * time.Minute, Finds: "a page that a browser, a keyboard or a screen reader cannot use"}
	readme = Part{Name: "commands of the README on MiniStack", Lane: Emulators,
		Command: "go test -count=1 -v -timeout 40m ./test/docs -run TestCommands -on ministack",
		Limit:   45 * time.Minute, Finds: "a first look that does not work as on AWS"}
	// In the lane of the emulators, which install the validator.
	outside = Part{Name: "objects by a validator that is not ours", Lane: Emulators, Env: garbage,
		Command: "go test -count=1 -vet=off -v -timeout 30m ./test/storagesim -run TestOutsideValidator -outside " +
			"-seeds=100 -seed=$LATER",
		Limit: 35 * time.Minute, Finds: "an object that only our own code takes for valid"}
	damaged = Part{Name: "damage between any two calls", Lane: Process, Env: garbage,
		Command: "go test -count=1 -vet=off -v -timeout 30m ./test/storagesim -run TestKeeper -seeds=500 -seed=$LATER",
		Limit:   35 * time.Minute, Finds: "a check that says ok over damage, and a repair that makes more of it"}
	// In the lane of the README's, whose ports it uses.
	documents = Part{Name: "commands of the documents", Lane: Emulators,
		Command: "go test -count=1 -v -timeout 40m ./test/docs -run TestCommands -on demo",
		Limit:   45 * time.Minute, Finds: "a document that does not work"}
	core = Part{Name: "end to end on LocalStack", Lane: Emulators,
		Command: onCore + " -part rest",
		Limit:   65 * time.Minute, Finds: "what one emulator accepts and another does not"}
	wholeCore = Part{Name: core.Name, Lane: Emulators, Command: onCore, Limit: core.Limit, Finds: core.Finds}
)

// These tests make thousands of calls, for which DynamoDB Local takes minutes. Those that others make, too, are played
// there.
const many = "TestFiveHundred|TestRetire|TestBadRowFailsAlone|TestBulkRequeue|TestBulkInterrupted|" +
	"TestPersonsDoNotSpendTries|TestRequeueRespectsHolds|TestEarlyCleanUpPassesWhatFails|TestDeferred|" +
	"TestMissingRows|TestDeleteBatch|TestParkedJobsSpace|TestFullChunk|TestNothingIsCleanedInVain|TestRowsAtTheCap|" +
	"TestPagesWhileBatchesMove|TestTally"

var sets = map[Set][]Part{
	Check: {vet, staticcheck, process},
	Test:  slices.Concat([]Part{vet, staticcheck, process}, simulations, []Part{first, inProcess, templates}),
	More: slices.Concat([]Part{large, programs, linters, tables, outside, rest, pages, readme, documents,
		core,
		dynamoDB}, longer,
		[]Part{damaged}, fuzzers(20_000), fuzzersOfAPI(800), races),
	Soak: slices.Concat([]Part{largest, dynamoDB, tables, outside, inProcess, first, rest,
		readme, documents, wholeCore}, all, fuzzers(2_000_000), fuzzersOfAPI(500_000), races),
}

// random are the tests that play seeds: for how many seconds each of them does in make test, and how many seeds in make
// soak.
var random = []struct {
	name, tests   string
	seconds, soak int
	finds         string
}{
	{"simulation of ingest", "./test/sim", 20, 10_000, "an order of events in which a job is lost, doubled or stuck"},
	{"simulation of storage", "./test/storagesim", 15, 2_000, "a crash or damage that leaves a wrong object"},
	{"damage in either root", "./pkg/objects/replica -run TestDamageInEitherRoot", 10, 3_000,
		"damage that no check finds, and a repair that makes more of it"},
	{"simulation of events", "./test/eventsim", 15, 3_000, "an event that a consumer misses"},
	{"histories of components", "./pkg/components/component -run TestRandomHistories", 10, 3_000,
		"an item that is ready, and not worked on"},
	{"simulation of components", "./test/componentsim", 15, 3_000, "an item that is worked on twice, or never"},
	{"simulation of research", "./test/researchsim", 15, 10_000, "a pair that is lost, or handed out twice"},
	{"simulation of revisions", "./test/revisionsim", 20, 10_000, "a task out of order"},
	{"submissions at random", "./test/property", 10, 1_000, "a submission whose outcome is not what was promised"},
	{"reindex", "./test/reindex", 10, 40, "a row that the storage does not give again"},
	{"restore", "./test/restore", 10, 100, "a restored table that does not go on"},
}

var (
	simulations, longer, all = played()

	races = []Part{
		race("./test/sim"), race("./test/eventsim"), race("./test/componentsim"), race("./test/researchsim"),
		race("./test/revisionsim"),
	}
)

// played are the random tests as make test, make test-more and make soak play them.
func played() (short, longer, all []Part) {
	for _, r := range random {
		mutants := strings.HasSuffix(r.tests, "sim")
		play := func(name, flags, withMutants string) Part {
			if mutants {
				flags += withMutants
			}
			return simulation(name, r.tests+" "+flags, r.finds)
		}
		short = append(short, play(r.name, fmt.Sprintf("-for=%ds -seed=$SEED", r.seconds), ""))
		longer = append(longer, play(r.name+", longer", fmt.Sprintf("-for=%ds -seed=$LATER", 2*r.seconds),
			" -mutants=$QUARTER"))
		all = append(all, play(r.name, fmt.Sprintf("-seeds=%d -seed=$SEED", r.soak), " -mutants=all"))
	}
	return short, longer, all
}

// fuzzers are the fuzzers of what strangers' files are read by, each for a number of tries: at the end of a
// time, a fuzzer can fail by "context deadline exceeded" although it has found nothing (Go issue 75804).
func fuzzers(tries int) (all []Part) {
	for _, f := range []struct{ dir, name, finds string }{
		{"./pkg/formats/container", "FuzzInflate", "compressed data that compress/flate judges otherwise"},
		{"./pkg/formats/container", "FuzzZip", "a zip file that archive/zip unpacks otherwise"},
		{"./pkg/formats/container", "FuzzTar", "a tar file that archive/tar unpacks otherwise"},
		{"./pkg/formats/bagit", "FuzzCheck", "a tag file by which a changed bag is valid"},
		{"./pkg/formats/anvl", "FuzzRead", "a record that cannot be read again once it is written"},
	} {
		all = append(all, Part{Name: f.name + " of " + f.dir[len("./pkg/formats/"):], Lane: Process, Finds: f.finds,
			Command: fmt.Sprintf("go test -vet=off -run=None -fuzz=%s -fuzztime=%dx %s", f.name, tries, f.dir),
			Limit:   30 * time.Minute})
	}
	return all
}

// fuzzersOfAPI are the fuzzers of what callers send, each for a number of tries. What is found is hardly made smaller:
// all tries of a run are of one system, so a smaller input may do something else.
func fuzzersOfAPI(tries int) (all []Part) {
	for _, f := range []struct{ name, finds string }{
		{"FuzzBodies", "a body that is a defect, or that is refused and stores something"},
		{"FuzzForms", "a form of Merritt that is a defect, or that is refused and stores something"},
		{"FuzzQueries", "a query that is a defect, or that is refused without a reason"},
	} {
		all = append(all, Part{Name: f.name + " of the API", Lane: Process, Finds: f.finds,
			Command: fmt.Sprintf("go test -vet=off -run=None -fuzz=%s -fuzztime=%dx -fuzzminimizetime=10x ./pkg/api",
				f.name, tries),
			Limit: 60 * time.Minute})
	}
	return all
}

// simulation is a part that plays seeds.
func simulation(name, command, finds string) Part {
	return Part{Name: name, Lane: Process, Env: garbage, Finds: finds, Limit: 65 * time.Minute,
		Command: "go test -count=1 -vet=off -v -timeout 60m " + command}
}

func race(dir string) Part {
	return simulation("races in "+dir[len("./test/"):], "-race "+dir+" -run TestSimulation -for=10s -seed=$LATER",
		"memory that is shared without a lock")
}
