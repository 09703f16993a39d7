package researchsim

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for it.
type mutant struct {
	name      string
	shown     uint64 // a seed that has shown it
	client    func(*actor, adversary.Client) adversary.Client
	revisions bool // the revisions of rows are not compared, so that the rule itself has to find it
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "work items counted from the queue's approximate number", client: approximate},
	{name: "the exclusion left out of the lease's transaction", client: unexcluded},
	{name: "an episode written without its revision", shown: 32, revisions: true, client: unconditioned("EPISODE")},
	{name: "final ends the lease at once", shown: 35, client: reading("complete", leasePK, stored)},
	{name: "the latest date overwrites the initial one", client: putting(redated)},
	{name: "expired leases counted", client: lines("due", "lease")},
	{name: "a walk that does not begin again", client: reading("archive", "RESEARCHWALK#", walked)},
	{name: "closed episodes not counted again", client: putting(unshrunk)},
	{name: "no work item sent again", client: reading("archive", leasePK, sent)},
	{name: "an extension revives a lease that has ended", client: reading("complete", leasePK, revived)},
	{name: "what failed is not deferred", client: putting(hasty)},
	{name: "deferrals not ended", client: lines("due", "episode")},
	{name: "counts written outside of the transaction", client: apart("RESEARCHCOUNTS#")},
	{name: "places written outside of the transaction", client: apart("RESEARCHLINE#")},
	{name: "a result stored without its pair", client: putting(unmarked)},
	{name: "places accepted by nobody", client: putting(careless)},
	{name: "a review that is not listed", client: putting(unlisted)},
	{name: "how an earlier recording sounds", shown: 21, client: reading("complete", episodePK, unmoved)},
	{name: "archivists without a fence", shown: 165, client: fenceless},
}

// remove takes rows away from an answer.
func remove(rows []tabletest.Item, gone func(sk string) bool) []tabletest.Item {
	return slices.DeleteFunc(rows, func(it tabletest.Item) bool { return gone(text(it, "sk")) })
}

// lines hides the rows of the line that begin like this.
func lines(class, kind string) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Seeing(c, "RESEARCHLINE#", func(rows []tabletest.Item) []tabletest.Item {
			return remove(rows, func(sk string) bool {
				return strings.HasPrefix(sk, class) && strings.Contains(sk, "#"+kind+"#")
			})
		})
	}
}

// approximate counts the work items that the queue shows at the moment: those under way are not there.
func approximate(a *actor, c adversary.Client) adversary.Client {
	return adversary.Seeing(c, "RESEARCHLINE#", func(rows []tabletest.Item) []tabletest.Item {
		return remove(rows, func(sk string) bool { return strings.HasPrefix(sk, "pending#") && a.Rng.IntN(2) == 0 })
	})
}

// isLease reports whether a transaction makes a lease.
func isLease(all []types.TransactWriteItem) bool {
	return slices.ContainsFunc(all, func(w types.TransactWriteItem) bool {
		return w.Put != nil && text(w.Put.Item, "sk") == "RESEARCHLEASE" && number(w.Put.Item, "rev") == 1
	})
}

// transacting changes transactions.
type transacting struct {
	adversary.Client
	change func(all []types.TransactWriteItem) []types.TransactWriteItem
}

func (c transacting) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	changed := &dynamodb.TransactWriteItemsInput{TransactItems: c.change(slices.Clone(in.TransactItems))}
	return c.Client.TransactWriteItems(ctx, changed, o...)
}

// unexcluded makes leases without a write of their episode.
func unexcluded(_ *actor, c adversary.Client) adversary.Client {
	return transacting{c, func(all []types.TransactWriteItem) []types.TransactWriteItem {
		if !isLease(all) {
			return all
		}
		return slices.DeleteFunc(all, func(w types.TransactWriteItem) bool {
			return w.Put != nil && text(w.Put.Item, "sk") == "EPISODE"
		})
	}}
}

// unconditioned puts rows of that kind without their conditions.
func unconditioned(sk string) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Unconditioned(c, func(row tabletest.Item) bool { return text(row, "sk") == sk })
	}
}

// without removes checks of rows.
func without(c adversary.Client, pk string) adversary.Client {
	return transacting{c, func(all []types.TransactWriteItem) []types.TransactWriteItem {
		return slices.DeleteFunc(all, func(w types.TransactWriteItem) bool {
			return w.ConditionCheck != nil && strings.HasPrefix(text(w.ConditionCheck.Key, "pk"), pk)
		})
	}}
}

// fenceless lets every archivist act.
func fenceless(_ *actor, c adversary.Client) adversary.Client {
	return adversary.Without(without(c, "LEASE#"), "until_ms")
}

// apart sends the parts of transactions that change rows of these partitions after the others.
func apart(pk string) func(*actor, adversary.Client) adversary.Client {
	is := func(key tabletest.Item) bool { return strings.HasPrefix(text(key, "pk"), pk) }
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Apart(c, is) }
}

// reading changes the rows of partitions with a prefix that a function reads by their keys.
func reading(function, prefix string, change func(*actor, tabletest.Item)) func(*actor,
	adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client { return read{c, a, function, prefix, change} }
}

type read struct {
	adversary.Client
	a                *actor
	function, prefix string
	change           func(*actor, tabletest.Item)
}

func (r read) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	out, err := r.Client.BatchGetItem(ctx, in, o...)
	if err != nil || r.a.doing != r.function {
		return out, err
	}
	for _, all := range out.Responses {
		for _, row := range all {
			if strings.HasPrefix(text(row, "pk"), r.prefix) {
				r.change(r.a, row)
			}
		}
	}
	return out, nil
}

func setNumber(row tabletest.Item, name string, n int64) {
	row[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// stored shows that many results are stored.
func stored(_ *actor, row tabletest.Item) { setNumber(row, "stored_n", 90+number(row, "stored_n")) }

// walked shows that all closed episodes were looked at.
func walked(_ *actor, row tabletest.Item) {
	setNumber(row, "catalog_no", math.MaxInt32)
	row["after_sk"] = &types.AttributeValueMemberS{Value: "closed#~"}
}

// unshrunk does not record that clips have gone away.
func unshrunk(row tabletest.Item) {
	if text(row, "sk") == "RESEARCHPROJECT" {
		setNumber(row, "shrunk_no", 0)
	}
}

// sent shows that all work items of others were sent.
func sent(a *actor, row tabletest.Item) {
	if !a.made[text(row, "lease_id")] {
		setNumber(row, "published_ms", 1)
	}
}

// revived shows leases that have ended as live.
func revived(_ *actor, row tabletest.Item) {
	delete(row, "ended_ms")
	delete(row, "why_ended")
}

// putting changes the rows that transactions put.
func putting(change func(row tabletest.Item)) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return transacting{c, func(all []types.TransactWriteItem) []types.TransactWriteItem {
			for _, w := range all {
				if w.Put != nil {
					change(w.Put.Item)
				}
			}
			return all
		}}
	}
}

// remedia changes what is known of an episode or clip.
func remedia(row tabletest.Item, change func(m *research.Media)) {
	if text(row, "media_json") == "" {
		return
	}
	m := decode[research.Media](text(row, "media_json"))
	change(&m)
	data, _ := json.Marshal(m)
	row["media_json"] = &types.AttributeValueMemberS{Value: string(data)}
}

func redated(row tabletest.Item) { remedia(row, func(m *research.Media) { m.Initial = m.Latest }) }

func hasty(row tabletest.Item) { remedia(row, func(m *research.Media) { m.Deferred = 0 }) }

// careless accepts all places that wait.
func careless(row tabletest.Item) {
	if marks := text(row, "hit_marks"); marks != "" {
		row["hit_marks"] = &types.AttributeValueMemberS{Value: strings.ReplaceAll(marks, "w", "a")}
	}
}

// unlisted leaves out the list of what waits for a person.
func unlisted(row tabletest.Item) {
	if strings.HasPrefix(text(row, "shelf"), "RESEARCHREVIEWS#") {
		delete(row, "shelf")
		delete(row, "since")
	}
}

// unmarked does not record which pairs are researched.
func unmarked(row tabletest.Item) { delete(row, "researched") }
