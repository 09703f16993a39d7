package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// StartReplay is a request to replay events for a consumer.
type StartReplay struct {
	ConsumerInput
	Acting
	Body v1.ReplayRequest
}

// ReplayInput names a replay.
type ReplayInput struct {
	ID string `path:"id" maxLength:"100"`
}

// ReplayAction is a request to act on a replay.
type ReplayAction struct {
	ReplayInput
	Acting
	Body v1.ReplayAction
}

// replays registers the routes of replays: reading a part of the past log, or all that is stored, once
// more for a consumer.
func (a *API) replays(h huma.API) {
	const of, path = "/v1/consumers/{name}/replays", "/v1/replays/{id}"
	get(a, h, of, "listReplays", "List the replays of a consumer", a.listReplays)
	post(a, h, of, "startReplay", "Replay events for a consumer, or rebuild what it keeps",
		a.startReplay)
	get(a, h, path, "getReplay", "Get a replay",
		func(ctx context.Context, in *ReplayInput) (v1.Replay, error) {
			return a.replay(ctx, in.ID)
		})

	post(a, h, path+"/actions", "actOnReplay", "Cancel a replay", a.actOnReplay)
}

// startReplay begins a replay, which runs in the background, and answers with its progress.
func (a *API) startReplay(ctx context.Context, in *StartReplay) (out v1.Replay, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	p, err := a.begin(ctx, in.Name, in.Body, by)
	if err != nil {
		return out, err
	}
	return a.replay(ctx, p.ID)
}

// begin begins a replay of events, or a rebuild from all that is stored.
func (a *API) begin(ctx context.Context, name string, b v1.ReplayRequest,
	by consumer.By) (consumer.Replay, error) {
	if !b.Rebuild {
		return a.Consumers.Replay(ctx, name, b.Into, consumer.Range{
			Partition: b.Partition,
			From:      b.From,
			Until:     b.Until,
			Filter:    b.Filter,
		}, by)
	}

	if err := onlyRebuild(b); err != nil {
		return consumer.Replay{}, err
	}
	return a.Consumers.Rebuild(ctx, name, b.Into, by)
}

// onlyRebuild refuses what a rebuild would ignore.
func onlyRebuild(b v1.ReplayRequest) error {
	for _, f := range [][2]string{{"partition", b.Partition}, {"from", b.From}, {"until", b.Until},
		{"filter", b.Filter}} {
		if f[1] != "" {
			return fault.New(fault.Invalid,
				"%s: a rebuild is of everything that is stored; leave it out, or "+
					"replay events", f[0])
		}
	}
	return nil
}

// listReplays lists the replays of a consumer, each with its progress. A consumer that does not exist is
// a NotFound; one without replays has none.
func (a *API) listReplays(ctx context.Context,
	in *ConsumerCursor) (out v1.List[v1.Replay], err error) {
	out.Items = []v1.Replay{}
	all, next, err := a.Consumers.Replays(ctx, in.Name, in.Cursor)
	if err != nil {
		return out, err
	}

	if len(all) == 0 {
		if err := a.Consumers.Exists(ctx, in.Name); err != nil {
			return out, err
		}
	}

	for _, p := range all {
		shown, err := a.replay(ctx, p.ID)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, shown)
	}

	out.Cursor = next
	return out, nil
}

// replay is a replay with its progress, a NotFound if there is none of that id.
func (a *API) replay(ctx context.Context, id string) (v1.Replay, error) {
	p, progress, err := a.Consumers.ShowReplay(ctx, id)
	if err != nil {
		return v1.Replay{}, err
	}
	return wireReplay(p, progress), nil
}

// wireReplay is the wire form of a replay with its progress. Waiting says why one that runs does not
// get on: its consumer is paused, or a partition has stopped; "" otherwise.
func wireReplay(p consumer.Replay, at consumer.Progress) v1.Replay {
	out := v1.Replay{
		ID:        p.ID,
		Consumer:  p.Consumer,
		Into:      p.Into,
		Rebuild:   p.Rebuild,
		Partition: p.Range.Partition,
		From:      p.Range.From,
		Until:     p.Range.Until,
		Filter:    p.Range.Filter,
		State:     v1.ReplayRunning,
		Failed:    at.Failed,
		Repeats:   at.Repeats,
		Reason:    p.Reason,
		Actor:     p.Actor,
		Started:   timestamp(p.Created),
		Ended:     timestamp(p.Ended),
	}

	switch {
	case p.Cancelled:
		out.State = v1.ReplayCancelled
	case p.State == consumer.ReplayDone:
		out.State = v1.ReplayDone
	case at.Paused:
		out.Waiting = "the consumer " + p.Consumer + " is paused"
	case len(at.Stops) > 0:
		out.Waiting = at.Stops[0].Reason
	}

	if out.State == v1.ReplayRunning {
		out.Partitions, out.PartitionsDone, out.Read = &at.Partitions, &at.Finished, &at.Read
		if !p.Rebuild {
			out.Total = &at.Total
		}
	}

	for _, f := range p.Failures {
		out.Failures = append(out.Failures, v1.ReplayFailure{Event: f.ID, Reason: f.Reason})
	}
	return out
}

// actOnReplay cancels a replay: there is no other action.
func (a *API) actOnReplay(ctx context.Context, in *ReplayAction) (out v1.Replay, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	if err := a.Consumers.CancelReplay(ctx, in.ID, by); err != nil {
		return out, err
	}
	return a.replay(ctx, in.ID)
}
