package inprocess

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/schema"
)

// tables are what DynamoDB says of tables: of the one in use, which has rows, and of those that were restored from it,
// which here have none.
type tables struct {
	mu  sync.Mutex
	all map[string]*described
}

// described is a table, with what has requests of its own.
type described struct {
	is       types.TableDescription
	gone     *types.TimeToLiveDescription
	recovers types.PointInTimeRecoveryStatus
}

// newTables has the table in use, as a deployment makes it.
func newTables() *tables {
	in := schema.CreateTable(tableName)
	own := describe(tableName, time.Unix(0, 0))
	own.is.StreamSpecification = in.StreamSpecification
	own.is.DeletionProtectionEnabled = aws.Bool(true)
	own.is.LatestStreamArn = aws.String(*own.is.TableArn + "/stream/2026")
	own.gone = &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusEnabled,
		AttributeName: aws.String(schema.TTL)}
	own.recovers = types.PointInTimeRecoveryStatusEnabled
	return &tables{all: map[string]*described{tableName: own}}
}

// describe is a table with the keys and indexes of the schema, and nothing else.
func describe(name string, made time.Time) *described {
	in := schema.CreateTable(name)
	never := &types.TimeToLiveDescription{TimeToLiveStatus: types.TimeToLiveStatusDisabled}
	arn := "arn:aws:dynamodb:" + region + ":" + account + ":table/" + name
	d := &described{gone: never, recovers: types.PointInTimeRecoveryStatusDisabled,
		is: types.TableDescription{TableName: &name, TableArn: &arn, KeySchema: in.KeySchema,
			TableStatus: types.TableStatusActive, CreationDateTime: &made,
			DeletionProtectionEnabled: aws.Bool(false)}}
	for _, ix := range in.GlobalSecondaryIndexes {
		d.is.GlobalSecondaryIndexes = append(d.is.GlobalSecondaryIndexes,
			types.GlobalSecondaryIndexDescription{IndexName: ix.IndexName, KeySchema: ix.KeySchema,
				Projection: ix.Projection, IndexStatus: types.IndexStatusActive})
	}
	return d
}

// handle adds what is asked about tables. It replaces what the rows' own twin says of its table.
func (t *tables) handle(o operations) {
	op(o, t.list)
	op(o, t.restore)
	op(o, func(_ context.Context, in *dynamodb.DescribeTableInput) (
		*dynamodb.DescribeTableOutput, error) {
		d, err := t.named(in.TableName)
		return &dynamodb.DescribeTableOutput{Table: &d.is}, err
	})
	op(o, func(_ context.Context, in *dynamodb.DescribeTimeToLiveInput) (
		*dynamodb.DescribeTimeToLiveOutput, error) {
		d, err := t.named(in.TableName)
		return &dynamodb.DescribeTimeToLiveOutput{TimeToLiveDescription: d.gone}, err
	})
	op(o, func(_ context.Context, in *dynamodb.DescribeContinuousBackupsInput) (
		*dynamodb.DescribeContinuousBackupsOutput, error) {
		d, err := t.named(in.TableName)
		return &dynamodb.DescribeContinuousBackupsOutput{
			ContinuousBackupsDescription: &types.ContinuousBackupsDescription{
				PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{
					PointInTimeRecoveryStatus: d.recovers}}}, err
	})
}

// named is a copy of what is known of a table. Its error is DynamoDB's.
func (t *tables) named(name *string) (described, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.all[aws.ToString(name)]
	if d == nil {
		text := "Requested resource not found: Table: " + aws.ToString(name) + " not found"
		return described{}, &types.ResourceNotFoundException{Message: &text}
	}
	return *d, nil
}

// list is ListTables, all on one page.
func (t *tables) list(context.Context, *dynamodb.ListTablesInput) (
	*dynamodb.ListTablesOutput, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &dynamodb.ListTablesOutput{TableNames: slices.Sorted(maps.Keys(t.all))}, nil
}

// restore is RestoreTableToPointInTime. It does not end by itself: Restored ends it.
func (t *tables) restore(_ context.Context, in *dynamodb.RestoreTableToPointInTimeInput) (
	*dynamodb.RestoreTableToPointInTimeOutput, error) {
	source, err := t.named(in.SourceTableName)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name := aws.ToString(in.TargetTableName)
	if t.all[name] != nil {
		return nil, &types.TableAlreadyExistsException{
			Message: aws.String("Table already exists: " + name)}
	}
	now := time.Now()
	moment := now
	if in.RestoreDateTime != nil {
		moment = *in.RestoreDateTime
	}
	d := describe(name, now)
	d.is.TableStatus = types.TableStatusCreating
	d.is.RestoreSummary = &types.RestoreSummary{SourceTableArn: source.is.TableArn,
		RestoreDateTime: &moment, RestoreInProgress: aws.Bool(true)}
	t.all[name] = d
	return &dynamodb.RestoreTableToPointInTimeOutput{TableDescription: &d.is}, nil
}

// Restored ends the restore of a table that was begun by RestoreTableToPointInTime.
func (s *System) Restored(name string) error {
	s.tables.mu.Lock()
	defer s.tables.mu.Unlock()
	d := s.tables.all[name]
	if d == nil || d.is.RestoreSummary == nil {
		return errors.New("inprocess: no table " + name + " is restored")
	}
	d.is.TableStatus = types.TableStatusActive
	summary := *d.is.RestoreSummary
	summary.RestoreInProgress = aws.Bool(false)
	d.is.RestoreSummary = &summary
	return nil
}
