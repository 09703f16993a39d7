package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/guregu/dynamo/v2"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/research"
	"archivist/pkg/views/statistics"
)

// rowsOfPage is the number of rows that a page reads. At most this much is read again if the
// page has to be repeated.
const rowsOfPage = 500

// checkRows checks the next rows of the table.
//
// The scan returns the rows of a partition together and in the order of their sort keys. So
// the row before a row is often the one that its check needs: the event before an event, the
// version before a version. What is needed besides is read for all rows of the page at once
// (pair), or row by row.
//
// The cursor moves behind each row that was reported. So a page that ends early, by its time
// or its findings, loses nothing and repeats nothing.
func checkRows(ctx context.Context, p *page) error {
	err := p.beginCounts(ctx) // before the rows are read
	if err != nil {
		return err
	}

	rows, next, err := p.Queue.Table.Scan(ctx, "", rowsOfPage, p.cursor.At)
	if err != nil {
		return err
	}

	if err := errors.Join(p.pair(ctx, rows), p.readIndex(ctx, rows)); err != nil {
		return err
	}

	for i := 0; i < len(rows); {
		part, err := p.examineAll(ctx, rows, i)
		if err != nil {
			return err
		}

		for _, r := range part {
			// What was examined behind this row is examined again by the next page, which
			// begins with it.
			if r.unfinished != nil {
				p.cursor.Recount = r.unfinished
				return nil // the next page continues with this row
			}

			if err := p.report(ctx, r.problems); err != nil {
				return err
			}

			p.out.Checked++
			research.AddTo(p.cursor.Research, rows[i])
			statistics.AddTo(p.cursor.Statistics, rows[i])
			p.cursor.At, p.cursor.Recount = table.CursorAt(rows[i].Key), nil
			i++
			if p.enough() && i < len(rows) {
				return nil
			}
		}
	}

	// The cursor stays at the last row: the next page reads nothing behind it, and has all
	// its time and all its findings for the comparison of the projects.
	if next == "" && len(rows) > 0 && p.enough() {
		return nil // the next page has no rows
	}

	p.cursor.At, p.cursor.Recount = next, nil
	if next == "" {
		return errors.Join(p.compareResearch(ctx), p.compareStatistics(ctx))
	}
	return nil
}

// examined is the result of the check of a row. If unfinished is set, the next page continues
// it from there. A row that was removed or that did not come to rest has neither problems nor
// unfinished work.
type examined struct {
	problems   []problem
	unfinished *recount
}

// examineAll checks some rows at once, the first of them at i. The results are in the order
// of the rows. An outage of one ends the page; a row that cannot be checked for another
// reason gives a finding, and the others are checked.
func (p *page) examineAll(ctx context.Context, rows []table.Raw, i int) ([]examined, error) {
	part := make([]examined, min(atOnce, len(rows)-i))
	side, inTime := errgroup.WithContext(ctx)
	for n := range part {
		side.Go(func() (err error) {
			row, before := rows[i+n], table.Raw{}
			var from *recount
			// A recount that an earlier page has begun belongs to the first row of this one:
			// the cursor is right before it. That row has no row before it; its check reads
			// what it needs.
			if i+n > 0 {
				before = rows[i+n-1]
			} else {
				from = p.cursor.Recount
			}

			part[n], err = p.examine(inTime, row, before, from)
			if err != nil && !outage(inTime, err) {
				part[n], err = examined{problems: unchecked(row.Key.String(), err)}, nil
			}
			return err
		})
	}
	return part, side.Wait()
}

// outage reports whether an error is one of the table or of S3, not of what they contain.
//
// An outage ends the page with its error, and the operation tries it again. All else would
// fail again for ever, and one row would end each run: it is reported, and the run goes on.
// Access that is denied stays so, however often it is tried; a row of a newer release, too,
// although its error is an Unavailable.
func outage(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	var api smithy.APIError
	denied := errors.As(err, &api) && api.ErrorCode() == "AccessDenied"
	return ctx.Err() != nil || errors.As(err, &s3) && !denied ||
		fault.Is(err, fault.Unavailable) && !errors.Is(err, table.ErrNewer)
}

// unchecked is the problem of something that cannot be checked because what belongs to it
// cannot be read.
func unchecked(subject string, err error) []problem {
	return []problem{{Finding: queue.Finding{
		Invariant: "unreadable",
		Subject:   subject,
		Command:   restoreRow,
		Evidence:  "it could not be checked: " + err.Error(),
	}}}
}

// errChanged means that what belongs to a row changed during its check.
var errChanged = errors.New("a row changed during the check")

// settleTries is how often a row that changes during its check is checked again. A job that
// runs writes its row a few times in a stage; one that is written during all three is left out.
const settleTries = 3

// examine checks a row. before is the row that the scan read before it, from a recount that
// an earlier page has begun. What seems wrong is a problem only if the row is the same after
// the check.
//
// A rule between rows is read with several requests, and there is no snapshot of a table. So
// a suspicion is confirmed by reading the row again at the end: every change of what belongs
// to it writes it too, in the same transaction. If it was written, all is read anew, up to
// settleTries times. A row without problems is not read again.
func (p *page) examine(ctx context.Context, row, before table.Raw,
	from *recount) (out examined, err error) {
	for range settleTries {
		x := &rowCheck{page: p, Raw: row, before: before, recount: from}
		err := x.check(ctx)
		changed := errors.Is(err, errChanged)
		if err != nil && !changed || len(x.problems) == 0 && !changed {
			return examined{unfinished: x.unfinished}, err
		}

		again, err := p.Queue.Table.Raw(ctx, row.Key)
		if fault.Is(err, fault.NotFound) {
			return examined{}, nil
		}

		if err != nil {
			return examined{}, err
		}

		if !changed && written(again) == written(row) {
			return examined{problems: x.problems}, nil
		}

		// before is kept: it is only a shortcut, and a check that does not find in it what it
		// looks for reads that itself.
		row, from = again, x.recount
	}
	return examined{}, nil
}

// writing tells the writes of a row apart: also those of a row that was removed and made
// again. The place of an event leaves its row's revision. Amend, by which the relay gives an
// event its place, leaves rev and id as they are.
type writing struct {
	Rev   int64  `dynamo:"rev"`
	TxID  string `dynamo:"wid"`
	Place int64  `dynamo:"log_seq"`
}

func written(row table.Raw) (w writing) {
	_ = dynamo.UnmarshalItem(row.Item, &w) // zero: rows are compared with themselves
	return w
}

// rowCheck is the check of one row. It is used by one goroutine, and thrown away after each
// try.
type rowCheck struct {
	*page
	table.Raw
	// before is the row that the scan returned before this one, or empty. It may be of
	// another partition, and may be older than the row; it saves a read if it is the one that
	// is needed.
	before   table.Raw
	subject  string // of the findings, the key if it is ""
	problems []problem

	recount, unfinished *recount // of a batch's jobs: begun, and to be continued by the next page
}

// add adds a problem. Without a repair, command says what a person has to do.
func (x *rowCheck) add(invariant, command string, repair func(context.Context) error,
	evidence string, args ...any) {
	one := problem{repair: repair}
	one.Invariant, one.Command, one.Evidence = invariant, command, fmt.Sprintf(evidence, args...)
	one.Subject = x.subject
	if one.Subject == "" {
		one.Subject = x.Key.String()
	}
	x.problems = append(x.problems, one)
}

// kind is a kind of rows: the partition's name before "#", and the sort key or how it begins.
// The first kind of the lists that fits counts, so a longer sort key stands above a shorter
// one.
type kind struct {
	pk, sk string
	// expires allows a TTL. Without it, a row that DynamoDB will delete is a finding: what it
	// says would be lost without a trace.
	expires bool // DynamoDB may delete the row after some time
	check   func(ctx context.Context, x *rowCheck) error
}

// kinds lists every kind of rows. A row of none of them is a finding. Those of the other
// wings are in lists of their own, in the files of their checks. A kind without a check has
// no rule to others; that it can be read, and does not expire, is checked of every row.
var kinds = []kind{
	{pk: "JOB", sk: "JOB", check: checkJob},
	{pk: "BATCH", sk: "BATCH", check: checkBatch},
	{pk: "BATCH", sk: "COUNT", check: checkCounts},
	{pk: "COLLECTION", sk: "COLLECTION", check: checkCollection},
	{pk: "COLLECTIONS"}, // a name that is lost is written again with the next submission
	{pk: "OBJECT", sk: "OBJECT", check: checkObject},
	{pk: "OBJECT", sk: "V#", check: checkVersion},
	{pk: "OBJECT", sk: "BROWSE"},
	{pk: "LOCAL", sk: "LOCAL", check: checkLocalID},
	{pk: "ARK", sk: "ARK", check: checkReserved},
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

// kindOf returns the kind of a row. Events are of any partition whose name is a type of
// subjects; they are told by their sort key.
func kindOf(k table.Key) (kind, bool) {
	name, id, parted := strings.Cut(k.PK, "#")
	if strings.HasPrefix(k.SK, event.Prefix) {
		if !parted {
			// It is of a collection, by an earlier release: such events are moved when it is
			// next changed.
			return kind{}, true
		}
		of := subjectType(name)
		return kind{check: checkEvent, expires: expires(of)}, of != event.Type{} && id != ""
	}

	for _, list := range [][]kind{logKinds, componentKinds, researchKinds, revisionKinds, kinds} {
		for _, known := range list {
			if name == known.pk && strings.HasPrefix(k.SK, known.sk) {
				return known, true
			}
		}
	}
	return kind{}, false
}

// restoreRow is what a person does about a row that is lost or damaged.
const restoreRow = "restore the row from a backup of the table (docs/restore.md)"

// check checks the row by its kind. It returns errors of reads only; what is wrong is added
// to the problems.
func (x *rowCheck) check(ctx context.Context) error {
	k, known := kindOf(x.Key)
	if !known {
		x.add("row-kind", "find out what wrote it: no part of this release reads it", nil,
			"no part of the system has rows of this kind")
		return nil
	}

	var h table.Head
	if !x.decode(&h) {
		return nil
	}

	if h.ExpiresAt > 0 && !k.expires {
		x.add("row-expires", "", x.keep(h), "DynamoDB will delete the row, which must stay")
	}

	if k.check == nil {
		return nil
	}
	return k.check(ctx, x)
}

// keep removes the expiry of a row. The condition on rev refuses the repair if the row was
// written since: its writer decides then whether it expires.
func (x *rowCheck) keep(h table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Queue.Table.Change(ctx, x.Key, x.Queue.NewID(), func(u *dynamo.Update) {
			u.Remove("gone").If("rev = ?", h.Rev)
		}, &table.Head{})
	}
}

// decode reads the row into a struct. A row that cannot be read is a problem, and false is
// returned.
func (x *rowCheck) decode(row any) bool {
	err := x.Decode(row)
	if err != nil {
		x.problems = append(x.problems, unchecked(x.Key.String(), err)...)
	}
	return err == nil
}

// placed compares a row's places in the indexes with those that it should have. save saves
// the row as it should be. live means that a worker has the lease of the row. is and should
// are heads of the same row, so they differ in places only: Place derives them from the
// item's state, and each write calls it.
func (x *rowCheck) placed(is, should table.Head, live bool, save func(tx *table.Tx)) {
	if is == should {
		return
	}

	var repair func(ctx context.Context) error
	if !live { // the write of a repair would take it from its worker, which corrects it anyway
		repair = func(ctx context.Context) error { return x.commit(ctx, save) }
	}

	x.add("index-place", "", repair,
		"the row is at %q %q of the index work and at %q %q of the index list; "+
			"its places are %q %q and %q %q", is.WorkPK, is.WorkSK, is.ListPK, is.ListSK,
		should.WorkPK,
		should.WorkSK,
		should.ListPK, should.ListSK)
}
