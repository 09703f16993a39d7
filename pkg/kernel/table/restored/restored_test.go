package restored_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/restored"
	"archivist/pkg/kernel/table/schema"
)

// account is an endpoint of DynamoDB with tables as its API Reference documents them.
type account struct {
	mu     sync.Mutex
	tables map[string]map[string]any // TableDescription by name
	ttl    map[string]string         // the attribute by table; none = disabled
	pitr   map[string]bool
	refuse map[string]bool // operations, or operations and a table
	asked  map[string]int
	listed func() // is called when a table is described; nil: nothing is
}

const arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/"

// described has keys and indexes of the schema; more is added to it.
func described(name string, more map[string]any) map[string]any {
	keys := func(pk, sk string) any {
		return []any{map[string]any{"AttributeName": pk, "KeyType": "HASH"},
			map[string]any{"AttributeName": sk, "KeyType": "RANGE"}}
	}
	var indexes []any
	for _, ix := range schema.Indexes {
		indexes = append(indexes, map[string]any{"IndexName": ix.Name, "KeySchema": keys(ix.PK, ix.SK),
			"IndexStatus": "ACTIVE",
			"Projection":  map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": ix.Include}})
	}
	d := map[string]any{"TableName": name, "TableArn": arn + name, "TableStatus": "ACTIVE",
		"CreationDateTime": 1.7638e9, "KeySchema": keys(schema.PK, schema.SK), "GlobalSecondaryIndexes": indexes}
	for k, v := range more {
		d[k] = v
	}
	return d
}

// summary is a RestoreSummary; source and backup are left out if they are "".
func summary(going bool, source, backup string) map[string]any {
	s := map[string]any{"RestoreDateTime": 1.7638e9 - 3600, "RestoreInProgress": going}
	if source != "" {
		s["SourceTableArn"] = arn + source
	}
	if backup != "" {
		s["SourceBackupArn"] = backup
	}
	return map[string]any{"RestoreSummary": s}
}

func with(a map[string]any, more ...any) map[string]any {
	for i := 0; i < len(more); i += 2 {
		a[more[i].(string)] = more[i+1]
	}
	return a
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var in struct{ TableName, ExclusiveStartTableName string }
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &in)
	a.asked[operation]++
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	if a.refuse[operation] || a.refuse[operation+" "+in.TableName] {
		answer(400, map[string]any{"__type": "com.amazon.coral.service#AccessDeniedException",
			"Message": "User is not authorized to perform: dynamodb:" + operation})
		return
	}
	switch operation {
	case "ListTables":
		var names []string
		for name := range a.tables {
			if name > in.ExclusiveStartTableName {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		out := map[string]any{"TableNames": names[:min(len(names), 100)]}
		if len(names) > 100 {
			out["LastEvaluatedTableName"] = names[99]
		}
		answer(200, out)
	case "DescribeTable":
		if a.listed != nil {
			a.listed()
		}
		if d := a.tables[in.TableName]; d != nil {
			answer(200, map[string]any{"Table": d})
			return
		}
		answer(400, map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
			"message": "Requested resource not found"})
	case "DescribeTimeToLive":
		out := map[string]any{"TimeToLiveStatus": "DISABLED"}
		if at := a.ttl[in.TableName]; at != "" {
			out = map[string]any{"TimeToLiveStatus": "ENABLED", "AttributeName": at}
		}
		answer(200, map[string]any{"TimeToLiveDescription": out})
	case "DescribeContinuousBackups":
		status := "DISABLED"
		if a.pitr[in.TableName] {
			status = "ENABLED"
		}
		answer(200, map[string]any{"ContinuousBackupsDescription": map[string]any{
			"ContinuousBackupsStatus":        "ENABLED",
			"PointInTimeRecoveryDescription": map[string]any{"PointInTimeRecoveryStatus": status}}})
	default:
		answer(400, map[string]any{"__type": "UnknownOperationException"})
	}
}

// begin is an account with these tables, and a reader of it that works on "archive".
func begin(t *testing.T, tables ...map[string]any) (*account, *restored.Reader) {
	t.Helper()
	a := &account{tables: map[string]map[string]any{}, ttl: map[string]string{}, pitr: map[string]bool{},
		refuse: map[string]bool{}, asked: map[string]int{}}
	for _, d := range tables {
		a.tables[d["TableName"].(string)] = d
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: aws.NopRetryer{}})
	now := time.Unix(1_763_900_000, 0)
	return a, &restored.Reader{Client: client, Table: "archive", Now: func() time.Time { return now }}
}

func lacking(t restored.Table) (all []string) {
	for _, l := range t.Lacks {
		all = append(all, l.What)
	}
	return all
}

var complete = []any{"DeletionProtectionEnabled", true, "LatestStreamArn", arn + "done/stream/1",
	"StreamSpecification", map[string]any{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}}

// TestFindsRestores: tables that were restored from the one in use are found by what DynamoDB tells: the source, the
// backup, or, if it tells neither, keys and indexes. Others are not shown.
func TestFindsRestores(t *testing.T) {
	stranger := described("stranger", summary(false, "", ""))
	stranger["KeySchema"] = []any{map[string]any{"AttributeName": "id", "KeyType": "HASH"}}
	a, r := begin(t, described("archive", nil), described("plain", nil), stranger,
		with(described("going", summary(true, "archive", "")), "TableStatus", "CREATING", "CreationDateTime", 1.7639e9),
		described("bare", summary(false, "archive", "")),
		with(described("done", summary(false, "archive", "")), complete...),
		described("backup", summary(false, "", arn+"archive/backup/0163-a")),
		described("untold", summary(false, "", "arn:aws:backup:eu-west-1:111122223333:recovery-point:x")),
		described("others", summary(false, "elsewhere", "")))
	a.ttl["done"], a.pitr["done"] = schema.TTL, true

	found, err := r.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]restored.Table{}
	var names []string
	for _, one := range found.Tables {
		byName[one.Name] = one
		names = append(names, one.Name)
	}
	slices.Sort(names[1:])
	if want := []string{"going", "backup", "bare", "done", "untold"}; !slices.Equal(names, want) {
		t.Fatalf("found %v; expected the newest first: %v", names, want)
	}
	if g := byName["going"]; !g.Restoring || g.Lacks != nil || g.Status != "CREATING" || g.Source != "archive" {
		t.Errorf("one in the making is %+v", g)
	}
	if d := byName["done"]; d.Lacks == nil || len(d.Lacks) > 0 || d.Stream != arn+"done/stream/1" ||
		d.Moment.Unix() != 1_763_796_400 {
		t.Errorf("one that lacks nothing is %+v", d)
	}
	want := []string{"time-to-live", "recovery", "stream", "protection"}
	if got := lacking(byName["bare"]); !slices.Equal(got, want) {
		t.Errorf("one without settings lacks %v; expected %v", got, want)
	}
	for _, l := range byName["bare"].Lacks {
		if !strings.HasPrefix(l.Command, "aws dynamodb update-") || !strings.Contains(l.Command, " bare ") {
			t.Errorf("%s is set by %q", l.What, l.Command)
		}
	}
	if s := byName["backup"].Source; s != "archive" {
		t.Errorf("the source of a table of which only the backup is told is %q", s)
	}
	if s := byName["untold"].Source; s != "" {
		t.Errorf("the source of a table whose source is not told is %q", s)
	}
	if found.Looked != 9 || found.More || found.Unread > 0 {
		t.Errorf("looked at %d, more %v, unread %d", found.Looked, found.More, found.Unread)
	}

	// A page that asks often does not let the account be asked each time.
	before := a.asked["ListTables"]
	if _, err := r.All(t.Context()); err != nil || a.asked["ListTables"] != before {
		t.Errorf("asked again at once: %v, %v", a.asked, err)
	}
}

// TestFamily: the archive works on a restored table; it is shown, and so are others that were restored from its source.
func TestFamily(t *testing.T) {
	_, r := begin(t, described("archive", summary(false, "first", "")), described("first", nil),
		described("second-try", summary(false, "first", "")), described("third", summary(false, "archive", "")))
	found, err := r.All(t.Context())
	if err != nil || len(found.Tables) != 3 {
		t.Fatalf("found %+v, %v", found.Tables, err)
	}
	for _, one := range found.Tables {
		if one.InUse != (one.Name == "archive") {
			t.Errorf("%s in use: %v", one.Name, one.InUse)
		}
	}
}

// TestLacks: what differs from the schema is told with the command that sets it, or without one if nothing does.
func TestLacks(t *testing.T) {
	d := with(described("odd", summary(false, "archive", "")), complete...)
	d["StreamSpecification"] = map[string]any{"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}
	indexes := d["GlobalSecondaryIndexes"].([]any)
	d["GlobalSecondaryIndexes"] = indexes[:1]
	indexes[0].(map[string]any)["IndexStatus"] = "CREATING"
	a, r := begin(t, described("archive", nil), d)
	a.ttl["odd"], a.refuse["DescribeContinuousBackups odd"] = "expires", true

	one, err := r.One(t.Context(), "odd")
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ what, says, command string }{
		{"time-to-live", "by the attribute expires, not by gone", "Enabled=false,AttributeName=expires"},
		{"recovery", "", ""},
		{"stream", "KEYS_ONLY", "StreamEnabled=false"},
		{"index work", "not ready: CREATING", ""},
		{"index list", "nothing can be listed", `"IndexName":"list"`},
	}
	indexes[0].(map[string]any)["IndexStatus"] = "UPDATING" // it can be read
	two, err := r.One(t.Context(), "odd")
	if err != nil || slices.Contains(lacking(two), "index work") {
		t.Errorf("an index whose capacity is changed: %v, %v", lacking(two), err)
	}
	if len(one.Lacks) != len(want) {
		t.Fatalf("it lacks %v", lacking(one))
	}
	for i, l := range one.Lacks {
		if l.What != want[i].what || !strings.Contains(l.Says, want[i].says) ||
			!strings.Contains(l.Command, want[i].command) || (want[i].command == "") != (l.Command == "") {
			t.Errorf("found %+v; expected %+v", l, want[i])
		}
	}
	var refused smithy.APIError
	if !errors.As(one.Lacks[1].Err, &refused) || refused.ErrorCode() != "AccessDeniedException" {
		t.Errorf("what was refused is told as %v", one.Lacks[1].Err)
	}

	indexes[0].(map[string]any)["Projection"] = map[string]any{"ProjectionType": "KEYS_ONLY"}
	if one, err = r.One(t.Context(), "odd"); err != nil || !strings.Contains(one.Lacks[3].Says, "restore again") {
		t.Errorf("an index with other attributes: %+v, %v", one.Lacks[3], err)
	}
}

// TestOneTable: of a table by its name, also an empty one of ours is told, and nothing of others.
func TestOneTable(t *testing.T) {
	payroll := described("payroll", nil)
	payroll["KeySchema"] = []any{map[string]any{"AttributeName": "person", "KeyType": "HASH"}}
	_, r := begin(t, described("archive", nil), described("new", nil), payroll)
	if one, err := r.One(t.Context(), "new"); err != nil || one.Name != "new" || !one.Moment.IsZero() {
		t.Errorf("an empty table is %+v, %v", one, err)
	}
	if one, err := r.One(t.Context(), "payroll"); !fault.Is(err, fault.Conflict) || one.Name != "" {
		t.Errorf("a table of others: %+v, %v", one, err)
	}
	if _, err := r.One(t.Context(), "none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a table that is not there: %v", err)
	}
}

// TestBounds: an account with many tables costs a bounded number of requests, and that is said. What is refused of some
// tables does not hide the others; that the list is refused is an error.
func TestBounds(t *testing.T) {
	a, r := begin(t, described("archive", nil), described("archive-restored", summary(false, "archive", "")))
	for i := range restored.MostTables + 20 {
		name := fmt.Sprintf("b-%03d", i)
		a.tables[name] = described(name, nil)
	}
	a.refuse["DescribeTable b-001"] = true
	found, err := r.All(t.Context())
	if err != nil || len(found.Tables) != 1 || !found.More || found.Looked != restored.MostTables {
		t.Fatalf("found %+v, %v", found, err)
	}
	if found.Unread != 1 || found.Err == nil || a.asked["DescribeTable"] != restored.MostTables {
		t.Errorf("unread %d (%v) after %v", found.Unread, found.Err, a.asked)
	}

	a, r = begin(t, described("archive", nil))
	a.refuse["ListTables"] = true
	var refused smithy.APIError
	if _, err := r.All(t.Context()); !errors.As(err, &refused) || refused.ErrorCode() != "AccessDeniedException" {
		t.Errorf("a list that is refused: %v", err)
	}
	delete(a.refuse, "ListTables") // what failed is not kept
	ctx, cancel := context.WithCancel(t.Context())
	a.listed = cancel // nor is what its caller did not wait for
	if found, err := r.All(ctx); err == nil && found.Unread == 0 {
		t.Errorf("cancelled: %+v", found)
	}
	if found, err := r.All(t.Context()); err != nil || found.Unread > 0 {
		t.Errorf("after one that was cancelled: %+v, %v", found, err)
	}
	if _, err := r.All(t.Context()); err != nil {
		t.Error(err)
	}
}
