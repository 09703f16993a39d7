package eventlog

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// By says who raises the epoch, and why.
type By = registry.By

// RaiseEpoch says that the table was restored from a backup: a place in the log may now have
// another event than before. Cursors of the epoch before stop. The archive of the new epoch has
// files of its own; those of the epochs before are kept. It returns the new epoch, which an event
// names, too. The same request again returns the epoch that it made. A reason that is missing or
// too long is an Invalid.
func (l *Log) RaiseEpoch(ctx context.Context, by By) (epoch int64, err error) {
	if err := by.Check(); err != nil {
		return 0, err
	}
	by.Reason = strings.TrimSpace(by.Reason)
	err = l.Table.Again(ctx, "the epoch of the log", func() error {
		epoch, err = l.raiseOnce(ctx, by)
		return err
	})
	return epoch, err
}

// raiseOnce makes one try. A Stale means that another was first.
func (l *Log) raiseOnce(ctx context.Context, by By) (int64, error) {
	row, err := l.epoch(ctx)
	if err != nil || by.Request != "" && row.Request == by.Request {
		return row.Epoch, err
	}

	highest, err := l.highestEpoch(ctx, row.Epoch)
	if err != nil {
		return 0, err
	}

	var newest []event.Row // the rows may not have been restored to the same moment
	last := table.Query{PK: logSubject.Key().PK, Prefix: event.Prefix, Desc: true, Limit: 1}
	_, err = l.Table.Page(ctx, last, &newest)
	if err != nil {
		return 0, err
	}

	next := epochRow{
		Head:    row.Head,
		Epoch:   highest + 1,
		Version: row.Version + 1,
		Request: by.Request,
	}

	for _, e := range newest {
		next.Version = max(next.Version, e.Version+1)
	}

	tx := l.Table.Begin(l.NewID())
	tx.InsertOrSave(&next)
	err = event.Append(tx, logSubject, next.Version, event.New{
		Type:      "epoch.raised",
		Time:      l.Now().UnixMilli(),
		Actor:     by.Actor,
		Component: "admin",
		Detail:    Raised{Epoch: next.Epoch, Reason: by.Reason},
	})
	if err != nil {
		return 0, err
	}
	return next.Epoch, tx.Commit(ctx)
}

// Raised is the detail of the event epoch.raised. It is stored for good, so names of fields stay.
type Raised struct {
	Epoch  int64  `json:"epoch"`
	Reason string `json:"reason"`
}

// highestEpoch is the highest that there ever was, at least that of the table: that may have been
// restored to a moment before the epoch was raised last. The folders of the archive tell, since S3
// was not restored.
func (l *Log) highestEpoch(ctx context.Context, highest int64) (int64, error) {
	if l.Bucket == nil {
		return highest, nil
	}

	folders, err := l.Bucket.Folders(ctx, "")
	if err != nil {
		return highest, err
	}

	for _, name := range folders {
		var n int64
		if _, err := fmt.Sscanf(name, "epoch-%d", &n); err == nil {
			highest = max(highest, n)
		}
	}
	return highest, nil
}
