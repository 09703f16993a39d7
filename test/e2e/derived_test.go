package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/jpeg" // of thumbnails
	"image/png"
	"net/http"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventarchive"
)

// TestDerived: an object of an image is followed by what consumers make of its events: a thumbnail,
// files of the archive of events, whose chain is whole, and a message in somebody's queue.
func TestDerived(t *testing.T) {
	begin(t)
	src := newSource(t)
	received := newQueue(t, pingQueue)
	queued := consumer.Definition{Name: "queued", Filter: "Object+Create{parent=derived}",
		Target: consumer.Target{Queue: queueURL(stack, pingQueue)}}
	apply(t, queued)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 640, 480))); err != nil {
		t.Fatal(err)
	}
	j := preserveFile(t, "derived", src.put("/harbour.png", picture.Bytes()))

	var messages []string
	until(t, "the queue has the event", soon, func() bool { messages = received(); return len(messages) > 0 })
	for _, text := range messages {
		var b consumer.Batch
		if err := json.Unmarshal([]byte(text), &b); err != nil || b.Consumer != queued.Name || len(b.Events) != 1 ||
			b.Events[0].Subject.ID != j.Identifiers.Primary {
			t.Errorf("the queue has %s, %v", text, err)
		}
	}
	thumbnail := fmt.Sprintf("%s/v1/objects/%s/versions/%d/thumbnail?path=producer/harbour.png", out.APIURL,
		strings.TrimPrefix(j.Identifiers.Primary, "ark:/"), j.Version)
	until(t, "the image has a thumbnail", soon, func() bool { return isImage(t, thumbnail) })
	if _, err := client.MakeZip(t.Context(), j.Identifiers.Primary, j.Version); err != nil {
		t.Fatal(err)
	}
	_, _, zip := fetched(t, http.MethodGet, out.APIURL+v1.ZipPath(j.Identifiers.Primary, j.Version))
	if answer, err := http.Get(zip); err != nil || answer.StatusCode != http.StatusOK || answer.Body.Close() != nil {
		t.Errorf("the zip file at %q: %+v, %v", zip, answer, err)
	}

	// The next hour, its consumer archives all events.
	due(t, eventarchive.Name)
	until(t, "the events are in the archive", soon, func() bool {
		v, err := client.VerifyEvents(t.Context(), "")
		if err != nil || len(v.Findings) > 0 {
			t.Fatal(v.Findings, err)
		}
		return v.Events > 0
	})
	events, err := client.LogEvents(t.Context(), v1.EventFilter{Partition: "derived"})
	if err != nil || len(events.Items) < 5 {
		t.Errorf("%d events of the collection, %v", len(events.Items), err)
	}
}

// isImage reports whether a link leads to an image by now.
func isImage(t *testing.T, link string) bool {
	t.Helper()
	_, _, location := fetched(t, http.MethodGet, link)
	if location == "" {
		return false
	}
	answer, err := http.Get(location)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return false
	}
	_, kind, err := image.Decode(answer.Body)
	if answer.StatusCode != http.StatusOK || err != nil {
		t.Fatalf("%s: %s, %q, %v", link, answer.Status, kind, err)
	}
	return true
}
