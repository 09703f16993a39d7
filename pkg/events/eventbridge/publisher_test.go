package eventbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"archivist/pkg/aws/awstest"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// bus is an EventBridge that keeps what it accepts, within the limits of the real one.
type bus struct {
	t        *testing.T
	accepted []string // ids of events
	requests []int    // entries of each
	refuse   map[string]string
	broken   int // the request with this number, from 1, has no answer
}

func (b *bus) PutEvents(_ context.Context, in *eventbridge.PutEventsInput, _ ...func(*eventbridge.Options)) (
	*eventbridge.PutEventsOutput, error) {
	b.requests = append(b.requests, len(in.Entries))
	if len(b.requests) == b.broken {
		return nil, errors.New("connection reset")
	}
	size, out := 0, &eventbridge.PutEventsOutput{}
	for _, e := range in.Entries {
		size += 14 + len(*e.Source) + len(*e.DetailType) + len(*e.Detail)
		var detail envelope.Event
		if err := json.Unmarshal([]byte(*e.Detail), &detail); err != nil {
			b.t.Error(err)
		}
		if *e.Source != filter.Source || *e.DetailType != detail.Type || *e.EventBusName != "archivist" ||
			e.Time.UnixMilli() != detail.Time {
			b.t.Errorf("entry %+v of %+v", e, detail)
		}
		if reason, refused := b.refuse[detail.ID]; refused {
			out.FailedEntryCount++
			out.Entries = append(out.Entries, types.PutEventsResultEntry{ErrorCode: &reason})
			continue
		}
		b.accepted = append(b.accepted, detail.ID)
		out.Entries = append(out.Entries, types.PutEventsResultEntry{EventId: aws.String("x")})
	}
	if len(in.Entries) == 0 || len(in.Entries) > 10 || size > 256*1024 {
		b.t.Errorf("a request of %d entries and %d bytes", len(in.Entries), size)
	}
	return out, nil
}

// batch is n public events of jobs, e1, e2, …, each with a detail of that many bytes.
func batch(n, detail int) consumer.Batch {
	b := consumer.Batch{Consumer: Name}
	for i := range n {
		b.Events = append(b.Events, consumer.Item{Event: envelope.Event{ID: fmt.Sprintf("e%d", i+1), Type: "job.state",
			Subject: envelope.Ref{Type: "Job", ID: "j"}, Version: int64(i + 1), Time: int64(1000 + i),
			Detail: json.RawMessage(`"` + strings.Repeat("x", detail) + `"`)}})
	}
	return b
}

func ids(failures []consumer.Failure) (all []string) {
	for _, f := range failures {
		all = append(all, f.ID)
	}
	return all
}

// TestRequests: at most ten events and 256 KiB are in a request, and all are published in
// their order.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		events, detail int
		requests       []int
	}{
		{0, 0, nil}, {1, 0, []int{1}}, {10, 10, []int{10}}, {11, 10, []int{10, 1}}, {35, 10, []int{10, 10, 10, 5}},
		{5, 60_000, []int{4, 1}}, {3, 200_000, []int{1, 1, 1}},
	} {
		b := &bus{t: t}
		in := batch(c.events, c.detail)
		failures, err := Publisher{b, "archivist"}.Handle(t.Context(), in)
		if err != nil || len(failures) > 0 || !slices.Equal(b.requests, c.requests) {
			t.Errorf("%d events of %d bytes: requests %v, %v, %v", c.events, c.detail, b.requests, failures, err)
		}
		for i, e := range in.Events {
			if len(b.accepted) != c.events || b.accepted[i] != e.ID {
				t.Fatalf("published %v", b.accepted)
			}
		}
	}
}

// TestTooLarge: an event that no request can hold is published without its payload; one
// whose facts are too large fails alone, and says why.
func TestTooLarge(t *testing.T) {
	b := &bus{t: t}
	in := batch(3, 300_000)
	in.Events[1].Identifiers = []string{strings.Repeat("y", 300_000)}
	failures, err := Publisher{b, "archivist"}.Handle(t.Context(), in)
	if err != nil || !slices.Equal(b.accepted, []string{"e1", "e3"}) || !slices.Equal(b.requests, []int{2}) {
		t.Errorf("published %v by %v, %v", b.accepted, b.requests, err)
	}
	if !slices.Equal(ids(failures), []string{"e2"}) || !strings.Contains(failures[0].Reason, "262144 bytes") {
		t.Errorf("failures %v", failures)
	}
}

// TestPartialFailure: only events that were refused fail, each with EventBridge's reason.
func TestPartialFailure(t *testing.T) {
	b := &bus{t: t, refuse: map[string]string{"e3": "ThrottlingException", "e14": "InternalFailure"}}
	failures, err := Publisher{b, "archivist"}.Handle(t.Context(), batch(15, 10))
	if err != nil || !slices.Equal(ids(failures), []string{"e3", "e14"}) || len(b.accepted) != 13 ||
		!strings.Contains(failures[0].Reason, "ThrottlingException") {
		t.Errorf("%v, %v; published %v", failures, err, b.accepted)
	}
}

// TestNoAnswer: if a request fails, its events and those after it fail, and those that were
// published before do not.
func TestNoAnswer(t *testing.T) {
	b := &bus{t: t, broken: 2, refuse: map[string]string{"e2": "InternalFailure"}}
	failures, err := Publisher{b, "archivist"}.Handle(t.Context(), batch(25, 10))
	var want []string
	for i := 11; i <= 25; i++ {
		want = append(want, fmt.Sprintf("e%d", i))
	}
	if err != nil || !slices.Equal(ids(failures), append([]string{"e2"}, want...)) || len(b.requests) != 2 {
		t.Errorf("%v, %v; requests %v", failures, err, b.requests)
	}
}

// TestPublicOnly: events that are not public, or of a type that this release does not know,
// are not published, and do not fail.
func TestPublicOnly(t *testing.T) {
	b := &bus{t: t}
	in := batch(4, 1)
	in.Events[1].Type, in.Events[2].Type = "batch.mail", "job.unheard"
	failures, err := Publisher{b, "archivist"}.Handle(t.Context(), in)
	if err != nil || failures != nil || !slices.Equal(b.accepted, []string{"e1", "e4"}) {
		t.Errorf("published %v, %v, %v", b.accepted, failures, err)
	}
}

// TestNoReplay: nothing of a replay is published.
func TestNoReplay(t *testing.T) {
	b := &bus{t: t}
	in := batch(1, 1)
	in.Replay = true
	_, err := Publisher{b, "archivist"}.Handle(t.Context(), in)
	if !fault.Is(err, fault.Invalid) || b.requests != nil {
		t.Errorf("%v, requests %v", err, b.requests)
	}
	if !Definition.IgnoreReplays {
		t.Error("the definition allows replays")
	}
}

// TestDefinition: the definition's filter is one, and selects every event but those of files.
func TestDefinition(t *testing.T) {
	f, err := filter.Compile(Definition.Filter)
	if err != nil || f.SelectsFiles(envelope.Event{Type: "version.create"}) || !f.Match(envelope.Event{}) {
		t.Errorf("%s, %v", f, err)
	}
}

// TestWire: what AWS's client sends and reads.
func TestWire(t *testing.T) {
	cfg, asked := awstest.Endpoint(t, http.StatusOK,
		`{"FailedEntryCount":1,"Entries":[{"EventId":"1"},{"ErrorCode":"InternalFailure","ErrorMessage":"later"}]}`)
	failures, err := Publisher{eventbridge.NewFromConfig(cfg), "archivist"}.Handle(t.Context(), batch(2, 1))
	want := []consumer.Failure{{ID: "e2", Reason: "eventbridge: InternalFailure: later"}}
	if err != nil || !reflect.DeepEqual(failures, want) {
		t.Errorf("%v, %v", failures, err)
	}
	if len(*asked) != 1 || !strings.Contains((*asked)[0], `"EventBusName":"archivist"`) ||
		!strings.Contains((*asked)[0], `\"subject\":{\"type\":\"Job\",\"id\":\"j\"}`) {
		t.Errorf("requests %q", *asked)
	}
	cfg, _ = awstest.Endpoint(t, http.StatusBadRequest, `{"__type":"AccessDeniedException"}`)
	failures, err = Publisher{eventbridge.NewFromConfig(cfg), "archivist"}.Handle(t.Context(), batch(2, 1))
	if err != nil || len(failures) != 2 || !strings.Contains(failures[1].Reason, "AccessDenied") {
		t.Errorf("%v, %v", failures, err)
	}
}
