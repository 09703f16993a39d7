package consumer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
)

// maxParkedReason is in bytes. Up to maxSelected rows of parked events are in one transaction: with
// maxStack they stay below table.MaxTxBytes.
const maxParkedReason = 2000

// parkedRow is a parked event, or several of a key that were handled as one. Those of a key are
// next to each other, in the order of the log. Only a run writes these rows, under the lease of the
// cursor. Times are milliseconds since 1970. The key is parkedPK, hash#place. Reason and Stack are
// of the last try.
type parkedRow struct {
	table.Head
	OrderKey string `dynamo:"order_key"`
	Refs     []ref  `dynamo:"refs"`
	Reason   string `dynamo:"why"`
	Stack    string `dynamo:"stack,omitempty"`

	// Behind is the id of the event that failed, if it is another one of the key; "": this one
	// failed.
	Behind  string `dynamo:"behind,omitempty"`
	Tries   int    `dynamo:"tries"`
	Since   int64  `dynamo:"since_ms"`
	Version int    `dynamo:"consumer_version"`

	// Tried is the id of the last order that ran it: an order runs each row once.
	Tried string `dynamo:"order_id,omitempty"`
}

func parkedPK(consumer, partition string) string { return "PARKED#" + consumer + "#" + partition }

// hash is a key in the form in which it is part of a row's key: 128 bits of SHA-256 in hexadecimal,
// 32 characters. Subjects can have long ids, with any characters.
func hash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// hash of the key of a row.
func (row *parkedRow) hash() string {
	h, _, _ := strings.Cut(row.SK, "#")
	return h
}

func (row *parkedRow) has(event string) bool {
	return slices.ContainsFunc(row.Refs, func(f ref) bool { return f.ID == event })
}

// parkedKeys are the keys with parked events, by hash: later events of these keys are parked, too.
type parkedKeys struct {
	// heads has the id of the event to blame for each key, and here the places of the events that
	// are parked in this partition: they come again when a person has put the cursor back, and must
	// not be parked twice.
	heads map[string]string
	here  map[string]map[string]bool

	// before has the keys that are parked in a partition of an earlier generation.
	before map[string]bool
}

func (k *parkedKeys) has(key string, f ref) bool { return k.here[hash(key)][f.place()] }

// put takes over a parked row of a key. The first one that is put is its head, so rows come in the
// order of the log.
func (k *parkedKeys) put(h, head string, refs ...ref) {
	if _, ok := k.heads[h]; !ok {
		k.heads[h] = head
		k.here[h] = map[string]bool{}
	}
	for _, f := range refs {
		k.here[h][f.place()] = true
	}
}

// add takes over what was parked, up to end.
func (k *parkedKeys) add(v verdict, end position) {
	k.put(hash(v.unit.key), cmp.Or(v.behind, v.unit.id()), v.unit.refs(end)...)
}

// ParkedEvent is a parked event, or several of a key that were coalesced. Times are milliseconds
// since 1970. If it is several, what is said of an event is of the newest.
type ParkedEvent struct {
	Partition string       `json:"partition"`
	Key       string       `json:"key"`
	ID        string       `json:"id"`
	Subject   envelope.Ref `json:"subject"`
	Number    int64        `json:"number,omitempty"` // among the events of its subject, or 0
	Type      string       `json:"type"`
	Time      int64        `json:"time"`
	Seq       int64        `json:"seq"`
	Coalesced []string     `json:"coalesced,omitempty"` // the ids of all, if they are several
	Reason    string       `json:"reason"`
	Stack     string       `json:"stack,omitempty"`
	Behind    string       `json:"behind,omitempty"` // it waits for this event of its key
	Tries     int          `json:"tries"`
	Since     int64        `json:"since"`
	Version   int          `json:"consumerVersion"` // of the definition, at the last try
}

// Parked lists a page of the events that a consumer has parked in a partition: those of a key one
// after the other, in the order of the log. cursor is that of the page before, "" at the beginning;
// the one that is returned is "" at the end. A NotFound means that there is no such consumer; of a
// partition without parked events the list is empty.
func (s *Store) Parked(ctx context.Context, name, partition,
	cursor string) ([]ParkedEvent, string, error) {
	if _, err := s.Get(ctx, name); err != nil {
		return nil, "", err
	}

	var rows []parkedRow
	next, err := s.Table.Page(ctx, table.Query{PK: parkedPK(name, partition), Cursor: cursor},
		&rows)
	if err != nil {
		return nil, "", err
	}

	list := make([]ParkedEvent, len(rows))
	for i, row := range rows {
		list[i] = row.event(partition)
	}
	return list, next, nil
}

// event describes a parked row.
func (row *parkedRow) event(partition string) ParkedEvent {
	f := row.Refs[len(row.Refs)-1]
	p := ParkedEvent{
		Partition: partition,
		Key:       row.OrderKey,
		ID:        f.ID,
		Type:      f.Type,
		Time:      f.Time,
		Seq:       f.Seq,
		Subject:   envelope.Ref{Type: f.SubjectType, ID: f.SubjectID},
		Number:    f.Version,
		Reason:    row.Reason,
		Stack:     row.Stack,
		Behind:    row.Behind,
		Tries:     row.Tries,
		Since:     row.Since,
		Version:   row.Version,
	}

	if s := f.Shown; s != nil {
		p.Type, p.Subject, p.Number = s.Type, envelope.Ref{Type: s.SubjectType, ID: s.SubjectID}, 0
	}

	if row.Behind != "" {
		p.Reason = "it waits behind the event " + row.Behind + " of its key"
	}

	if len(row.Refs) > 1 {
		for _, f := range row.Refs {
			p.Coalesced = append(p.Coalesced, f.ID)
		}
	}
	return p
}
