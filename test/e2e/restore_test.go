package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// restoredTable is the name of the restored table.
const restoredTable = "archivist-restored"

// on deploys the system on a table; "" is the data stack's own.
func on(t *testing.T, table string) {
	t.Helper()
	stack.Context["table"] = table
	if table == "" {
		delete(stack.Context, "table")
	}
	o, err := stack.Deploy(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	out = o
	if table != "" && out.TableName != table {
		t.Fatalf("the system works on %s", out.TableName)
	}
}

// reindexAll is `archivist object reindex --all`.
func reindexAll(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(stack.Root, "dist", "archivist"), "object",
		"reindex", "--all")
	cmd.Env = append(os.Environ(), "ARCHIVIST_API="+out.APIURL, "XDG_CACHE_HOME="+t.TempDir())
	said, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 4 { // 4: objects that other tests left incomplete
		t.Fatalf("reindex: %v\n%s", err, said)
	}
	return string(said)
}

// kept is the part of a job's result that must be the same after a restore.
type kept struct {
	ark     string
	version int
}

func keptBy(j v1.Job) kept { return kept{j.Identifiers.Primary, j.Version} }

// TestArchiveSurvivesLossOfItsTable follows docs/restore.md: the table goes back to an earlier moment under
// another name, and the storage root, the work files and the executions do not. Then
// the table is lost altogether.
func TestArchiveSurvivesLossOfItsTable(t *testing.T) {
	begin(t)
	own := out.TableName
	defer func() {
		if out.TableName != own {
			on(t, "")
		}
	}()
	src := newSource(t)
	for path, text := range map[string]string{"/one.txt": "one", "/two.txt": "two", "/held.txt": strings.Repeat("held",
		100_000), "/alone.txt": strings.Repeat("alone", 100_000)} {
		src.put(path, []byte(text))
	}
	_, first := submit(t, src.URL+"/one.txt", "file", "restored")
	ends(t, first, "Completed", soon)
	release := src.hold("/held.txt")
	_, held := submit(t, src.manifest(t, "/held.checkm", src.row("/held.txt")), "object-manifest", "held")
	_, behind := submit(t, src.URL+"/two.txt", "file", "held") // stands in line behind it
	releaseAlone := src.hold("/alone.txt")
	_, alone := submit(t, src.manifest(t, "/alone.checkm", src.row("/alone.txt"), src.row("/one.txt")),
		"object-manifest")
	until(t, "two jobs download", 2*soon, func() bool {
		return inState(t, []string{held, alone}, "Downloading") == 2 &&
			src.underWay() == 2
	})
	_, new := submit(t, src.URL+"/one.txt", "file")

	// MiniStack knows no earlier moments: this is the one.
	db := dynamodb.NewFromConfig(cfg)
	restored := restoredTable
	if _, err := db.RestoreTableToPointInTime(t.Context(),
		&dynamodb.RestoreTableToPointInTimeInput{SourceTableName: &own, TargetTableName: &restored,
			UseLatestRestorableTime: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	tellsRestore(t, restored)
	release()
	releaseAlone()
	before := map[string]kept{}
	for _, job := range []string{first, held, behind, alone, new} {
		before[job] = keptBy(ends(t, job, "Completed", soon))
	}
	_, second := submit(t, src.URL+"/two.txt", "file", "restored") // the restored table knows nothing of these
	_, late := submit(t, src.URL+"/two.txt", "file", "late")
	ends(t, second, "Completed", soon)
	lateARK := ends(t, late, "Completed", soon).Identifiers.Primary
	src.mu.Lock()
	delete(src.files, "/held.txt") // nor can these be fetched again
	delete(src.files, "/alone.txt")
	src.mu.Unlock()

	on(t, restored)
	protect(t, db, restored)
	if said := reindexAll(t); !strings.Contains(said, "restored\t") {
		t.Errorf("the reindex says %s", said)
	}
	for job, prev := range before {
		if now := keptBy(ends(t, job, "Completed", 2*soon)); now != prev {
			t.Errorf("job %s was %+v, is %+v", job, prev, now)
		}
	}
	_, next := submit(t, src.URL+"/one.txt", "file", "late")
	if j := ends(t, next, "Completed", soon); keptBy(j) != (kept{lateARK, 2}) {
		t.Errorf("the next version of %s is %+v", lateARK, keptBy(j))
	}
	validStorage(t)

	lost(t, db, src, lateARK, before[first].ark)
	backAgain(t, lateARK)
}

// tellsRestore asks what the restored table lacks. MiniStack has no RestoreSummary: so the table is known by its
// indexes, and only by its name.
func tellsRestore(t *testing.T, table string) {
	t.Helper()
	if all, err := client.Restores(t.Context(), ""); err != nil || all.Problem != "" || all.Table != out.TableName {
		t.Errorf("the restores are %+v, %v", all, err)
	}
	one, err := client.Restores(t.Context(), table)
	if err != nil || one.Problem != "" || len(one.Items) != 1 {
		t.Fatalf("the restored table is %+v, %v", one, err)
	}
	var lacks []string
	for _, l := range one.Items[0].Lacks {
		lacks = append(lacks, l.What)
		if l.Unknown {
			t.Errorf("%s: %s", l.What, l.Says)
		}
	}
	want := []string{"time-to-live", "recovery", "stream", "protection"}
	if !slices.Equal(lacks, want) {
		t.Errorf("it lacks %v; expected %v", lacks, want)
	}
}

// lost empties the table: the storage root alone brings the objects back.
func lost(t *testing.T, db *dynamodb.Client, src *source, lateARK, firstARK string) {
	t.Helper()
	empty(t, db, restoredTable)
	if _, err := client.Object(t.Context(), lateARK); err == nil {
		t.Fatal("the table is not empty")
	}
	reindexAll(t)
	_, next := submit(t, src.URL+"/one.txt", "file", "restored") // its newest version is of the other
	if j := ends(t, next, "Completed", soon); keptBy(j) != (kept{firstARK, 3}) {
		t.Errorf("the next version of %s is %+v", firstARK, keptBy(j))
	}
}

// backAgain goes back to the data stack's own table, which knows of one version of an
// object that has two.
func backAgain(t *testing.T, lateARK string) {
	t.Helper()
	on(t, "")
	endRuns(t)
	if o, err := client.Object(t.Context(), lateARK); err != nil || o.Version != 1 {
		t.Errorf("on its own table again: %+v, %v", o, err)
	}
	reindexAll(t) // what was stored meanwhile
	if o, err := client.Object(t.Context(), lateARK); err != nil || o.Version != 2 {
		t.Errorf("after a reindex: %+v, %v", o, err)
	}
}

// endRuns ends the runs of components that were under way when the functions left this table: their executions went on
// with the other table, and have ended there. They would be given up only after the longest time of a round.
func endRuns(t *testing.T) {
	t.Helper()
	all, err := client.Components(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end := v1.ComponentAction{Action: "interrupt", Reason: "its execution went on with the restored table"}
	for _, c := range all {
		_, err := client.ActOnComponent(t.Context(), c.Name, end, "")
		if err != nil && !fault.Is(err, fault.Conflict) { // no run is under way
			t.Fatal(err)
		}
	}
}

// protect sets what a restored table lacks, as docs/restore.md says.
func protect(t *testing.T, db *dynamodb.Client, name string) {
	t.Helper()
	if _, err := db.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("gone"),
			Enabled: aws.Bool(true)}}); err != nil {
		t.Error(err)
	}
	if _, err := db.UpdateContinuousBackups(t.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: &name,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(
			true)}}); err != nil {
		t.Error(err)
	}
	if _, err := db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &name,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages}}); err != nil {
		t.Error(err)
	}
	is, err := db.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil || len(is.Table.GlobalSecondaryIndexes) != 2 {
		t.Errorf("the restored table has %d indexes, %v", len(is.Table.GlobalSecondaryIndexes), err)
	}
}

// empty removes every row of a table.
func empty(t *testing.T, db *dynamodb.Client, name string) {
	t.Helper()
	pages := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: &name,
		ProjectionExpression: aws.String("pk, sk")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for keys := range slices.Chunk(page.Items, 25) { // as many as one call takes
			var all []types.WriteRequest
			for _, key := range keys {
				all = append(all, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}})
			}
			left, err := db.BatchWriteItem(t.Context(),
				&dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{name: all}})
			if err != nil || len(left.UnprocessedItems) > 0 {
				t.Fatal(left, err)
			}
		}
	}
}
