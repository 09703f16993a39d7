package inprocess

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"archivist/pkg/app/inprocess/states"
)

// bus is the name of the bus of public events, as infra has it.
const bus = "archivist"

// The rules of the system, as infra names them.
const (
	ruleMinute  = "EachMinute"
	ruleStopped = "Stopped"
)

// rule is a rule of EventBridge: the system's own, or one with a pattern on the bus of public
// events.
type rule struct {
	name    string
	bus     string // "" = the default one
	pattern any    // what it selects, as JSON
	targets []string
	off     bool
}

// rules are the rules of an account. A rule is never changed in place: see change.
type rules struct {
	queues    *queues
	functions *functions

	mu  sync.Mutex
	all []*rule
	// sent counts events, for their ids.
	sent int
}

// handle adds the operations of EventBridge.
func (s *rules) handle(o operations) {
	op(o, s.putEvents)
	op(o, s.putRule)
	op(o, s.putTargets)
	op(o, s.enable)
	op(o, s.disable)
	op(o, s.list)
	op(o, s.listTargets)
}

// on reports whether a rule is enabled.
func (s *rules) on(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.named(name)
	return r != nil && !r.off
}

// named is a rule, nil if there is none. The caller holds the lock.
func (s *rules) named(name string) *rule {
	i := slices.IndexFunc(s.all, func(r *rule) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// newEvent is an event as a target gets it. The fields are those of "AWS service event
// metadata" in its user guide.
func newEvent(source, kind string, resource string, detail any) []byte {
	d, err := json.Marshal(detail)
	if err != nil {
		panic(err) // texts and numbers can always be encoded
	}

	now := time.Now()
	out, err := json.Marshal(events.EventBridgeEvent{
		Version:    "0",
		ID:         strconv.FormatInt(now.UnixNano(), 36),
		DetailType: kind,
		Source:     source,
		AccountID:  account,
		Time:       now.UTC(),
		Region:     region,
		Resources:  []string{resource},
		Detail:     d,
	})
	if err != nil {
		panic(err) // as above
	}
	return out
}

// tick invokes a target of the minute's rule at once, and then at each interval. It waits for
// the answer, so that a slow machine is not overrun; the next interval repeats an invocation
// that failed, as Lambda would. Ticks that come while it waits are one.
func (s *rules) tick(ctx context.Context, function string, each time.Duration) {
	clock := time.NewTicker(each)
	defer clock.Stop()
	for ctx.Err() == nil {
		if s.on(ruleMinute) {
			// A failure is logged there.
			_, _ = s.functions.invoke(ctx, function, newEvent("aws.events", "Scheduled Event",
				arn("events", "rule/"+ruleMinute), struct{}{}))
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
		}
	}
}

// statusDetail is what an event says of an execution ("Step Functions event examples").
type statusDetail struct {
	Execution string                   `json:"executionArn"`
	Machine   string                   `json:"stateMachineArn"`
	Name      string                   `json:"name"`
	Status    sfntypes.ExecutionStatus `json:"status"`
	Started   int64                    `json:"startDate"`
	Stopped   int64                    `json:"stopDate"`
	Input     string                   `json:"input"`
	Output    *string                  `json:"output"`
}

// stopped tells the scheduler of executions that a person stopped. The pattern of infra's
// rule is here in code: executions of jobs that were aborted.
func (s *rules) stopped(c states.ChangeEvent) {
	if c.Status != sfntypes.ExecutionStatusAborted || c.MachineARN != machineARN(jobMachine) ||
		!s.on(ruleStopped) {
		return
	}
	_ = s.functions.send(fnScheduler,
		newEvent("aws.states", "Step Functions Execution Status Change", c.ExecutionARN,
			statusDetail{
				Execution: c.ExecutionARN,
				Machine:   c.MachineARN,
				Name:      c.Name,
				Status:    c.Status,
				Started:   c.Started.UnixMilli(),
				Stopped:   c.Stopped.UnixMilli(),
				Input:     c.Input,
			})) // closed
}

// putEvents is PutEvents. An event whose detail is no JSON fails by itself. The matching
// rules are those of the moment at which it is sent.
func (s *rules) putEvents(_ context.Context,
	in *eventbridge.PutEventsInput) (*eventbridge.PutEventsOutput, error) {
	out := &eventbridge.PutEventsOutput{}
	for _, e := range in.Entries {
		s.mu.Lock()
		s.sent++
		id := "event-" + strconv.Itoa(s.sent)
		all := slices.Clone(s.all)
		s.mu.Unlock()
		data := newEvent(*e.Source, *e.DetailType, "", json.RawMessage(*e.Detail))
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			out.FailedEntryCount++
			out.Entries = append(out.Entries,
				types.PutEventsResultEntry{ErrorCode: aws.String("MalformedDetail")})
			continue
		}

		for _, r := range all {
			if !r.off && r.bus == lastPart(*e.EventBusName) && matches(r.pattern, value) {
				s.deliver(r, data)
			}
		}

		out.Entries = append(out.Entries, types.PutEventsResultEntry{EventId: &id})
	}
	return out, nil
}

// deliver sends an event to the targets of a rule. Functions are invoked asynchronously.
func (s *rules) deliver(r *rule, data []byte) {
	for _, target := range r.targets {
		if !strings.Contains(target, ":sqs:") {
			_ = s.functions.send(target, data) // a target that is gone is the rule's owner's to notice
			continue
		}
		if q, err := s.queues.named(target); err == nil {
			q.send(string(data), nil, 0)
		}
	}
}

// putRule is PutRule. A rule of the same name is replaced, without its targets.
func (s *rules) putRule(_ context.Context,
	in *eventbridge.PutRuleInput) (*eventbridge.PutRuleOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pattern any
	if json.Unmarshal([]byte(aws.ToString(in.EventPattern)), &pattern) != nil || !valid(pattern) {
		return nil, &types.InvalidEventPatternException{Message: in.EventPattern}
	}

	s.all = slices.DeleteFunc(s.all, func(r *rule) bool { return r.name == *in.Name })
	s.all = append(s.all, &rule{
		name:    *in.Name,
		bus:     aws.ToString(in.EventBusName),
		pattern: pattern,
	})
	return &eventbridge.PutRuleOutput{RuleArn: aws.String(arn("events", "rule/"+*in.Name))}, nil
}

// putTargets is PutTargets: queues and functions, by their ARNs.
func (s *rules) putTargets(_ context.Context,
	in *eventbridge.PutTargetsInput) (*eventbridge.PutTargetsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range in.Targets {
		err := s.change(*in.Rule,
			func(r *rule) { r.targets = append(slices.Clip(r.targets), *t.Arn) })
		if err != nil {
			return nil, err
		}
	}
	return &eventbridge.PutTargetsOutput{}, nil
}

// missing is the error for a rule that does not exist.
func missing(rule string) error {
	return &types.ResourceNotFoundException{Message: aws.String("there is no rule " + rule)}
}

// turn turns a rule on or off. A rule that does not exist is an error.
func (s *rules) turn(name string, off bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.change(name, func(r *rule) { r.off = off })
}

// change replaces a rule by one that is changed, because events may be matched with it now. The
// caller holds the lock.
func (s *rules) change(name string, do func(*rule)) error {
	i := slices.IndexFunc(s.all, func(r *rule) bool { return r.name == name })
	if i < 0 {
		return missing(name)
	}
	changed := *s.all[i]
	do(&changed)
	s.all[i] = &changed
	return nil
}

// enable is EnableRule.
func (s *rules) enable(_ context.Context,
	in *eventbridge.EnableRuleInput) (*eventbridge.EnableRuleOutput, error) {
	return &eventbridge.EnableRuleOutput{}, s.turn(*in.Name, false)
}

// disable is DisableRule. What was sent already is delivered.
func (s *rules) disable(_ context.Context,
	in *eventbridge.DisableRuleInput) (*eventbridge.DisableRuleOutput, error) {
	return &eventbridge.DisableRuleOutput{}, s.turn(*in.Name, true)
}

// listTargets is ListTargetsByRule; a target's id is its ARN.
func (s *rules) listTargets(_ context.Context, in *eventbridge.ListTargetsByRuleInput) (
	*eventbridge.ListTargetsByRuleOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.named(*in.Rule)
	if r == nil {
		return nil, missing(*in.Rule)
	}

	out := &eventbridge.ListTargetsByRuleOutput{}
	for _, target := range r.targets {
		out.Targets = append(out.Targets, types.Target{Id: &target, Arn: &target})
	}
	return out, nil
}

// list is ListRules, of all buses, in the order in which they were made.
func (s *rules) list(_ context.Context,
	in *eventbridge.ListRulesInput) (*eventbridge.ListRulesOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &eventbridge.ListRulesOutput{}
	for _, r := range s.all {
		if strings.HasPrefix(r.name, aws.ToString(in.NamePrefix)) {
			state := types.RuleStateEnabled
			if r.off {
				state = types.RuleStateDisabled
			}
			out.Rules = append(out.Rules, types.Rule{
				Name:  &r.name,
				State: state,
				Arn: aws.String(arn("events",
					"rule/"+r.name)),
			})
		}
	}
	return out, nil
}
