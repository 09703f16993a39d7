package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// rowsOfPage is the number of rows that a page reads: with 13 rows a job, of which one needs
// other reads, it takes a few seconds.
const rowsOfPage = 500

// checkRows checks the next rows of the table.
func checkRows(ctx context.Context, p *page) error {
	rows, next, err := p.Queue.Table.Scan(ctx, "", rowsOfPage, p.cursor.At)
	if err != nil {
		return err
	}
	var before table.Raw
	for i, row := range rows {
		problems, err := p.examine(ctx, row, before)
		if errors.Is(err, errMore) {
			return nil // the next page continues with this row
		}
		if err != nil {
			return fmt.Errorf("%s: %w", row.Key, err)
		}
		before = row
		p.out.Checked++
		p.report(ctx, problems)
		p.cursor = cursor{Phase: phaseRows, At: table.CursorAt(row.Key)}
		if p.enough() && i+1 < len(rows) {
			return nil
		}
	}
	p.cursor = cursor{Phase: phaseRows, At: next}
	return nil
}

// Errors of the check of a row.
var (
	errMore    = errors.New("the check of this row continues in the next page")
	errChanged = errors.New("a row changed during the check")
)

// settleTries is how often a row that changes during its check is checked again.
const settleTries = 3

// examine checks a row. before is the row that the scan read before it. What seems wrong is
// a problem only if the row is the same after the check.
func (p *page) examine(ctx context.Context, row, before table.Raw) ([]problem, error) {
	for range settleTries {
		x := &exam{page: p, Raw: row, before: before}
		err := x.check(ctx)
		changed := errors.Is(err, errChanged)
		if err != nil && !changed || len(x.problems) == 0 && !changed {
			return nil, err
		}
		again, err := p.Queue.Table.Raw(ctx, row.Key)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !changed && written(again) == written(row) {
			return x.problems, nil
		}
		row = again
	}
	return nil, nil
}

// writing tells the writes of a row apart: also those of a row that was removed and made
// again.
type writing struct {
	Rev  int64  `dynamo:"rev"`
	TxID string `dynamo:"wid"`
}

func written(row table.Raw) (w writing) {
	_ = dynamo.UnmarshalItem(row.Item, &w) // zero: rows are compared with themselves
	return w
}

// exam is the check of one row.
type exam struct {
	*page
	table.Raw
	before   table.Raw
	subject  string // of the findings, the key if it is ""
	problems []problem
}

// say adds a problem. Without a repair, command says what a person has to do.
func (x *exam) say(invariant, command string, repair func(ctx context.Context) error, evidence string, args ...any) {
	one := problem{repair: repair}
	one.Invariant, one.Command, one.Evidence = invariant, command, fmt.Sprintf(evidence, args...)
	one.Subject = x.subject
	if one.Subject == "" {
		one.Subject = x.Key.String()
	}
	x.problems = append(x.problems, one)
}

// kind is a kind of rows: the partition's name before "#", and the sort key or how it
// begins.
type kind struct {
	pk, sk  string
	expires bool // DynamoDB may delete the row after some time
	check   func(ctx context.Context, x *exam) error
}

// kinds lists every kind of rows. A row of none of them is a finding.
var kinds = []kind{
	{pk: "JOB", sk: "JOB", check: checkJob},
	{pk: "BATCH", sk: "BATCH", check: checkBatch},
	{pk: "BATCH", sk: "COUNT", check: checkCounts},
	{pk: "COLLECTION", sk: "COLLECTION", check: checkCollection},
	{pk: "OBJECT", sk: "OBJECT", check: checkObject},
	{pk: "OBJECT", sk: "V#", check: checkVersion},
	{pk: "LOCAL", sk: "LOCAL", check: checkLocalID},
	{pk: "ARK", sk: "ARK"},
	{pk: "SLOT", check: checkReservation},
	{pk: "SPACE", check: checkReservation},
	{pk: "LOCK", check: checkReservation},
	{pk: "MAIL", check: checkMail},
	{pk: "KEY", sk: "KEY", expires: true},
	{pk: "LEASE"},
	{pk: "HOLD", check: checkHold},
	{pk: "QUEUE", sk: "QUEUE", check: checkQueue},
	{pk: "OPERATION", sk: "OPERATION", expires: true, check: checkOperation},
	{pk: "OPERATION", expires: true}, // what an operation refused or found
	{pk: "ACT", expires: true, check: checkReceipt},
}

// kindOf returns the kind of a row.
func kindOf(k table.Key) (kind, bool) {
	name, id, parted := strings.Cut(k.PK, "#")
	if strings.HasPrefix(k.SK, event.Prefix) {
		if !parted {
			return kind{}, true // of a collection, by an earlier release: they are moved when it is next changed
		}
		return kind{check: checkEvent}, subjectType(name) != event.Type{} && id != ""
	}
	for _, known := range kinds {
		if name == known.pk && strings.HasPrefix(k.SK, known.sk) {
			return known, true
		}
	}
	return kind{}, false
}

// restoreRow is what a person does about a row that is lost or damaged.
const restoreRow = "restore the row from a backup of the table (docs/restore.md)"

// check checks the row by its kind.
func (x *exam) check(ctx context.Context) error {
	k, known := kindOf(x.Key)
	if !known {
		x.say("row-kind", "find out what wrote it: no part of this release reads it", nil,
			"no part of the system has rows of this kind")
		return nil
	}
	var h table.Head
	if err := x.Decode(&h); err != nil {
		x.say("row-readable", "restore the row from a backup of the table, or deploy the release that wrote it", nil,
			"the row cannot be read: %v", err)
		return nil
	}
	if h.ExpiresAt > 0 && !k.expires {
		x.say("row-expires", "", x.keep(h), "DynamoDB will delete the row, which must stay")
	}
	if k.check == nil {
		return nil
	}
	return k.check(ctx, x)
}

// keep removes the expiry of a row.
func (x *exam) keep(h table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Queue.Table.Change(ctx, x.Key, x.Queue.NewID(), func(u *dynamo.Update) {
			u.Remove("gone").If("rev = ?", h.Rev)
		}, &table.Head{})
	}
}

// decode reads the row into a struct. A row that cannot be read is a problem, and false is
// returned.
func (x *exam) decode(row any) bool {
	err := x.Decode(row)
	if err != nil {
		x.say("row-readable", restoreRow, nil, "the row cannot be read: %v", err)
	}
	return err == nil
}

// placed compares a row's places in the indexes with those that it should have. save saves
// the row as it should be.
func (x *exam) placed(is, should table.Head, live bool, save func(tx *table.Tx)) {
	if is == should {
		return
	}
	var repair func(ctx context.Context) error
	if !live { // the write of a repair would take it from its worker, which corrects it anyway
		repair = func(ctx context.Context) error { return x.commit(ctx, save) }
	}
	x.say("index-place", "", repair, "the row is at %q %q of the index work and at %q %q of the index list; "+
		"its places are %q %q and %q %q", is.WorkPK, is.WorkSK, is.ListPK, is.ListSK, should.WorkPK, should.WorkSK,
		should.ListPK, should.ListSK)
}
