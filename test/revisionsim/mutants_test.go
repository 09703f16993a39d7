package revisionsim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/test/adversary"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for it.
type mutant struct {
	name   string
	shown  uint64 // a seed that has shown it
	client func(*actor, adversary.Client) adversary.Client

	deafEdges bool   // likewise the rows of waiters
	asleep    bool   // likewise the times at which archives are looked at
	rule      string // what the violation is to say; "": any
	loses     bool   // the bucket loses what is written
	still     bool   // the schedule starts no passes
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "a revision planned before those below it", client: reading("ARCHIVE#", "archive_json", ahead)},
	{name: "instances of higher revisions superseded", client: query("TASKLIVE#", upwards)},
	{name: "a superseder starts beside what it supersedes", client: passing("TASKLIVE#", none)},
	{name: "an instance starts that another supersedes", shown: 79, client: passing("TASKCANCEL#", none)},
	{name: "an edge without the row of its waiter", deafEdges: true, client: without(waiter)},
	{name: "the row of a waiter removed before the edge is decided", deafEdges: true, client: apart(waiter)},
	{name: "an edge decided as satisfied whatever the end was", client: reading("TASK#", "instance_json", succeeded)},
	{name: "a completion that counts after it was told to end", client: reading("TASK#", "instance_json", untold)},
	{name: "a result of another execution recorded", client: reading("TASK#", "instance_json", mine)},
	{name: "the turn of a lock given to the last", client: query("TASKLOCK#", backwards)},
	{name: "the holder of a lock not looked at", client: reading("TASKLOCK#", "holder_id", nil)},
	{name: "an older instance starts after a newer one", rule: onlyLatest, client: reading("TASKNAMES#", "started_n",
		nil)},
	{name: "only starts of instances count of which only the latest is wanted", rule: onlyLatest,
		client: starts(func(o *revision.Instance, _ string) bool { return o.LatestOnly })},
	{name: "starts under a later name do not count", rule: onlyLatest,
		client: starts(func(o *revision.Instance, name string) bool { return o.Task == name })},
	{name: "the fence of a pass left out", shown: 1217, client: without(fence)},
	{name: "a change committed piece by piece", client: pieces},
	{name: "an instance written without conditions", shown: 123, client: unconditioned},
	{name: "the places in lines written apart", client: apart(line)},
	{name: "the numbers of revisions written apart", client: apart(numbers)},
	{name: "no wake-up with a change", asleep: true, client: without(wakeRow)},
	{name: "a pass not started by the schedule", still: true},
	{name: "a row removed that is not in the bucket", loses: true},
	{name: "an ended instance not settled", client: passing("TASKLINE#", unsettled)},
	{name: "lost runs not ended", client: passing("TASKLINE#", notDue)},
	{name: "an edge lowered twice", client: reading("TASK#", "instance_json", twice)},
	{name: "a completion ignored by a cancel", client: reading("TASK#", "instance_json", unended)},
	{name: "a step goes on without its person", client: reading("TASK#", "instance_json", unmanned)},
	{name: "the turn of a lock by arrival", shown: 121, client: byArrival},
	unlisted,
}

// unlisted is a mutant that only the doctor finds: no decision depends on the lists for people.
var unlisted = mutant{name: "an instance that is not listed", client: notListed}

func notListed(_ *actor, c adversary.Client) adversary.Client {
	return adversary.Changing(c, func(w *types.TransactWriteItem) bool {
		if w.Put != nil && text(w.Put.Item, "sk") == "TASK" {
			delete(w.Put.Item, "shelf")
		}
		return true
	})
}

// some sends transactions without the parts that change rows of one kind.
func without(is func(pk, sk string) bool) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Changing(c, func(w *types.TransactWriteItem) bool {
			key := tabletest.Item{}
			switch {
			case w.Put != nil:
				key = w.Put.Item
			case w.Update != nil:
				key = w.Update.Key
			case w.ConditionCheck != nil:
				key = w.ConditionCheck.Key
			}
			return !is(text(key, "pk"), text(key, "sk"))
		})
	}
}

func waiter(_, sk string) bool   { return strings.HasPrefix(sk, "WAITER#") }
func fence(pk, _ string) bool    { return strings.HasPrefix(pk, "LEASE#archive") }
func line(pk, _ string) bool     { return strings.HasPrefix(pk, "TASKLINE#") }
func numbers(pk, sk string) bool { return strings.HasPrefix(pk, "REVISION#") && sk == "REVISION" }
func wakeRow(_, sk string) bool  { return sk == "WAKE" }

// apart sends the parts of transactions that change rows of one kind after the others.
func apart(is func(pk, sk string) bool) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Apart(c, func(key tabletest.Item) bool { return is(text(key, "pk"), text(key, "sk")) })
	}
}

func pieces(_ *actor, c adversary.Client) adversary.Client { return adversary.Pieces(c) }

// unconditioned puts the rows of instances without their conditions. Those of their events are among them: they alone
// would keep two from changing an instance at once.
func unconditioned(_ *actor, c adversary.Client) adversary.Client {
	return adversary.Unconditioned(c, func(row tabletest.Item) bool {
		return strings.HasPrefix(text(row, "pk"), "TASK#")
	})
}

// passing changes what a pass finds in partitions.
func passing(partition string, change func(*actor, []tabletest.Item) []tabletest.Item) func(*actor,
	adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client {
		return adversary.Seeing(c, partition, func(rows []tabletest.Item) []tabletest.Item {
			if !a.passes {
				return rows
			}
			return change(a, rows)
		})
	}
}

func none(*actor, []tabletest.Item) []tabletest.Item { return nil }

// unsettled and notDue hide rows of one kind.
func unsettled(_ *actor, rows []tabletest.Item) []tabletest.Item { return hide(rows, "settle#") }
func notDue(_ *actor, rows []tabletest.Item) []tabletest.Item    { return hide(rows, "due#") }

func hide(rows []tabletest.Item, prefix string) []tabletest.Item {
	return slices.DeleteFunc(slices.Clone(rows), func(row tabletest.Item) bool {
		return strings.HasPrefix(text(row, "sk"), prefix)
	})
}

// query changes queries in partitions.
func query(partition string, change func(in *dynamodb.QueryInput)) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client { return queries{c, partition, change} }
}

type queries struct {
	adversary.Client
	partition string
	change    func(in *dynamodb.QueryInput)
}

func (q queries) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (
	*dynamodb.QueryOutput, error) {
	pk := in.KeyConditions["pk"].AttributeValueList
	if len(pk) == 1 && strings.HasPrefix(pk[0].(*types.AttributeValueMemberS).Value, q.partition) {
		q.change(in)
	}
	return q.Client.Query(ctx, in, o...)
}

// upwards lets a query find the instances of all revisions.
func upwards(in *dynamodb.QueryInput) {
	if sk, is := in.KeyConditions["sk"]; is && len(sk.AttributeValueList) == 2 {
		sk.AttributeValueList[1] = &types.AttributeValueMemberS{Value: "~"}
	}
}

func backwards(in *dynamodb.QueryInput) { in.ScanIndexForward = aws.Bool(false) }

// reading changes rows that are read one by one: their JSON, or, without change, some attributes are hidden.
func reading(partition, attributes string, change func(a *actor, doc map[string]any)) func(*actor,
	adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client { return read{c, a, partition, attributes, change} }
}

type read struct {
	adversary.Client
	a                     *actor
	partition, attributes string
	change                func(a *actor, doc map[string]any)
}

func (r read) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (
	*dynamodb.GetItemOutput, error) {
	out, err := r.Client.GetItem(ctx, in, o...)
	if err != nil || len(out.Item) == 0 || !strings.HasPrefix(text(in.Key, "pk"), r.partition) {
		return out, err
	}
	if r.change == nil {
		for _, name := range strings.Fields(r.attributes) {
			delete(out.Item, name)
		}
		return out, nil
	}
	if text(out.Item, r.attributes) == "" { // another row of the partition
		return out, nil
	}
	var doc map[string]any
	err = json.Unmarshal([]byte(text(out.Item, r.attributes)), &doc)
	if err != nil {
		panic(err)
	}
	r.change(r.a, doc)
	data, err := json.Marshal(doc)
	out.Item[r.attributes] = &types.AttributeValueMemberS{Value: string(data)}
	return out, err
}

// onlyLatest is the violation that shows that an older instance starts of which only the latest is wanted.
const onlyLatest = "only the latest is wanted"

// starts shows a pass what would be known of a task if only those starts counted for which counts holds.
func starts(counts func(o *revision.Instance, name string) bool) func(*actor, adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client { return startsRead{c, a, counts} }
}

type startsRead struct {
	adversary.Client
	a      *actor
	counts func(o *revision.Instance, name string) bool
}

func (r startsRead) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (
	*dynamodb.GetItemOutput, error) {
	out, err := r.Client.GetItem(ctx, in, o...)
	ref, is := strings.CutPrefix(text(in.Key, "pk"), "TASKNAMES#")
	if err != nil || len(out.Item) == 0 || !is || !r.a.passes {
		return out, err
	}
	name, newest := text(in.Key, "sk"), int64(0)
	for _, known := range r.a.w.check.instances {
		if r.a.w.check.hasStarted(&known.is, ref, name) && r.counts(&known.is, name) {
			newest = max(newest, known.is.Revision)
		}
	}
	out.Item["started_n"] = &types.AttributeValueMemberN{Value: fmt.Sprint(newest)}
	return out, nil
}

// ahead shows a pass that a revision is the first one if it is known, and the one before is not.
func ahead(a *actor, doc map[string]any) {
	watermark, _ := doc["watermark"].(float64)
	known := func(n float64) bool {
		r := a.w.check.revisions[fmt.Sprintf("%s/%d", doc["name"], int64(n))]
		return r != nil && r.is.State == revision.Notified
	}
	if a.passes && !known(watermark+1) && known(watermark+2) {
		doc["watermark"], doc["first"] = watermark+1, watermark+2
	}
}

// succeeded shows a pass that what has ended has succeeded.
func succeeded(a *actor, doc map[string]any) {
	if state, _ := doc["state"].(string); a.passes && over(state) && doc["settled"] == nil {
		doc["state"] = "succeeded"
	}
}

// untold shows who records a result that the instance was not told to end.
func untold(a *actor, doc map[string]any) {
	if a.ending != nil {
		delete(doc, "told")
	}
}

// mine shows who records a result that its execution is the one that may.
func mine(a *actor, doc map[string]any) {
	if state, _ := doc["state"].(string); a.ending != nil && !over(state) && state != "ready" {
		doc["exec"], doc["state"] = a.ending.Exec, "running"
	}
}

// unmanned shows a pass that nobody needs to start an instance.
func unmanned(a *actor, doc map[string]any) {
	if a.passes && doc["state"] == "blocked" {
		delete(doc, "manual")
	}
}

// twice shows a pass that two edges of a blocked instance were decided when one was.
func twice(a *actor, doc map[string]any) {
	edges, _ := doc["edges"].([]any)
	if !a.passes || doc["state"] != "blocked" || len(edges) < 2 {
		return
	}
	open := []map[string]any{}
	for _, e := range edges {
		if edge, _ := e.(map[string]any); edge["verdict"] == nil {
			open = append(open, edge)
		}
	}
	if len(open) > 0 && len(open) < len(edges) {
		open[0]["verdict"], open[0]["end"] = "satisfied", "succeeded"
	}
}

// unended shows a person who cancels that what has ended runs.
func unended(a *actor, doc map[string]any) {
	if state, _ := doc["state"].(string); a.Name == "person" && over(state) {
		doc["state"] = "running"
	}
}

// byArrival puts the line of a lock into the order in which its rows were written.
func byArrival(_ *actor, c adversary.Client) adversary.Client {
	all := query("TASKLOCK#", func(in *dynamodb.QueryInput) { in.Limit = nil })(nil, c)
	return adversary.Seeing(all, "TASKLOCK#", func(rows []tabletest.Item) []tabletest.Item {
		slices.SortStableFunc(rows, func(a, b tabletest.Item) int {
			return strings.Compare(text(a, "wid"), text(b, "wid"))
		})
		return rows
	})
}
