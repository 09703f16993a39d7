package eventlog

import (
	"context"
	"fmt"

	"archivist/pkg/table"
)

// RaiseEpoch says that the table was restored from a backup: a place in the log may now have
// another event than before. Cursors of the epoch before stop. The archive of the new epoch has
// files of its own; those of the epochs before are kept. It returns the new epoch.
func (l *Log) RaiseEpoch(ctx context.Context) (int64, error) {
	row, err := l.epoch(ctx)
	if err != nil {
		return 0, err
	}
	highest := row.Epoch
	if l.Bucket != nil { // the table may have been restored to a moment before the epoch was raised last
		folders, err := l.Bucket.Folders(ctx, "")
		if err != nil {
			return 0, err
		}
		for _, name := range folders {
			var n int64
			if _, err := fmt.Sscanf(name, "epoch-%d", &n); err == nil {
				highest = max(highest, n)
			}
		}
	}
	next := epochRow{Head: row.Head, Epoch: highest + 1}
	tx := l.Table.Begin(l.NewID())
	if next.Rev == 0 {
		tx.Insert(&next)
	} else {
		tx.Save(&next)
	}
	return next.Epoch, tx.Commit(ctx)
}

// epochRow is the row of the epoch.
type epochRow struct {
	table.Head
	Epoch int64 `dynamo:"epoch_no"`
}
