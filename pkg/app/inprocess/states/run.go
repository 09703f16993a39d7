package states

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"golang.org/x/sync/errgroup"
)

// play plays a flow to its end and returns its output. An error is a *failure, or that of the
// context. What passes between states is encoded each time, because its size is limited
// there.
func (b *branch) play(ctx context.Context, f *flow, data any) (any, error) {
	for name := f.start; ; {
		s := f.states[name]
		text, err := encode(data)
		if err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		err = b.record(types.HistoryEvent{Type: types.HistoryEventType(s.Type + "StateEntered"),
			StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: &name, Input: &text}})
		if err != nil {
			return nil, err
		}

		// A state may change what follows: a choice, or a catcher.
		next := s.Next
		data, err = b.enter(ctx, &visit{b, s, name, time.Now(), data, 0}, &next)
		if err != nil {
			return nil, within(name, err)
		}

		text, err = encode(data)
		if err != nil {
			return nil, within(name, err)
		}

		err = b.record(types.HistoryEvent{Type: types.HistoryEventType(s.Type + "StateExited"),
			StateExitedEventDetails: &types.StateExitedEventDetails{Name: &name, Output: &text}})
		if err != nil || next == "" {
			return data, err
		}

		name = next
	}
}

// within says in which state an error of Step Functions itself occurred. Other failures are
// passed on as they are, since definitions and people match them.
func within(name string, err error) error {
	f, ok := err.(*failure)
	if !ok || f.name != runtimeFailure {
		return err
	}
	return &failure{f.name,
		fmt.Sprintf("An error occurred while executing the state '%s': %s", name, f.cause)}
}

// enter does what a state does. It returns the state's output, and changes next if another
// state follows than the state's Next. "" for next means that the flow ends with this state.
func (b *branch) enter(ctx context.Context, v *visit, next *string) (any, error) {
	switch v.Type {
	case "Choice":
		var err error
		*next, err = v.choose()
		return v.input, err
	case "Wait":
		return v.input, v.wait(ctx)
	case "Pass":
		return v.pass()
	case "Fail":
		return nil, v.fail()
	case "Task":
		return v.try(ctx, v.task, next)
	case "Map":
		return v.try(ctx, v.mapped, next)
	}
	return v.input, nil // Succeed
}

// choose is the state to which the first choice leads that fits. A comparison with a value of
// another type is false, not an error. Without a choice that fits and a default the execution
// fails (States.NoChoiceMatched).
func (v *visit) choose() (string, error) {
	for _, c := range v.Choices {
		at, err := c.Variable.value(v.input, v.context(""))
		if err != nil {
			return "", err
		}
		text, isText := at.(string)
		yes, isBool := at.(bool)
		if c.StringEquals != nil && isText && text == *c.StringEquals ||
			c.BooleanEquals != nil && isBool && yes == *c.BooleanEquals {
			return c.Next, nil
		}
	}

	if v.Default == "" {
		return "", &failure{"States.NoChoiceMatched", "no choice of the state " + v.name +
			" fits its input"}
	}
	return v.Default, nil
}

// wait is a Wait state.
func (v *visit) wait(ctx context.Context) error {
	seconds, err := v.number(v.Seconds, v.SecondsPath)
	if err != nil {
		return err
	}
	return sleep(ctx, time.Duration(seconds)*time.Second)
}

// sleep waits for d; the error is that of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass is a Pass state: its Result wins over its Parameters.
func (v *visit) pass() (any, error) {
	result, err := v.Parameters.of(v.input, v.context(""))
	if err != nil {
		return nil, err
	}
	if v.Result == nil {
		return v.place(result)
	}

	result, err = decode(v.Result)
	if err != nil {
		return nil, err
	}
	return v.place(result)
}

// fail is the failure that a Fail state ends with. A text that a path leads to wins over the
// one in the definition. A path to something else is a failure of the machine.
func (v *visit) fail() error {
	f := &failure{v.Error, v.Cause}
	for _, read := range []struct {
		at path
		to *string
	}{{v.ErrorPath, &f.name}, {v.CausePath, &f.cause}} {
		if read.at.value == nil {
			continue
		}

		found, err := read.at.value(v.input, v.context(""))
		if err != nil {
			return err
		}

		text, isText := found.(string)
		if !isText {
			return &failure{runtimeFailure, fmt.Sprintf("%v is no text of an error", found)}
		}

		*read.to = text
	}
	return f
}

// place is a state's output: its result at its place in the input, or a part of that. The
// order is that of the language: first ResultPath, then OutputPath.
func (v *visit) place(result any) (any, error) {
	out, err := v.ResultPath.put(v.input, result)
	if err != nil {
		return nil, err
	}
	return v.OutputPath.of(out, v.context(""))
}

// try does what a state does until it succeeds, or until no retrier is left. Then a catcher
// says what follows. Each retrier counts its own tries. The end of the context is never
// retried or caught.
func (v *visit) try(ctx context.Context, do func(context.Context) (any, error),
	next *string) (any, error) {
	used := make([]int, len(v.Retry))
	for {
		result, err := v.once(ctx, do)
		if err == nil {
			return v.place(result)
		}

		// What is no failure is the end of the execution, which nothing catches.
		var f *failure
		if !errors.As(err, &f) {
			return nil, err
		}

		r := v.retrierOf(f)
		if r < 0 || used[r] >= v.Retry[r].attempts() {
			return v.caught(f, next)
		}

		if err := sleep(ctx, v.Retry[r].delay(used[r])); err != nil {
			return nil, err
		}

		used[r]++
		v.retries++
	}
}

// once does what a state does, and selects from its result.
func (v *visit) once(ctx context.Context, do func(context.Context) (any, error)) (any, error) {
	result, err := do(ctx)
	if err != nil {
		return nil, err
	}
	return v.ResultSelector.of(result, v.context(""))
}

// retrierOf is the index of the first retrier for a failure, or -1. Only the first one
// counts, even if its tries are used up, as on Step Functions.
func (v *visit) retrierOf(f *failure) int {
	for i, r := range v.Retry {
		if f.matches(r.ErrorEquals) {
			return i
		}
	}
	return -1
}

// caught is the output of a state that failed, if a catcher has the failure. Otherwise the
// failure is returned, and ends the branch.
func (v *visit) caught(f *failure, next *string) (any, error) {
	for _, c := range v.Catch {
		if f.matches(c.ErrorEquals) {
			*next = c.Next
			return c.ResultPath.put(v.input, f.output())
		}
	}
	return nil, f
}

// mapped plays the processor for each item, and returns all outputs. The first failure ends
// the others. The outputs are in the order of the items. MaxConcurrency 0 is no bound.
func (v *visit) mapped(ctx context.Context) (any, error) {
	read, err := v.ItemsPath.of(v.input, v.context(""))
	if err != nil {
		return nil, err
	}

	items, isArray := read.([]any)
	if !isArray {
		return nil, &failure{runtimeFailure, "the items are no array"}
	}

	err = v.record(types.HistoryEvent{Type: types.HistoryEventTypeMapStateStarted,
		MapStateStartedEventDetails: &types.MapStateStartedEventDetails{Length: int32(len(items))}})
	if err != nil {
		return nil, err
	}

	results := make([]any, len(items))
	g, ctx := errgroup.WithContext(ctx)
	if v.MaxConcurrency > 0 {
		g.SetLimit(v.MaxConcurrency)
	}

	// The events of all branches follow on the one by which the state began.
	last := v.last
	for i := range items {
		g.Go(func() (err error) {
			results[i], err = v.iterate(ctx, i, items[i], last)
			return err
		})
	}
	return v.mapEnded(results, g.Wait())
}

// iterate plays the processor for one item. last is the event that its first one follows on.
func (v *visit) iterate(ctx context.Context, i int, item any, last int64) (any, error) {
	b := &branch{v.m, v.x, map[string]any{"Index": json.Number(strconv.Itoa(i)), "Value": item},
		last}
	of := &types.MapIterationEventDetails{Name: &v.name, Index: int32(i)}
	data, err := v.iterateIn(ctx, b, item, of)
	if err != nil {
		_ = b.record(types.HistoryEvent{Type: types.HistoryEventTypeMapIterationFailed,
			MapIterationFailedEventDetails: of})
		return nil, err
	}
	return data, b.record(types.HistoryEvent{Type: types.HistoryEventTypeMapIterationSucceeded,
		MapIterationSucceededEventDetails: of})
}

// iterateIn plays the processor in the branch of an item, whose beginning it writes. Without an
// ItemSelector, the processor gets the item itself.
func (v *visit) iterateIn(ctx context.Context, b *branch, item any,
	of *types.MapIterationEventDetails) (any, error) {
	err := b.record(types.HistoryEvent{Type: types.HistoryEventTypeMapIterationStarted,
		MapIterationStartedEventDetails: of})
	if err != nil {
		return nil, err
	}

	if v.ItemSelector.value == nil {
		return b.play(ctx, v.processor, item)
	}

	selects := *v
	selects.branch = b
	data, err := v.ItemSelector.of(v.input, selects.context(""))
	if err != nil {
		return nil, err
	}
	return b.play(ctx, v.processor, data)
}

// mapEnded writes a Map state's end into the history.
func (v *visit) mapEnded(results []any, err error) (any, error) {
	if err != nil {
		_ = v.record(types.HistoryEvent{Type: types.HistoryEventTypeMapStateFailed})
		return nil, err
	}
	return results, v.record(types.HistoryEvent{Type: types.HistoryEventTypeMapStateSucceeded})
}
