// Package inprocess runs the whole system in one process: the deployed functions, wired by
// package boot, on twins of the services of AWS.
//
// Functions get the payloads that they get on AWS, from queues, the table's stream, rules, state
// machines and the gateway of the API, with the time-outs, retries and dead letters that infra
// gives them. AWS clients with the configuration of Config call the twins. Tests use it as a
// system of their own, which starts within milliseconds; in a bubble of testing/synctest an hour
// of it passes at once.
//
//	system, err := inprocess.Start(inprocess.Settings{Listen: "127.0.0.1:0"})
//	defer system.Close()
//	http.ListenAndServe("127.0.0.1:8080", system.API())
//
// What AWS does beyond that, e.g. permissions, encryption and alarms, is not there.
//
// The parts: system.go has the settings and what a system consists of; wiring.go and
// resources.go make what infra makes, by the names in names.go, and a test of infra compares
// them; lambda.go, async.go, mapping.go, stream.go, rules.go and gateway.go invoke functions
// as Lambda's event sources do; sqs.go, services.go, s3.go and the packages tabletest,
// buckettest and states are the twins, and operations.go knows what they do; intercept.go
// leads the calls of AWS clients to them; faults.go has what a test does to the system, and
// points.go the calls at which a process ends.
//
// What holds: nothing waits but by package time and on channels, so a bubble of
// testing/synctest knows when all is idle; and nothing of a function has an effect after its
// process has died.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"archivist/pkg/app/inprocess/states"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
)

// noEndpoint is where S3 is if it is not served. It tells the system that it is local.
const noEndpoint = "http://s3.process.invalid"

// Start starts a system. An error says which setting is wrong. When it returns, the system
// works; the rules have fired, or are about to. The caller closes it.
func Start(settings Settings) (*System, error) {
	settings, err := settings.complete()
	if err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(context.Background())
	s := &System{
		settings:   settings,
		log:        settings.Log,
		cancel:     cancel,
		endpoint:   noEndpoint,
		table:      settings.Table,
		tables:     newTables(),
		targets:    slices.Clone(settings.Targets),
		buckets:    settings.Buckets,
		queues:     &queues{all: map[string]*queue{}},
		operations: operations{},
		services: &services{
			told:    settings.Mail,
			secrets: map[string]string{},
			sums:    map[string]float64{},
			refused: map[string]bool{},
		},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}

	s.functions = &functions{log: s.log, ctx: ctx, all: map[string]*function{}}
	s.rules = &rules{
		queues:    s.queues,
		functions: s.functions,
		all: []*rule{{name: ruleMinute, targets: settings.minutely()},
			{name: ruleStopped, targets: []string{fnScheduler}}},
	}

	s.machines = &states.Machines{Invoke: s.invokeFor, Send: s.sendFor, Changed: s.rules.stopped}
	err = s.start(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("inprocess: %w", err), s.Close())
	}
	return s, nil
}

// start makes all resources and starts what invokes functions. The order matters: functions
// name queues, and what invokes them starts when all is there.
func (s *System) start(ctx context.Context) (err error) {
	if err := s.storage(); err != nil {
		return err
	}

	if s.settings.Listen != "" {
		if s.endpoint, err = s.listen(s.settings.Listen); err != nil {
			return err
		}
	}

	timing := ingest.Timings[s.settings.Timing]
	s.newQueues(timing)
	s.newFunctions(timing)
	if err := s.newMachines(timing); err != nil {
		return err
	}

	s.gateway = &gateway{functions: s.functions, tokens: s.settings.Issuer.URL != "", origins: s.settings.Origins}
	s.answer()
	dead, err := s.queues.named(queueWakeDead)
	if err != nil {
		return err
	}

	stream := newStream(s.functions, s.settings.Window, dead)
	s.watch(stream.add)
	s.running.Go(func() { stream.run(ctx) })
	for _, m := range s.mappings {
		s.running.Go(func() { m.poll(ctx, s.functions) })
	}

	for _, name := range s.rules.named(ruleMinute).targets {
		if s.settings.Each > 0 {
			s.running.Go(func() { s.rules.tick(ctx, name, s.settings.Each) })
		}
	}
	return nil
}

// storage makes the folder, the table and the buckets. Large content of buckets is in the
// folder, even if the system works in a bubble.
func (s *System) storage() (err error) {
	s.dir = s.settings.Dir
	if s.dir == "" {
		s.temporary = true
		if s.dir, err = os.MkdirTemp("", "archivist-process-"); err != nil {
			return err
		}
	}

	if s.table == nil {
		s.table = tabletest.New()
	}

	if s.buckets == nil {
		content := filepath.Join(s.dir, "content")
		s.buckets = buckettest.New(content)
		err = mkdir(content)
	}
	return err
}

// watch lets the stream see what is written to the table. The table calls it with its lock
// held, in the order of the commits.
func (s *System) watch(add func([]tabletest.Change)) {
	s.watched = s.table.Watch
	s.table.Watch = func(changes []tabletest.Change) {
		if s.watched != nil {
			s.watched(changes)
		}
		add(changes)
	}
}

// answer collects what the twins do. It is done before the first environment is made, so
// nothing guards the map.
func (s *System) answer() {
	handleTable(s.operations, s.table)
	s.tables.handle(s.operations)
	s.queues.handle(s.operations)
	s.services.handle(s.operations)
	s.rules.handle(s.operations)
	s.handleLambda(s.operations)
	s.handleMachines(s.operations)
}

// Close ends everything: invocations that run have no effect any more, messages and executions
// are gone.
//
// Environments die first, so that nothing that still runs can change the table or the
// buckets; then it waits for all that it has started.
func (s *System) Close() error {
	s.functions.mu.Lock()
	s.cancel()
	all := maps.Clone(s.functions.all)
	s.functions.mu.Unlock()
	for _, f := range all {
		f.close()
	}

	var err error
	if s.server != nil {
		err = s.server.Close()
	}

	s.machines.Close()
	s.running.Wait()
	s.functions.running.Wait()
	if s.table != nil {
		s.table.Watch = s.watched
	}

	if s.temporary {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// Config is the configuration of AWS clients that call the twins. Calls by it are those of
// somebody outside: no fault that a test sets meets them.
func (s *System) Config() aws.Config { return s.config(nil) }

// APIURL is the URL of the API for clients with HTTP.
const APIURL = "http://api.process.invalid"

// HTTP is a client that reaches the API at APIURL, and S3 by signed URLs, without a socket,
// and the network. All other hosts are reached by the network.
func (s *System) HTTP() *http.Client {
	hosts := map[string]http.Handler{strings.TrimPrefix(APIURL, "http://"): s.gateway,
		strings.TrimPrefix(s.endpoint, "http://"): s.sharing(s.buckets)}
	return &http.Client{Transport: &Web{Hosts: hosts, Next: http.DefaultTransport}}
}

// API is the API behind its gateway.
func (s *System) API() http.Handler { return s.gateway }

// Outputs are the outputs of the stack, with the names of infra.
func (s *System) Outputs() map[string]string { return s.outputs() }

// Table is the table.
func (s *System) Table() *tabletest.Fake { return s.table }

// Buckets are the buckets. They are an http.Handler of requests with paths like /BUCKET/KEY, and
// of signed URLs.
func (s *System) Buckets() *buckettest.Twin { return s.buckets }
