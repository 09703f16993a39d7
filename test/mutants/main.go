// Command mutants breaks one line of the code after another, and plays the tests that should see it. A mutant that no
// test sees is a rule or an effect that nothing holds to.
//
//	go run ./test/mutants -package pkg/ingest/queue -write
//
// The mutants are in list.txt: a file, "rule" or "effect", what is wrong with it, then the lines that are replaced (-)
// and those that replace them (+). A line that begins with ? has a pattern of the tests of the package that are played
// first. No file is changed: the compiler gets the mutant as an overlay. With -write the results are put into
// bench/MUTANTS.md.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

//go:embed list.txt
var list string

// more has the tests that can see a mutant of a package beside those of the package, the likeliest first. Each is
// played by `make test`.
var more = map[string][]string{
	"pkg/ingest/queue": {
		"./pkg/ingest/stage",
		"./pkg/app/lambda",
		"./test/merritt",
		"./test/sim -run TestSimulation -for 20s",
		"./test/property",
	},
	"pkg/ingest": {
		"./pkg/ingest/queue",
		"./test/sim -run TestSimulation -for 20s",
		"./test/merritt",
		"./test/property",
	},
	"cmd/archivist/jobs/deposit": {"./cmd/archivist/jobs -run Submit"},
	"pkg/api/v1/plan":            {"./cmd/archivist/jobs -run Submit"},
	"pkg/ingest/ezid":            {"./pkg/ingest/stage -run EZID|ForeignReservation"},
	"pkg/formats/container":      {"./pkg/ingest/stage -run EmptyFolders|BagFetch"},
	"pkg/ingest/stage": {
		"./test/property",
		"./test/storagesim -run TestSimulation -for 20s",
		"./test/merritt",
		"./test/sim -run TestSimulation -for 20s",
	},
	"pkg/objects/ocfl": {
		"./pkg/ingest/stage",
		"./pkg/ingest/reindex",
		"./pkg/objects/replica",
		"./test/storagesim -run TestSimulation -for 20s",
		"./test/property",
	},
	"pkg/objects/fixity": {
		"./pkg/objects/replica",
		"./test/storagesim -run TestKeeper -for 15s",
	},
	"pkg/objects/replica": {
		"./test/storagesim -run TestKeeper -for 15s",
	},
	"pkg/app/doctor": {
		"./test/sim -run TestSimulation -for 20s",
	},
	"pkg/api": {
		"./pkg/api/v1",
		"./cmd/archivist/...",
		"./test/property",
		"./test/e2e -on process",
	},
	"pkg/views/statistics":  {"./pkg/app/doctor -run TestStatistics"},
	"pkg/ingest/identity":   {"./pkg/ingest/stage"},
	"pkg/ingest/reindex":    {"./pkg/ingest/stage"},
	"pkg/objects/inventory": {"./pkg/ingest/reindex", "./pkg/ingest/stage"},
	"pkg/revisions/revision": {
		"./test/revisionsim -run TestSimulation -for 20s",
		"./pkg/api",
		"./pkg/app/lambda",
	},
	"pkg/revisions/workflow": {
		"./pkg/revisions/revision",
		"./test/revisionsim -run TestSimulation -for 20s",
	},
	"pkg/research": {
		"./test/researchsim -run TestSimulation|TestRandom -for 20s",
		"./pkg/api",
		"./pkg/app/lambda",
		"./pkg/research/researcher",
	},
	"pkg/components/component": {
		"./test/componentsim -run TestSimulation -for 20s",
		"./pkg/api",
		"./pkg/components/preservation",
	},
	"pkg/events/consumer": {
		"./test/eventsim -run TestSimulation -for 20s",
		"./pkg/api",
		"./pkg/app/lambda",
	},
	"pkg/events/eventlog": {
		"./test/eventsim -run TestSimulation -for 20s",
		"./pkg/events/consumer",
		"./pkg/events/eventarchive",
	},
}

func main() {
	folder := flag.String("package", "", "only the mutants of this package, e.g. pkg/ingest/queue")
	only := flag.String("only", "", "only the mutants whose first line has this text")
	own := flag.Bool("own", false, "only the tests of the package itself")
	write := flag.Bool("write", false, "put the results into bench/MUTANTS.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	all, err := parse(list)
	if err != nil {
		fail(err)
	}
	var played []mutant
	survived, broken := 0, 0
	for _, m := range all {
		chosen := (*folder == "" || m.folder() == *folder) && strings.Contains(m.file+" "+m.wrong, *only)
		if !chosen || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		m.killer, err = play(ctx, m, *own)
		if err != nil {
			fmt.Printf("%s %s: NOT PLAYED: %v\n", m.file, m.wrong, err)
			broken++
			continue
		}
		result := "killed by " + m.killer
		if m.killer == "" {
			survived++
			result = "SURVIVED"
		}
		fmt.Printf("%-4.0fs %s %s: %s: %s\n", time.Since(began).Seconds(), m.file, m.kind, m.wrong, result)
		played = append(played, m)
	}
	fmt.Printf("%d mutants, %d survived, %d could not be played\n", len(played), survived, broken)
	err = nil
	if *write {
		err = record(filepath.Join("bench", "MUTANTS.md"), played, *own, time.Now())
	}
	if err != nil || survived+broken > 0 {
		fail(err)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(1)
}

// play returns the first test that fails with the mutant, or "".
func play(ctx context.Context, m mutant, own bool) (killer string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	tests := []string{"./" + m.folder()}
	if m.isRule() {
		tests = append(tests, "./pkg/app/doctor")
	} else if m.first != "" {
		tests = []string{"./" + m.folder() + " -run " + m.first, "./" + m.folder()}
	}
	if !own {
		tests = append(tests, more[m.folder()]...)
	}
	for _, test := range tests {
		killer, err = run(ctx, overlay, strings.Fields(test))
		if err != nil || killer != "" {
			return killer, err
		}
	}
	return "", nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run plays the tests of a package, and returns the one that failed.
func run(ctx context.Context, overlay string, test []string) (killer string, err error) {
	args := append([]string{"test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-p=1",
		"-timeout=10m"}, test...)
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	text := string(out)
	name := strings.TrimPrefix(test[0], "./")
	switch found := failed.FindStringSubmatch(text); {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case strings.Contains(text, "[build failed]"), strings.Contains(text, "[setup failed]"):
		return "", fmt.Errorf("%s cannot be built:\n%s", name, text)
	case found != nil:
		return name + "." + found[1], nil
	case strings.Contains(text, "panic: test timed out"):
		return name + " (does not end)", nil
	}
	return name + " (ends at once)", nil // a panic outside of a test, for one
}
