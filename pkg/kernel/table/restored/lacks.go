package restored

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/schema"
)

// Client is what is used of DynamoDB.
type Client interface {
	dynamodb.ListTablesAPIClient
	dynamodb.DescribeTableAPIClient
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput,
		...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	DescribeContinuousBackups(context.Context, *dynamodb.DescribeContinuousBackupsInput,
		...func(*dynamodb.Options)) (*dynamodb.DescribeContinuousBackupsOutput, error)
}

// Lack is what a table does not have yet that the system needs.
type Lack struct {
	What    string // a word: index, stream, recovery, protection or time-to-live
	Says    string
	Command string // that sets it; "" = no command does
	Err     error  // whether it lacks that is not known
}

// lacks finds what a table lacks, in the order in which it is set. As long as it is not active, nothing can be set:
// nil.
func lacks(ctx context.Context, c Client, d *types.TableDescription) []Lack {
	if d.TableStatus != types.TableStatusActive && d.TableStatus != types.TableStatusUpdating {
		return nil
	}
	name := aws.ToString(d.TableName)
	all := []Lack{timeToLive(ctx, c, name), recovery(ctx, c, name), stream(d), protection(d)}
	for _, ix := range schema.Indexes {
		all = append(all, index(d, ix))
	}
	return slices.DeleteFunc(all, func(l Lack) bool { return l.What == "" })
}

// command is one of AWS's command line about a table.
func command(name, table, rest string) string {
	return "aws dynamodb " + name + " --table-name " + table + " " + rest
}

func timeToLive(ctx context.Context, c Client, name string) Lack {
	l := Lack{What: "time-to-live"}
	out, err := c.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &name})
	if err != nil {
		l.Err = err
		return l
	}
	is := &types.TimeToLiveDescription{}
	if out.TimeToLiveDescription != nil {
		is = out.TimeToLiveDescription
	}
	on := is.TimeToLiveStatus == types.TimeToLiveStatusEnabled ||
		is.TimeToLiveStatus == types.TimeToLiveStatusEnabling
	attribute := aws.ToString(is.AttributeName)
	specification := "--time-to-live-specification "
	switch {
	case on && attribute == schema.TTL:
		return Lack{}
	case on:
		l.Says = fmt.Sprintf("rows are removed by the attribute %s, not by %s; stop that first",
			attribute, schema.TTL)
		l.Command = command("update-time-to-live", name,
			specification+"Enabled=false,AttributeName="+attribute)
	default:
		l.Says = "old rows stay for ever"
		l.Command = command("update-time-to-live", name,
			specification+"Enabled=true,AttributeName="+schema.TTL)
	}
	return l
}

func recovery(ctx context.Context, c Client, name string) Lack {
	l := Lack{What: "recovery", Says: "it cannot be restored to an earlier moment itself",
		Command: command("update-continuous-backups", name,
			"--point-in-time-recovery-specification PointInTimeRecoveryEnabled=true")}
	out, err := c.DescribeContinuousBackups(ctx,
		&dynamodb.DescribeContinuousBackupsInput{TableName: &name})
	if err != nil {
		return Lack{What: l.What, Err: err}
	}
	if is := out.ContinuousBackupsDescription; is != nil {
		at := is.PointInTimeRecoveryDescription
		if at != nil && at.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
			return Lack{}
		}
	}
	return l
}

// streams reports whether a table has a stream of any kind.
func streams(d *types.TableDescription) bool {
	return d.StreamSpecification != nil && aws.ToBool(d.StreamSpecification.StreamEnabled)
}

// streamOf is the ARN of the stream of a table, "" if it has none. One that was stopped still has an ARN.
func streamOf(d *types.TableDescription) string {
	if !streams(d) {
		return ""
	}
	return aws.ToString(d.LatestStreamArn)
}

func stream(d *types.TableDescription) Lack {
	l := Lack{What: "stream"}
	const flag = "--stream-specification "
	both := types.StreamViewTypeNewAndOldImages
	switch {
	case !streams(d):
		l.Says = "no event gets a place in the log"
		l.Command = command("update-table", *d.TableName,
			flag+"StreamEnabled=true,StreamViewType="+string(both))
	case d.StreamSpecification.StreamViewType != both:
		l.Says = fmt.Sprintf("it has only %s of a row, not both images; stop it first",
			d.StreamSpecification.StreamViewType)
		l.Command = command("update-table", *d.TableName, flag+"StreamEnabled=false")
	default:
		return Lack{}
	}
	return l
}

func protection(d *types.TableDescription) Lack {
	if aws.ToBool(d.DeletionProtectionEnabled) {
		return Lack{}
	}
	return Lack{What: "protection", Says: "whoever may delete tables can delete it at once",
		Command: command("update-table", *d.TableName, "--deletion-protection-enabled")}
}

// indexOf is the index of that name, nil if the table has none.
func indexOf(d *types.TableDescription, name string) *types.GlobalSecondaryIndexDescription {
	for i, g := range d.GlobalSecondaryIndexes {
		if aws.ToString(g.IndexName) == name {
			return &d.GlobalSecondaryIndexes[i]
		}
	}
	return nil
}

// index is what is wrong with an index. Keys and what is projected cannot be changed.
func index(d *types.TableDescription, want schema.Index) Lack {
	l := Lack{What: "index " + want.Name}
	has := indexOf(d, want.Name)
	switch {
	case has == nil:
		l.Says, l.Command = "nothing can be listed by it", createIndex(*d.TableName, want)
	case !sameKeys(has.KeySchema, want.PK, want.SK),
		!projects(has.Projection, want.Include):
		l.Says = "it has other keys or attributes than this release needs: restore again, " +
			"with the indexes of the source"
	case has.IndexStatus != types.IndexStatusActive &&
		has.IndexStatus != types.IndexStatusUpdating: // that one can be read
		l.Says = "it is not ready: " + string(has.IndexStatus) + "; wait"
	default:
		return Lack{}
	}
	return l
}

// sameKeys reports whether keys are these.
func sameKeys(keys []types.KeySchemaElement, pk, sk string) bool {
	return len(keys) == 2 && aws.ToString(keys[0].AttributeName) == pk &&
		aws.ToString(keys[1].AttributeName) == sk
}

// projects reports whether an index has these attributes beside its keys.
func projects(p *types.Projection, include []string) bool {
	if p == nil {
		return false
	}
	if p.ProjectionType == types.ProjectionTypeAll {
		return true
	}
	return !slices.ContainsFunc(include, func(a string) bool {
		return !slices.Contains(p.NonKeyAttributes, a)
	})
}

// createIndex is the command that makes an index. DynamoDB makes one at a time, from the rows that are there.
func createIndex(table string, ix schema.Index) string {
	create, err := json.Marshal([]any{map[string]any{"Create": map[string]any{"IndexName": ix.Name,
		"KeySchema": []map[string]string{{"AttributeName": ix.PK, "KeyType": "HASH"},
			{"AttributeName": ix.SK, "KeyType": "RANGE"}},
		"Projection": map[string]any{"ProjectionType": "INCLUDE",
			"NonKeyAttributes": ix.Include}}}})
	if err != nil {
		panic(err) // of texts only
	}
	var attributes []string
	for _, a := range []string{schema.PK, schema.SK, ix.PK, ix.SK} {
		attributes = append(attributes, "AttributeName="+a+",AttributeType=S")
	}
	return command("update-table", table, "--attribute-definitions "+strings.Join(attributes, " ")+
		" --global-secondary-index-updates '"+string(create)+"'")
}
