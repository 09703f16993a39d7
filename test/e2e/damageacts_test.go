package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/preservation"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
)

// row describes a file at the source.
func (c *cell) row(path string) checkm.Row { return c.src.row(path) }

// writeManifest writes an object manifest of files at a source. Their names are the last parts of their paths.
func writeManifest(t *testing.T, w io.Writer, src *source, paths []string) {
	t.Helper()
	var rows []checkm.Row
	for _, path := range paths {
		r := src.row(path)
		r.Name = path[strings.LastIndexByte(path, '/')+1:]
		rows = append(rows, r)
	}
	if err := checkm.Write(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest", rows); err != nil {
		t.Fatal(err)
	}
}

// deposit brings all files again, with a new one.
func (c *cell) deposit() {
	files := c.files(2)
	files["d.txt"] = "fourth file of " + c.local
	c.submit(files)
}

// secondVersion brings all files again, but the damaged one with another content.
func (c *cell) secondVersion() {
	files, path := c.files(2), c.kind.path
	if path == "" {
		path = "c.txt"
	}
	files[path] += ", another edition"
	c.submit(files)
}

// sameContent brings all files again.
func (c *cell) sameContent() { c.submit(c.files(2)) }

// submit submits files, which are removed from the source when the job has ended.
func (c *cell) submit(files map[string]string) {
	c.Helper()
	c.sent = nil
	url := c.src.URL + c.manifest("again", files)
	b, err := client.Submit(c.Context(), v1.BatchRequest{Collection: "damage", Submitter: "depositor",
		Payload:     v1.Payload{URL: url, Type: "object-manifest"},
		Identifiers: &v1.Identifiers{Local: []string{c.local}}}, url)
	if err != nil {
		c.Fatal(err)
	}
	c.outcome(ingest.JobID(b.ID, 1))
	for _, path := range c.sent {
		c.src.remove(path)
	}
}

// correction corrects the title, without content.
func (c *cell) correction() {
	b, err := client.Correct(c.Context(), c.ark, v1.CorrectionRequest{What: "Corrected", Reason: "a typing error"},
		c.local)
	if err != nil {
		c.Fatal(err)
	}
	c.outcome(ingest.JobID(b.ID, 1))
}

// outcome waits for the end of a job. One that has failed says why, and what to do.
func (c *cell) outcome(job string) {
	c.Helper()
	var j v1.Job
	until(c.T, "job "+job+" ends", soon, func() bool {
		j = jobOf(c.T, job)
		return j.State == "Completed" || j.State == "Failed"
	})
	if j.State == "Completed" {
		c.completed(j)
		return
	}
	c.job = job
	c.says = "Failed: " + reason(j.Message)
	for _, want := range []string{"is damaged in the storage root", c.kind.says, "archivist object repair " + c.ark,
		"Then requeue the job"} {
		if !strings.Contains(j.Message, want) {
			c.wrong("the failed job does not say %q: %s", want, j.Message)
		}
	}
	if !j.Recoverable {
		c.wrong("the failed job cannot be requeued")
	}
}

// completed notes what a job that has completed says. That it has healed the object is in its receipt, and in the
// history of the object.
func (c *cell) completed(j v1.Job) {
	c.Helper()
	receipt, err := client.Receipt(c.Context(), j.ID)
	if err != nil {
		c.Fatal(err)
	}
	c.right, c.says = true, fmt.Sprintf("Completed, version %d", j.Version)
	if j.NoChange {
		c.says = "Completed, no change"
	}
	c.healed = slices.ContainsFunc(receipt.Warnings, func(w string) bool {
		return strings.Contains(w, "were damaged or missing, and were replaced")
	})
	repairs := len(c.events("object:"+c.ark, "object.repair"))
	if c.healed {
		c.says += ", healed"
	}
	if c.healed != (repairs > 0) {
		c.wrong("the receipt says that it healed: %v; the history has %d repairs", c.healed, repairs)
	}
}

// reason is the part of a message that says what differs.
func reason(message string) string {
	_, why, _ := strings.Cut(message, "has restored it: ")
	why, _, _ = strings.Cut(why, ". From a second copy")
	return why
}

// reindex makes rows from the damaged object: first with its rows there, then as if they were lost.
func (c *cell) reindex() {
	before := c.rows()
	c.says = "rows there: " + c.reindexed()
	if now := c.rows(); now != before {
		c.wrong("the reindex has changed the rows from %s to %s", before, now)
	}
	if c.kind.byRecord {
		return // without the rows it could not be told, and what they say is not in the storage root
	}
	lost := itemsOf(c.T, "OBJECT#"+c.ark)
	forget(c.T, "OBJECT#"+c.ark)
	c.says += "; rows lost: " + c.reindexed()
	_, err := client.Object(c.Context(), c.ark)
	if fault.Is(err, fault.NotFound) { // an operator restores them from a backup
		putItems(c.T, lost)
	}
	if now := c.rows(); now != before {
		c.wrong("the rows were %s; made from the damaged object they are %s", before, now)
	}
}

// rows is what is on record of the object.
func (c *cell) rows() string {
	c.Helper()
	o, err := client.Object(c.Context(), c.ark)
	if err != nil {
		c.Fatal(err)
	}
	versions, err := client.Versions(c.Context(), c.ark)
	if err != nil {
		c.Fatal(err)
	}
	o.Fixity, o.Copy = v1.Fixity{}, nil
	return fmt.Sprintf("%+v %+v", o, versions)
}

// reindexed is the answer of a reindex of the object.
func (c *cell) reindexed() string {
	c.Helper()
	did, err := client.Reindex(c.Context(), v1.ReindexRequest{ARK: c.ark})
	switch {
	case err != nil && strings.Contains(err.Error(), "damaged"):
		return "refused: " + reason(err.Error())
	case err != nil:
		return "refused: " + err.Error()
	case len(did.Failed) > 0:
		return "failed: " + did.Failed[0].Why
	case did.Changed > 0:
		return "made again"
	}
	return "nothing to do"
}

// itemsOf are the rows of a partition, but not its events.
func itemsOf(t *testing.T, pk string) (all []map[string]types.AttributeValue) {
	t.Helper()
	rows, err := dynamodb.NewFromConfig(cfg).Query(t.Context(), &dynamodb.QueryInput{TableName: &out.TableName,
		KeyConditions: map[string]types.Condition{"pk": {ComparisonOperator: types.ComparisonOperatorEq,
			AttributeValueList: []types.AttributeValue{&types.AttributeValueMemberS{Value: pk}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows.Items {
		if sk := row["sk"].(*types.AttributeValueMemberS).Value; !strings.HasPrefix(sk, "EV#") {
			all = append(all, row)
		}
	}
	return all
}

// putItems puts rows.
func putItems(t *testing.T, rows []map[string]types.AttributeValue) {
	t.Helper()
	for _, row := range rows {
		_, err := dynamodb.NewFromConfig(cfg).PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &out.TableName, Item: row})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// replicate has the newest version copied again.
func (c *cell) replicate() {
	item := "version:" + c.ark + "/v2"
	known := len(c.events(item, preservation.Replicated))
	c.revoke(item, preservation.Replicated)
	var last v1.ItemEvent
	until(c.T, "the version is replicated, or not", soon, func() bool {
		startRun(c.T, preservation.Replication)
		all := c.events(item, preservation.Replicated)
		if len(all) == known {
			x, err := client.ExplainWith(c.Context(), item, v1.ExplainOf{Component: preservation.Replication})
			if err != nil {
				c.Fatal(err)
			}
			if x.WaitsFor == "retry" {
				_, c.says, _ = strings.Cut(strings.TrimSuffix(x.Why, "."), ": ")
			}
			return x.WaitsFor == "retry"
		}
		last = all[0]
		for _, e := range all {
			if e.Version > last.Version {
				last = e
			}
		}
		return true
	})
	if c.says != "" {
		c.says = "waits: " + c.says
		return
	}
	var detail struct{ Reason string }
	if err := json.Unmarshal(last.Detail, &detail); err != nil {
		c.Fatal(err)
	}
	c.says, c.right = "not replicated: "+cmp.Or(reason(detail.Reason), detail.Reason), last.Outcome == "success"
	if c.right {
		c.says = "Replicated: " + detail.Reason
	}
}

// fixity has the stored files checked. Each file that is named is one that is damaged.
func (c *cell) fixity() {
	found := c.check()
	c.right, c.says = found.Outcome == fixity.OK, found.Outcome
	for _, p := range found.Problems {
		key := strings.TrimPrefix(p.Key, c.prefix)
		c.says += fmt.Sprintf("; %s: %s", key, p.Kind)
		was, there := c.good[key]
		if now, is := c.bad[key]; there == is && was == now {
			c.wrong("the check blames %s, which is right", key)
		}
	}
}

// repairs has the object repaired from its copy.
func (c *cell) repairs() {
	rounds, repaired := c.restore()
	c.right, c.healed = true, true
	c.says = fmt.Sprintf("%d files repaired in %d rounds, %d by hand", repaired, rounds-1, len(c.hand))
}

// judge compares what the archive says after the act with the stored bytes, and with the validator.
func (c *cell) judge() {
	now := c.keys(out.StorageBucket)
	c.after = c.validates(now)[0]
	version := c.version()
	for key, text := range c.bad {
		is, there := now[key]
		_, was := c.good[key]
		switch {
		case there && (is == text || is == c.good[key]):
		case !there && !was: // what belongs to nothing
		case version > 2 && ofRoot(key):
		default:
			c.wrong("%s changed %s, which is neither as it was damaged nor as it was before", c.act.name, key)
		}
	}
	c.compare(c.lacks(now, version))
	if copied := c.keys(*replica); version == 2 && !same(copied, c.copies) {
		c.wrong("the copy has changed")
	}
}

// compare compares what the archive says after the act with what the object lacks then, and with the validator.
func (c *cell) compare(left []string) {
	found := ""
	switch {
	case c.act.name == "replicate": // it says something of the copy, which is compared
	case c.right && (len(left) > 0 || !c.after.Valid):
		found = beside
	case c.right && !c.healed:
		found = untold
	case !c.right && len(left) == 0:
		c.wrong("it says %q, and the object is right", c.says)
	case !c.right && c.after.Valid && c.kind.unseen == "":
		c.wrong("it says %q, and the validator that the object is valid", c.says)
	}
	if found != c.differs {
		c.wrong("it says %q; known is %q, found %q: damaged are %q; the validator: %s", c.says, c.differs, found, left,
			c.after.Says)
	}
}

func same(a, b map[string]string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(keysOf(a), func(key string) bool { return a[key] != b[key] })
}

func keysOf(m map[string]string) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// requeue requeues the job that has failed. What it had sent is not at the source any more.
func (c *cell) requeue() {
	if c.job == "" {
		return
	}
	if err := requeue(c.T, c.job); err != nil {
		c.wrong("the requeue: %v", err)
		return
	}
	var j v1.Job
	until(c.T, "the requeued job ends", soon, func() bool {
		j = jobOf(c.T, c.job)
		return j.State == "Completed" || j.State == "Failed"
	})
	if j.State != "Completed" {
		c.wrong("the requeued job is %s: %s", j.State, j.Message)
		return
	}
	c.says += fmt.Sprintf("; requeued: Completed, version %d", j.Version)
}

// finish looks at the object in the end: it is right, on record, and copied.
func (c *cell) finish() {
	version := c.version()
	until(c.T, "the newest version is copied", 2*soon, func() bool {
		o, err := client.Object(c.Context(), c.ark)
		if err != nil {
			c.Fatal(err)
		}
		return o.Copy != nil && o.Copy.Version == version
	})
	now, second := c.keys(out.StorageBucket), c.keys(*replica)
	all := c.validates(now, second)
	c.last = all[0]
	if left := c.lacks(now, version); len(left) > 0 || !c.last.Valid {
		c.wrong("in the end %q are not as they were; the validator: %s", left, c.last.Says)
	}
	if !all[1].Valid || !same(now, second) {
		c.wrong("in the end the copy is another; the validator: %s", all[1].Says)
	}
}
