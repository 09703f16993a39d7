package console

import (
	"strconv"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// listedConsumer is a row of the list of consumers.
type listedConsumer struct {
	v1.Consumer
	Known bool   // its numbers were counted
	Old   string // when, if that is long ago
}

// showConsumers lists the consumers, and how far they had come when they were counted last.
func (c *Console) showConsumers(v *visit) (view, error) {
	all, err := v.api.Consumers(v.Context())
	rows, moving := make([]listedConsumer, len(all)), false
	for i, one := range all {
		rows[i] = listedConsumer{Consumer: one, Known: one.Counted != ""}
		if rows[i].Known && v.now.Sub(parse(one.Counted)) > silent {
			rows[i].Old = one.Counted
		}
		withoutAge(&rows[i].Consumer)
		moving = moving || one.Behind > 0 && !one.Paused && rows[i].Old == ""
	}
	return view{Title: "Consumers of events", Body: rows, Moving: moving,
		Command: "archivist consumer list",
		Said:    terminal.Count(len(all), "consumer") + "."}, err
}

// withoutAge removes what changes with each look: since when events wait is shown, which does not.
func withoutAge(c *v1.Consumer) {
	c.LagSeconds, c.Counted = 0, ""
	for i := range c.Partitions {
		c.Partitions[i].LagSeconds = 0
	}
}

// consumer is the page of a consumer.
type consumer struct {
	v1.Consumer
	Places  []consumerPlace
	Waiting []parkedRow
	More    string // the address of more parked events
	Replays []v1.Replay
	Deeds   []deedOffer
	Events  []v1.Event
	Older   string
}

// consumerPlace is how far a consumer is in a partition.
type consumerPlace struct {
	v1.ConsumerPartition
	Skip string // the address of the form that passes what it stands before; "" = it cannot
}

// parkedRow is a parked event, with what can be done.
type parkedRow struct {
	v1.ParkedEvent
	Event, Redrive, Discard string // addresses below /console/; "" = it cannot
}

// showConsumer shows a consumer: its places in the log, what it has parked, its replays, and what can be done.
func (c *Console) showConsumer(v *visit) (view, error) {
	name := v.PathValue("name")
	one, err := v.api.Consumer(v.Context(), name)
	if err != nil {
		return view{}, err
	}
	withoutAge(&one)
	x := consumer{Consumer: one}
	states := []string{"runs"}
	if one.Paused {
		states[0] = "paused"
	}
	if one.Schedule != "" {
		states = append(states, "scheduled")
	}
	for _, p := range one.Partitions {
		place := consumerPlace{ConsumerPartition: p}
		if p.Problem != "" && p.ProblemSeq > 0 {
			place.Skip = v.deedAt("consumer", "skip", []string{name}, "partition", p.Partition,
				"seq", strconv.FormatInt(p.ProblemSeq, 10))
		}
		x.Places = append(x.Places, place)
	}
	if one.Parked > 0 {
		states = append(states, "parked")
		if err := x.parked(v, name); err != nil {
			return view{}, err
		}
	}
	x.Deeds = v.deedsOn("consumer", states, name)
	replays, err := pageOf[v1.Replay](v, parts("consumers", name, "replays"), "")
	if err != nil {
		return view{}, err
	}
	x.Replays = replays.Items
	log, err := pageOf[v1.Event](v, parts("consumers", name, "events"), v.field("events"))
	x.Events, x.Older = log.Items, v.more("events", log.Cursor)
	return view{Title: "Consumer " + name, Body: x, Moving: one.Behind > 0 && !one.Paused,
		Command: "archivist consumer show " + quoted(name),
		Said:    number(one.Behind) + " events to handle, " + number(one.Parked) + " parked."}, err
}

// parked adds a page of the parked events.
func (x *consumer) parked(v *visit, name string) error {
	page, err := pageOf[v1.ParkedEvent](v, parts("consumers", name, "parked"), v.field("parked"))
	for _, p := range page.Items {
		row := parkedRow{ParkedEvent: p}
		if p.Number > 0 {
			row.Event = "event?" + query("subject", p.Subject, "version",
				strconv.FormatInt(p.Number, 10))
		}
		if p.Behind == "" {
			row.Redrive = v.deedAt("consumer", "redrive-one", []string{name}, "event", p.Event)
			row.Discard = v.deedAt("consumer", "discard-one", []string{name}, "event", p.Event)
		}
		x.Waiting = append(x.Waiting, row)
	}
	x.More = v.more("parked", page.Cursor)
	return err
}

// replay is the page of a replay.
type replay struct {
	v1.Replay
	Deeds []deedOffer
}

// showReplay shows how far a replay is, and what failed.
func (c *Console) showReplay(v *visit) (view, error) {
	id := v.PathValue("id")
	one, err := v.api.Replay(v.Context(), id)
	r := replay{one, v.deedsOn("replay", []string{one.State}, id)}
	what := "Replay for "
	if one.Rebuild {
		what = "Rebuild of "
	}
	return view{Title: what + one.Consumer, Body: r, Moving: one.State == v1.ReplayRunning,
		Command: "archivist consumer show-replay " + id, Said: "It is " + one.State + "."}, err
}
