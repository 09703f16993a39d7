package componentsim

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/components/component"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// mutant breaks one rule from outside, by a wrapper: the production code has no switches for it.
type mutant struct {
	name     string
	shown    uint64 // a seed that has shown it
	client   func(*actor, adversary.Client) adversary.Client
	unticked bool // components are not started by the clock

	revisions bool // the revisions of rows are not compared, so that the rule itself has to find it
}

// Known is the mutant's name, and a seed that has shown it.
func (m mutant) Known() (name string, shown uint64) { return m.name, m.shown }

var mutants = []mutant{
	{name: "a lease on an item ignored", client: reading(itemPrefix, unclaimed)},
	{name: "a result stored without the claim", shown: 86, client: reading(itemPrefix, reclaimed)},
	{name: "a result stored by a run that lost its slot", client: reading("RUN#", open)},
	{name: "a slot taken without its revision", shown: 35, revisions: true, client: unconditioned("SLOT#")},
	{name: "an item not compared with its subject before the work", client: unaware},
	{name: "an item's change committed piece by piece", client: pieces},
	{name: "places written outside of the transaction", client: apart("ready#", "later#", "running#", "failed#")},
	{name: "counts written outside of the transaction", client: apart("count#")},
	{name: "components not started by the clock", unticked: true},
	{name: "lost runs not ended by the clock", client: patientClock},
	{name: "items that are ready not looked for by the clock", client: idle},
	{name: "a back-fill that stops early", client: filled},
}

// unconditioned puts rows whose sort keys begin like this without their conditions.
func unconditioned(prefix string) func(*actor, adversary.Client) adversary.Client {
	return func(_ *actor, c adversary.Client) adversary.Client {
		return adversary.Unconditioned(c, func(row tabletest.Item) bool {
			return strings.HasPrefix(text(row, "sk"), prefix)
		})
	}
}

// pieces sends each part of an item's change as a transaction of its own.
func pieces(_ *actor, c adversary.Client) adversary.Client {
	return some{c, adversary.Pieces(c), itemPrefix}
}

// some sends transactions that have a row of a partition with that prefix in another way.
type some struct {
	adversary.Client
	other  adversary.Client
	prefix string
}

func (s some) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		if w.Put != nil && strings.HasPrefix(text(w.Put.Item, "pk"), s.prefix) {
			return s.other.TransactWriteItems(ctx, in, o...)
		}
	}
	return s.Client.TransactWriteItems(ctx, in, o...)
}

// apart sends the parts of transactions that change rows of lines with these sort keys after the
// others.
func apart(prefixes ...string) func(*actor, adversary.Client) adversary.Client {
	is := func(key tabletest.Item) bool {
		begins := func(p string) bool { return strings.HasPrefix(text(key, "sk"), p) }
		return slices.ContainsFunc(prefixes, begins)
	}
	return func(_ *actor, c adversary.Client) adversary.Client { return adversary.Apart(c, is) }
}

// reading changes the rows that a worker reads one by one, in partitions with that prefix.
func reading(prefix string, change func(*actor, tabletest.Item)) func(*actor, adversary.Client) adversary.Client {
	return func(a *actor, c adversary.Client) adversary.Client { return read{c, a, prefix, change} }
}

type read struct {
	adversary.Client
	a      *actor
	prefix string
	change func(*actor, tabletest.Item)
}

func (r read) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := r.Client.GetItem(ctx, in, o...)
	if err == nil && len(out.Item) > 0 && r.a.labours != "" && strings.HasPrefix(text(in.Key, "pk"), r.prefix) {
		r.change(r.a, out.Item)
	}
	return out, err
}

// rewrite changes the claims in the row of an item.
func rewrite(row tabletest.Item, change func(claims map[string]component.Claim)) {
	if text(row, "item_json") == "" { // only the head of the row was asked for
		return
	}
	var it component.Item
	if err := json.Unmarshal([]byte(text(row, "item_json")), &it); err != nil {
		panic(err)
	}
	if it.Claims == nil {
		it.Claims = map[string]component.Claim{}
	}
	change(it.Claims)
	data, _ := json.Marshal(it)
	row["item_json"] = &types.AttributeValueMemberS{Value: string(data)}
}

// unclaimed does not show a worker the claims of other workers of its component.
func unclaimed(a *actor, row tabletest.Item) {
	rewrite(row, func(claims map[string]component.Claim) {
		if id := claims[a.labours].ID; !a.made[id] && (a.begun == nil || a.begun.Claim != id) {
			delete(claims, a.labours)
		}
	})
}

// reclaimed shows a worker that has ended its work that it still has its claim.
func reclaimed(a *actor, row tabletest.Item) {
	if wk := a.begun; wk != nil && wk.ended && text(row, "pk") == itemPrefix+wk.Item {
		rewrite(row, func(claims map[string]component.Claim) {
			claims[wk.Component] = component.Claim{Run: wk.Run, ID: wk.Claim, Until: math.MaxInt64 / 2,
				BasedOn: wk.BasedOn}
		})
	}
}

// open shows that no lane is closed.
func open(_ *actor, row tabletest.Item) { delete(row, "is_closed") }

// unaware does not show a worker the events of objects.
func unaware(a *actor, c adversary.Client) adversary.Client {
	blind := adversary.Seeing(c, "OBJECT#", func(rows []tabletest.Item) []tabletest.Item {
		if a.labours != "" {
			return nil
		}
		return rows
	})
	return adversary.Changing(blind, func(w *types.TransactWriteItem) bool {
		return w.ConditionCheck == nil || !strings.HasPrefix(text(w.ConditionCheck.Key, "pk"), "OBJECT#")
	})
}

// patientClock shows that no run is late.
func patientClock(_ *actor, c adversary.Client) adversary.Client {
	return adversary.Seeing(c, "COMPONENTRUNS", func(rows []tabletest.Item) []tabletest.Item {
		for _, row := range rows {
			row["due_ms"] = &types.AttributeValueMemberN{Value: strconv.Itoa(math.MaxInt64 / 2)}
		}
		return rows
	})
}

// idle shows the tick no items in lines.
func idle(a *actor, c adversary.Client) adversary.Client {
	return adversary.Seeing(c, "LINE#", func(rows []tabletest.Item) []tabletest.Item {
		if a.ticks {
			return nil
		}
		return rows
	})
}

// filled writes that each back-fill is done when it begins.
func filled(_ *actor, c adversary.Client) adversary.Client {
	return adversary.Changing(c, func(w *types.TransactWriteItem) bool {
		if w.Put != nil && text(w.Put.Item, "sk") == "#FILL" {
			w.Put.Item["filled_epoch"] = w.Put.Item["fill_epoch"]
		}
		return true
	})
}
