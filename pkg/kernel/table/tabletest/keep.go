package tabletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"archivist/pkg/kernel/journal"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
)

// line is a write of one or more rows, as the journal has it. Rows are in DynamoDB's JSON.
type line struct {
	Put    []json.RawMessage `json:"put,omitempty"`
	Delete []table.Key       `json:"delete,omitempty"`
}

// Keep reads the rows that the journal at path has into an empty table. From now on each
// write is in that journal before it is in the table: a transaction as a whole, or not at
// all. It is for trying, not for data of any value. The journal is rewritten first with one
// line for each row, so that it does not grow with each start.
func (f *Fake) Keep(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	j, err := journal.Open(path, f.replay)
	if err != nil {
		return err
	}

	err = j.Compact(func(yield func([]byte, error) bool) {
		for _, pk := range slices.Sorted(maps.Keys(f.rows)) {
			for _, e := range *f.rows[pk] {
				if !yield(record([]plan{{new: e.row.item()}})) {
					return
				}
			}
		}
	})
	if err != nil {
		return err
	}

	f.journal = j
	return nil
}

// Close closes the journal, if there is one: further writes fail.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.journal == nil {
		return nil
	}
	return f.journal.Close()
}

// replay makes a write again. The indexes get it too, by the log of writes.
func (f *Fake) replay(text []byte) error {
	var e line
	err := json.Unmarshal(text, &e)
	if err != nil {
		return err
	}

	for _, row := range e.Put {
		it, err := attributevalue.UnmarshalMapJSON(row)
		if err != nil {
			return err
		}
		k, err := keyOf(it)
		if err != nil {
			return err
		}
		f.write(k, Change{f.get(k), it})
	}

	for _, k := range e.Delete {
		f.write(k, Change{Before: f.get(k)})
	}
	return nil
}

// record is a write as a line of the journal. Checks are left out. One line for a whole
// transaction is what makes it survive as a whole.
func record(plans []plan) ([]byte, error) {
	var e line
	for _, p := range plans {
		if p.checkOnly {
			continue
		}

		if p.new == nil {
			e.Delete = append(e.Delete, p.key)
			continue
		}

		row, err := attributevalue.MarshalMapJSON(p.new)
		if err != nil {
			return nil, fmt.Errorf("the row %s %s: %w", str(p.new, schema.PK),
				str(p.new, schema.SK), err)
		}

		e.Put = append(e.Put, row)
	}
	return json.Marshal(e)
}

// commit makes writes that have been prepared. The caller holds the lock, and has checked all
// conditions. If the journal refuses the line, nothing is written.
func (f *Fake) commit(plans []plan) error {
	if f.journal != nil {
		text, err := record(plans)
		if err != nil {
			return err
		}
		if err := f.journal.Append(text); err != nil {
			return err
		}
	}

	var cs []Change
	for _, p := range plans {
		if !p.checkOnly {
			cs = append(cs, Change{p.old, p.new})
			f.write(p.key, cs[len(cs)-1])
		}
	}

	f.committed(cs)
	return nil
}
