package bench

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

var events = flag.Int("events", 2000, "events that TestPlacement places: ten of each subject")

// perBatch is the number of stream records that the relay gets at once.
const perBatch = 100

// relays is the number of relays that place at once: Lambda reads the shards of a stream in parallel.
const relays = 4

// TestPlacement places events of one busy collection, in one partition and split in 8, and counts
// the calls; on DynamoDB Local it measures events per second. Then the log is archived, trimmed, read in
// order, and verified, and one changed byte is found.
func TestPlacement(t *testing.T) {
	for _, parts := range []int{1, 8} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) { placement(t, parts) })
	}
}

func placement(t *testing.T, parts int) {
	now := atomic.Int64{}
	now.Store(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixMilli())
	var ids, calls atomic.Int64
	rows := tabletest.Open(t)
	counted := &tabletest.Client{DynamoDBAPI: rows.DB.Client(), Do: func(_ string, call func() error) error {
		calls.Add(1)
		return call()
	}}
	twin, buckets := buckettest.Open(t, "events")
	l := &eventlog.Log{Table: tabletest.Table(counted), Bucket: &buckets[0],
		Now:   func() time.Time { return time.UnixMilli(now.Load()) },
		NewID: func() string { return fmt.Sprintf("tx-%09d", ids.Add(1)) }}
	l.Table.Rows = l.Table.DB.Table(rows.Rows.Name())
	if parts > 1 {
		if err := l.Split(t.Context(), "maps", parts); err != nil {
			t.Fatal(err)
		}
	}
	calls.Store(0)
	took := placeAll(t, l, rows)
	where := "in the process"
	if os.Getenv(tabletest.EndpointVariable) != "" {
		where = fmt.Sprintf("on DynamoDB Local: %.0f events/s", float64(*events)/took.Seconds())
	}
	each := float64(calls.Load()) / float64(*events)
	t.Logf("%d parts: %d events placed with %.3f calls each, %d relays, batches of %d; %s", parts, *events, each,
		relays, perBatch, where)
	if each > 1.2 && where == "in the process" {
		t.Errorf("an event takes %.3f calls", each)
	}

	now.Add((15 * 24 * time.Hour).Milliseconds())
	keepAll(t, l, twin)
	forge(t, l, twin)
}

// placeAll makes events happen and places them. It returns the time that placing took.
func placeAll(t *testing.T, l *eventlog.Log, rows *table.Table) (took time.Duration) {
	t.Helper()
	subjects := *events / 10
	for version := int64(1); version <= 10; version++ {
		batches := make(chan []event.Subject, subjects/perBatch+1)
		for from := 0; from < subjects; from += perBatch {
			batch := happen(t, rows, from, min(from+perBatch, subjects), version, l.Now().UnixMilli())
			batches <- batch
		}
		close(batches)
		began := time.Now()
		g, ctx := errgroup.WithContext(t.Context())
		for range relays {
			g.Go(func() error {
				for b := range batches {
					if _, err := l.Place(ctx, b); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		took += time.Since(began)
	}
	return took
}

// happen writes the next event of some subjects.
func happen(t *testing.T, rows *table.Table, from, to int, version, now int64) (batch []event.Subject) {
	t.Helper()
	tx := rows.Begin(fmt.Sprintf("happen-%d-%d", from, version))
	for n := from; n < to; n++ {
		s := event.Subject{Type: event.Job, ID: fmt.Sprintf("B-%06d", n)}
		batch = append(batch, s)
		err := event.Append(tx, s, version, event.New{Type: "job.state", Time: now, Component: "bench",
			Detail:  map[string]string{"from": "Downloading", "to": "Processing"},
			Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}}, Identifiers: []string{s.ID}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return batch
}

// keepAll archives the log, removes its references, and reads all of it in order.
func keepAll(t *testing.T, l *eventlog.Log, twin *buckettest.Twin) {
	t.Helper()
	ctx, until := t.Context(), l.Now().Add(time.Hour)
	began := time.Now()
	partitions, err := l.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range partitions {
		if err := l.ArchiveTo(ctx, p.Name, p.Head); err != nil {
			t.Fatal(err)
		}
	}
	files := len(twin.Names("events"))
	t.Logf("archived in %d files in %.1f s", files, time.Since(began).Seconds())
	readAll(t, l, "table")
	done, err := l.Expire(ctx, eventlog.DefaultRetention,
		func(context.Context, []envelope.Partition) (map[string]int64, bool, error) { return nil, false, nil }, until)
	if err != nil || done.References != *events || len(done.Blocked) > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	readAll(t, l, "archive")
}

// readAll reads the whole log in order.
func readAll(t *testing.T, l *eventlog.Log, from string) {
	t.Helper()
	partitions, err := l.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n, next := 0, map[string]int64{}
	for _, p := range partitions {
		for after := int64(0); after < p.Head; {
			page, err := l.Read(t.Context(), p.Name, after, 1000)
			if err != nil || len(page) == 0 {
				t.Fatal(p.Name, after, err)
			}
			for _, e := range page {
				n, after = n+1, after+1
				next[e.Subject.ID]++
				if e.Seq != after || e.Version != next[e.Subject.ID] {
					t.Fatalf("%s %d is version %d of %s", p.Name, e.Seq, e.Version, e.Subject.ID)
				}
			}
		}
	}
	if n != *events {
		t.Fatalf("%d events of %d are in the log", n, *events)
	}
	t.Logf("read from the %s in order in %.1f s", from, time.Since(began).Seconds())
}

// forge checks the archive, changes one byte, and checks again.
func forge(t *testing.T, l *eventlog.Log, twin *buckettest.Twin) {
	t.Helper()
	v, err := l.Verify(t.Context(), "", l.Now().Add(time.Hour))
	if err != nil || len(v.Findings) > 0 || v.Events != int64(*events) {
		t.Fatalf("%+v, %v", v, err)
	}
	key := twin.Names("events/")[0]
	key = key[len("events/"):]
	data, _, err := l.Bucket.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	at := len(data) / 2
	data[at] ^= 1
	if err := l.Bucket.Put(t.Context(), key, data, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprintf("line %d", 1+bytes.Count(data[:at], []byte("\n")))
	v, err = l.Verify(t.Context(), "", l.Now().Add(time.Hour))
	if err != nil || len(v.Findings) != 1 || v.Findings[0].File != key || v.Findings[0].Problem[:len(line)] != line {
		t.Fatalf("the changed byte at %d, in %s of %s: %+v, %v", at, line, key, v, err)
	}
	t.Logf("one changed byte was found: %s: %s", key, v.Findings[0].Problem)
}
