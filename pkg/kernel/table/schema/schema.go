// Package schema is the schema of the one table as data: infrastructure and
// tests create the table from it.
//
// What is here cannot be changed in place on AWS: another key or projection of an index is
// another index, which CloudFormation adds and removes one at a time.
package schema

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Names of the key attributes, and of the attribute by which DynamoDB deletes old rows.
const (
	PK = "pk"
	SK = "sk"
	// TTL is in seconds since 1970, as DynamoDB wants it; all other times of rows are
	// milliseconds.
	TTL = "gone"
)

// Index is a sparse global index over string keys. A row without both of its keys is not in
// it, and costs it nothing.
type Index struct {
	Name, PK, SK string
	// Include lists the attributes that are projected in addition to the keys. Leases, tokens and
	// progress are not: writing them must not cost an index write.
	Include []string
}

// Indexes of the table. work: what is to be done, in exactly one place: unfinished items, mails, events without a
// place. list: what is listed, e.g. batches, jobs and objects by collection, newest found by time.
var Indexes = []Index{
	{
		Name: "work",
		PK:   "place",
		SK:   "ranking",
		Include: []string{"id", "space_needed", "size_known", "coll",
			"entered"},
	},
	{
		Name:    "list",
		PK:      "shelf",
		SK:      "since",
		Include: []string{"id", "job_state", "batch_state", "coll", "ark"},
	},
}

// CreateTable is the request that makes the table in a local DynamoDB. Capacity is on demand.
// The stream has both images of a row. TTL, backups
// and encryption are not of this request.
func CreateTable(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keys(PK, SK),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages},
	}

	names := []string{PK, SK}
	for _, ix := range Indexes {
		names = append(names, ix.PK, ix.SK)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(ix.Name),
			KeySchema: keys(ix.PK, ix.SK),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude,
				NonKeyAttributes: ix.Include},
		})
	}

	for _, n := range names {
		in.AttributeDefinitions = append(in.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: aws.String(n),
				AttributeType: types.ScalarAttributeTypeS})
	}
	return in
}

func keys(pk, sk string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
	}
}
