package inprocess

import (
	"context"
	"strings"
	"time"

	"archivist/pkg/app/boot"
	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/research/feed"
	"archivist/pkg/revisions/revision"
	"archivist/statemachines"
)

// newQueues makes the queues, with the times of infra. The order is that of need: a queue's
// dead letters go to one that exists.
func (s *System) newQueues(timing ingest.Timing) {
	dead := func(name string, t ingest.Times) *queue {
		return s.queues.add(newQueue(name, 30*time.Second, t.DeadLetter))
	}

	fed := func(name string, t ingest.Times, to *queue) {
		q := newQueue(name, t.Visibility, t.Retention)
		q.dead, q.most = to, t.Receives
		s.queues.add(q)
	}

	letters := dead(queueDead, timing.Times(ingest.Stages[0]))
	for _, st := range ingest.Stages {
		fed(st.Name, timing.Times(st), letters)
	}

	fed(queueWake, timing.Wake(), dead(queueWakeDead, timing.Wake()))
	if len(s.settings.Projects) == 0 {
		return
	}

	times := timing.Research()
	curated := times
	curated.Visibility = feed.Function + timing.Return
	letters = dead(queueResearchDead, times)
	fed(queueEpisodes, curated, letters)
	fed(queueClips, curated, letters)
	fed(queueCompleted, times, letters)

	// The queues of pending work keep a message as long as the settings of research say.
	kept, err := boot.ParseResearchTimes(s.settings.ResearchTimes)
	if err != nil {
		kept.Queue = times.Retention // the functions refuse to start, and say why
	}

	for _, name := range s.settings.Projects {
		s.queues.add(newQueue(queuePending+name, time.Minute, kept.Queue))
	}
}

// newMachines makes the state machines, with the times and the resources of infra. The
// definitions have placeholders for resources and times, which the deployment fills in.
func (s *System) newMachines(timing ingest.Timing) error {
	filled := map[string]string{"admin": fnAdmin, "component": fnComponent,
		"control": fnTaskControl,
		"runner":  fnTaskRouter}

	times := map[string]time.Duration{"component": component.FunctionTime + timing.Return,
		"control": revision.ControlTime + timing.Return,
		"runner":  revision.RunnerTime + timing.Return,
		"admin":   timing.Admin().State}

	for _, st := range ingest.Stages {
		filled[st.Name], times[st.Name] = QueueURL(st.Name), timing.Times(st).State
	}

	for name := range statemachines.Definitions {
		text, err := statemachines.Timed(name,
			func(placeholder string) time.Duration { return times[placeholder] })
		if err != nil {
			return err
		}

		for placeholder, value := range filled {
			text = strings.ReplaceAll(text, "${"+placeholder+"}", value)
		}

		err = s.machines.Add(machineARN(name), name, []byte(text))
		if err != nil {
			return err
		}
	}
	return nil
}

// invokeFor invokes a function for a state machine. The text is what Lambda says of a
// function that failed (FunctionError), "" if it has not.
func (s *System) invokeFor(ctx context.Context, name string,
	payload []byte) ([]byte, string, error) {
	a, err := s.functions.invoke(ctx, name, payload)
	if err != nil || a.failed == nil {
		return a.out, "", err
	}
	return a.out, "Unhandled", nil
}

// sendFor sends a message for a state machine.
func (s *System) sendFor(_ context.Context, url, body string) error {
	q, err := s.queues.named(url)
	if err != nil {
		return err
	}
	q.send(body, nil, 0)
	return nil
}

// handleMachines adds the operations of Step Functions.
func (s *System) handleMachines(o operations) {
	op(o, s.machines.StartExecution)
	op(o, s.machines.StopExecution)
	op(o, s.machines.DescribeExecution)
	op(o, s.machines.GetExecutionHistory)
	op(o, s.machines.ListExecutions)
	op(o, s.machines.SendTaskSuccess)
	op(o, s.machines.SendTaskFailure)
}

// outputs are those of the stack, by infra's names.
func (s *System) outputs() map[string]string {
	out := map[string]string{"tableName": tableName, "storageBucket": storageBucket,
		"workBucket":   workBucket,
		"eventsBucket": eventsBucket, "derivedBucket": derivedBucket,
		"jobMachine":   machineARN(jobMachine),
		"batchMachine": machineARN(batchMachine), "adminMachine": machineARN(adminMachine),
		"componentMachine": machineARN(component.Machine), "schedulerFunction": fnScheduler,
		"relayFunction": fnRelay, "consumerFunction": fnConsumer, "componentFunction": fnComponent,
		"bus":   bus,
		"apiId": "process"}

	for _, st := range ingest.Stages {
		out["queue"+st.Name] = QueueURL(st.Name)
	}

	if s.settings.Revisions {
		out["revisionsFunction"], out["taskMachine"] = fnRevisions, machineARN(taskMachine)
	}

	if len(s.settings.Projects) == 0 {
		return out
	}

	var pending []string
	for _, name := range s.settings.Projects {
		pending = append(pending, name+"="+QueueURL(queuePending+name))
	}

	out["pendingQueues"], out["pendingWorkFunction"] = strings.Join(pending, ","), fnPendingWork
	out["curatedEpisodesQueue"], out["curatedClipsQueue"] = QueueURL(queueEpisodes),
		QueueURL(queueClips)
	out["completedWorkQueue"], out["researchDeadQueue"] = QueueURL(queueCompleted),
		QueueURL(queueResearchDead)
	return out
}
