package tabletest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
)

// EndpointVariable names the DynamoDB that the suites run on instead of the
// fake, e.g. that of DynamoDB Local or MiniStack.
const EndpointVariable = "ARCHIVIST_TEST_DYNAMODB"

// InProcess reports whether Open returns tables of the fake.
func InProcess() bool { return os.Getenv(EndpointVariable) == "" }

var opened atomic.Int64

// Open returns an empty table: of the fake, or of the DynamoDB at the endpoint that
// EndpointVariable names. Options count for a real table only.
func Open(t testing.TB, options ...Option) *table.Table {
	if InProcess() {
		return Table(New())
	}
	return Real(t, os.Getenv(EndpointVariable), options...)
}

// Option changes how a table is created.
type Option func(*dynamodb.CreateTableInput)

// NoStream makes a table without a stream. DynamoDB Local looks for the stream's shard at each
// write, which takes longer the more it has written.
func NoStream(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil }

// Real returns an empty table of the DynamoDB at endpoint. The table is deleted at the end of
// the test. Its name is unique in time and process, so that several suites can share an
// endpoint.
func Real(t testing.TB, endpoint string, options ...Option) *table.Table {
	client := dynamodb.New(dynamodb.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(endpoint),
		Credentials:  credentials.NewStaticCredentialsProvider("local", "local", ""),
	})

	name := fmt.Sprintf("test-%d-%d", time.Now().UnixNano(), opened.Add(1))
	create := schema.CreateTable(name)
	for _, o := range options {
		o(create)
	}

	_, err := client.CreateTable(context.Background(), create)
	// The name is unique: if the table exists, an earlier try of the SDK created it.
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		t.Fatalf("create table at %s: %v", endpoint, err)
	}

	t.Cleanup(func() {
		_, err := client.DeleteTable(context.Background(),
			&dynamodb.DeleteTableInput{TableName: aws.String(name)})
		var gone *types.ResourceNotFoundException // an earlier try of the SDK deleted the table
		if err != nil && !errors.As(err, &gone) {
			t.Errorf("delete table: %v", err)
		}
	})

	return table.New(dynamo.NewFromIface(client), name)
}

// Reserved reports whether a name is one of DynamoDB's reserved words.
func Reserved(name string) bool { return reservedWords[strings.ToUpper(name)] }
