package doctor

import (
	"context"
	"encoding/json"
	"time"

	"archivist/pkg/kernel/table"
)

// trimGrace is how long one removal of old places may take: a consumer that became required
// during it has held nothing back. The same holds for an event that a consumer has parked
// during it.
const trimGrace = time.Hour

// consumerInfo is what is checked about a consumer.
type consumerInfo struct {
	exists   bool
	deleted  bool // it was, by a person
	runs     bool
	required int64 // since when at least, in milliseconds since 1970; 0: it is not
}

// consumers reads all consumers, once for a page: there are at most consumer.MaxConsumers.
// The rows of a part are examined at once, so the first that needs them reads, and the others
// wait.
func (p *page) consumers(ctx context.Context) (map[string]consumerInfo, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	if p.consumer != nil {
		return p.consumer, nil
	}

	all := map[string]consumerInfo{}
	query := table.Query{PK: "CONSUMERS"}
	for {
		var rows []struct {
			table.Head
			Text    string `dynamo:"definition_json"`
			State   string `dynamo:"consumer_state"`
			Changed int64  `dynamo:"changed_ms"`
		}

		next, err := p.Queue.Table.Page(ctx, query, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			var definition struct{ Paused, Required bool }
			_ = json.Unmarshal([]byte(r.Text), &definition) // one that cannot be read is not paused
			deleted, runs := r.State == "deleted", r.State == "active" && !definition.Paused
			info := consumerInfo{exists: !deleted, deleted: deleted, runs: runs}
			if r.State == "active" && definition.Required {
				info.required = r.Changed
			}
			all[r.SK] = info
		}

		if next == "" {
			p.consumer = all
			return all, nil
		}

		query.Cursor = next
	}
}

// checkTrimmed checks that the places that were removed are in the archive, and that each
// required consumer had passed them. Files of the archive sort by the first place in them, so a
// descending query begins with the newest. A consumer that a person has put back reads from the
// archive on purpose.
func (x *rowCheck) checkTrimmed(ctx context.Context, partition string, head logHead) error {
	var files []struct {
		table.Head
		Last int64 `dynamo:"last_seq"`
	}

	query := table.Query{PK: "LOG#" + partition, Prefix: "FILE#", Desc: true, Limit: 1}
	if _, err := x.Queue.Table.Page(ctx, query, &files); err != nil {
		return err
	}

	if len(files) == 0 || files[0].Last < head.Trimmed {
		x.add("log-archive", restoreLog, nil,
			"places were removed up to %d, which the archive does not have",
			head.Trimmed)
	}

	all, err := x.consumers(ctx)
	if err != nil {
		return err
	}

	for name, info := range all {
		if !info.held(head, 0) {
			continue
		}

		var cur consumerCursor
		if _, err := x.read(ctx, cursorKey(name, partition), &cur); err != nil {
			return err
		}

		if cur.Seq < head.Trimmed && cur.Reset == "" {
			x.add("log-expired", "archivist consumer show "+name, nil,
				"places were removed up to %d, and the "+
					"required consumer %s is at %d: it reads them from the archive", head.Trimmed,
				name, cur.Seq)
		}
	}
	return nil
}

// held reports whether a consumer should have held back what a partition has removed, if it
// has kept it since a time, in milliseconds since 1970. since is 0 for the consumer as a
// whole.
func (c consumerInfo) held(head logHead, since int64) bool {
	return c.required > 0 && max(c.required, since)+trimGrace.Milliseconds() < head.TrimmedAt
}
