package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"

	"archivist/pkg/app/boot"
)

// templates are the data stack's and the app stack's, as text.
func templates(t *testing.T, s Settings) (data, app string, exports []string) {
	t.Helper()
	d, a := makeStacks(s)
	text := func(stack awscdk.Stack) string {
		b, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	data, app = text(d.Stack), text(a.Stack)
	var outputs struct {
		Outputs map[string]struct{ Export struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(data), &outputs); err != nil {
		t.Fatal(err)
	}
	for _, o := range outputs.Outputs {
		exports = append(exports, o.Export.Name)
	}
	slices.Sort(exports)
	return data, app, exports
}

// TestRestoredTable: the app works on a restored table, index for index, and the data
// stack is the same with and without it: so the way there and the way back are one
// deployment of both stacks each.
func TestRestoredTable(t *testing.T) {
	data, app, exports := templates(t, production)
	restored := production
	restored.Table = "archivist-restored"
	dataThen, appThen, exportsThen := templates(t, restored)
	if data != dataThen || !slices.Equal(exports, exportsThen) {
		t.Errorf("the data stack changes: its exports are %v, and %v with a restored table", exports, exportsThen)
	}
	for _, name := range []string{"RefTable", "TableCD117FA1Arn"} {
		i := slices.IndexFunc(exports, func(e string) bool { return strings.Contains(e, name) })
		if i < 0 || !strings.Contains(app, exports[i]) {
			t.Errorf("the app stack does not import %s of %v", name, exports)
			continue
		}
		if strings.Contains(appThen, exports[i]) {
			t.Errorf("with a restored table the app stack still imports %s", exports[i])
		}
	}
	var then struct{ Resources map[string]resource }
	if err := json.Unmarshal([]byte(appThen), &then); err != nil {
		t.Fatal(err)
	}
	for id, f := range of(then.Resources, "AWS::Lambda::Function") {
		env, _ := f.Properties["Environment"].(map[string]any)
		if vars, _ := env["Variables"].(map[string]any); vars != nil && vars[boot.EnvTable] != "archivist-restored" {
			t.Errorf("%s works on %v", id, vars[boot.EnvTable])
		}
	}
	granted := 0
	for _, id := range slices.Sorted(maps.Keys(of(then.Resources, "AWS::IAM::Policy"))) {
		doc, _ := json.Marshal(then.Resources[id].Properties["PolicyDocument"])
		if !strings.Contains(string(doc), "dynamodb:Query") {
			continue
		}
		granted++
		want := []string{`:table/archivist-restored"`}
		if strings.HasPrefix(id, "scheduler") || strings.HasPrefix(id, "api") {
			want = append(want, ":table/archivist-restored/index/work")
		}
		for _, arn := range want {
			if !strings.Contains(string(doc), arn) {
				t.Errorf("%s grants nothing on %s", id, arn)
			}
		}
	}
	if granted == 0 {
		t.Error("nobody may query the restored table")
	}
}
