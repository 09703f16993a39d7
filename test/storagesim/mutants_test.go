package storagesim

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/kernel/bucket"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switch
// for it.
type mutant struct {
	name    string
	shown   uint64                              // a seed that has shown it
	s3      func(op, key string, h http.Header) // changes a request
	read    func(key string) string             // gives another key to read
	wrap    func(a *actor)
	noFence bool // a worker reads its job as it last wrote it
	damage  bool // the object is damaged once: no rule is broken
	keeper  bool // the object is copied, checked and repaired: no rule is broken
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "the root inventory put without a condition", shown: 176, s3: func(op, key string, h http.Header) {
		if rootInventory.MatchString(key) {
			unconditional(h)
		}
	}},
	{name: "a version's inventory claimed without a condition", s3: func(op, key string, h http.Header) {
		if strings.HasSuffix(key, "/inventory.json") && !rootInventory.MatchString(key) {
			unconditional(h)
		}
	}},
	{name: "no check of the job before the commit", noFence: true},
	{name: "the next version swept at any age", shown: 56, wrap: func(a *actor) {
		q := *a.q
		q.Rules.Timing.Long, q.Rules.Timing.Return, q.Rules.Timing.Sweep = 0, 0, 0
		a.s.Queue = &q
	}},
	{name: "clean-up that removes stored content", shown: 32, wrap: func(a *actor) {
		clean := a.q.Clean
		a.q.Clean = func(ctx context.Context, job string, until time.Time) (bool, error) {
			err := a.s.Root.Bucket.List(ctx, "", func(o bucket.Listed) error {
				if strings.Contains(o.Key, "/content/"+job) {
					return a.s.Root.Bucket.Delete(ctx, o.Key)
				}
				return nil
			})
			if err != nil {
				return false, err
			}
			return clean(ctx, job, until)
		}
	}},
}

// damageMutants leave out a witness.
var damageMutants = []mutant{
	{name: "the record not asked", wrap: func(a *actor) { a.s.Root.Recorded = nil }},
}

// keeperMutants leave out a comparison of what checks, copies and repairs.
var keeperMutants = []mutant{
	{name: "the record not asked by checks", wrap: func(a *actor) { a.s.Root.Recorded = nil }},
	{name: "the storage root read in place of the copy", read: func(key string) string {
		if rest, of := strings.CutPrefix(key, copyRoot+"/"); of {
			return storageRoot + "/" + rest
		}
		return key
	}},
}

func unconditional(h http.Header) {
	h.Del("If-Match")
	h.Del("If-None-Match")
}

// memory answers reads of one job from what this process wrote of it last.
type memory struct {
	dynamodbiface.DynamoDBAPI
	holds string // pk
	last  map[string]types.AttributeValue
}

func (m *memory) mine(it map[string]types.AttributeValue) bool {
	pk, _ := it["pk"].(*types.AttributeValueMemberS)
	sk, _ := it["sk"].(*types.AttributeValueMemberS)
	return pk != nil && sk != nil && pk.Value == m.holds && sk.Value == "JOB"
}

func (m *memory) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if m.last != nil && m.mine(in.Key) {
		return &dynamodb.GetItemOutput{Item: m.last}, nil
	}
	return m.DynamoDBAPI.GetItem(ctx, in, o...)
}

func (m *memory) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	out, err := m.DynamoDBAPI.PutItem(ctx, in, o...)
	m.note(in.Item, err)
	return out, err
}

func (m *memory) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := m.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
	for _, i := range in.TransactItems {
		if i.Put != nil {
			m.note(i.Put.Item, err)
		}
	}
	return out, err
}

func (m *memory) note(it map[string]types.AttributeValue, err error) {
	if m.mine(it) {
		m.last = it
		if err != nil {
			m.last = nil // the write was refused as too late
		}
	}
}
