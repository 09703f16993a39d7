package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
)

// statement is one of a policy that is deployed.
type statement struct {
	Effect    string
	Action    list
	Resource  list
	Condition map[string]map[string]list `json:",omitempty"`
}

// list is a string or several.
type list []string

func (l *list) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*l = list{""}
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]string)(l))
}

type document struct {
	Version   string
	Statement []statement
}

// roles is for the admin: the tests call as the account itself.
func roles() *iam.Client { return iam.NewFromConfig(cfg) }

// everybody names what has a role: the stages, the scheduler, the relay, the consumers, the API,
// the function of admin-action, the machines.
func everybody() []string {
	names := []string{"scheduler", "relay", "consumer", "api", "authorizer", "admin", "ingest-job", "ingest-batch",
		"admin-action",
		"component", "component-run", "pendingwork", "completedwork", "curation", "revisions", "taskcontrol",
		"taskrouter", "task", "task-run"}
	for _, st := range ingest.Stages {
		names = append(names, st.Name)
	}
	return names
}

// functionOf is the full name of a function: of a stage, "scheduler", "api" or "admin".
func functionOf(t *testing.T, name string) string {
	t.Helper()
	full, err := findFunction(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return full
}

func findFunction(ctx context.Context, name string) (string, error) {
	prefix := "Archivist-" + name
	if _, is := ingest.StageNamed(name); is {
		prefix = "Archivist-run" + name
	}
	pages := lambda.NewListFunctionsPaginator(lambda.NewFromConfig(cfg), &lambda.ListFunctionsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return "", err
		}
		for _, f := range page.Functions {
			if strings.HasPrefix(aws.ToString(f.FunctionName), prefix) {
				return *f.FunctionName, nil
			}
		}
	}
	return "", fmt.Errorf("no function %s…", prefix)
}

// roleOf is the name of the role of a function or a state machine.
func roleOf(ctx context.Context, name string) (string, error) {
	if output := map[string]string{"ingest-job": "jobMachine", "ingest-batch": "batchMachine",
		"admin-action": "adminMachine", "component-run": "componentMachine",
		"task-run": "taskMachine"}[name]; output != "" {
		m, err := machines().DescribeStateMachine(ctx,
			&sfn.DescribeStateMachineInput{StateMachineArn: aws.String(out.All[output])})
		if err != nil {
			return "", err
		}
		return path.Base(*m.RoleArn), nil
	}
	function := name
	if name == "task" { // the role of runs, which the router takes
		function = "taskrouter"
	}
	full, err := findFunction(ctx, function)
	if err != nil {
		return "", err
	}
	f, err := lambda.NewFromConfig(cfg).GetFunctionConfiguration(ctx,
		&lambda.GetFunctionConfigurationInput{FunctionName: &full})
	if err != nil {
		return "", err
	}
	if name == "task" {
		return path.Base(f.Environment.Variables[boot.EnvTaskRole]), nil
	}
	return path.Base(*f.Role), nil
}

// policiesOf are the inline policies of a role, by name.
func policiesOf(ctx context.Context, role string) (map[string]document, error) {
	names, err := roles().ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &role})
	if err != nil {
		return nil, err
	}
	all := map[string]document{}
	for _, name := range names.PolicyNames {
		p, err := roles().GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &role, PolicyName: &name})
		if err != nil {
			return nil, err
		}
		text, err := url.QueryUnescape(aws.ToString(p.PolicyDocument))
		if err != nil {
			return nil, err
		}
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", name, err, text)
		}
		all[name] = d
	}
	return all, nil
}

func putPolicies(t *testing.T, role string, all map[string]document) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also while the test is cleaned up
	for name, d := range all {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := roles().PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &role, PolicyName: &name,
			PolicyDocument: aws.String(string(text))}); err != nil {
			t.Fatal(err)
		}
	}
}

// removeGrant takes an action out of the policies of a function (a stage, "scheduler",
// "api") or a state machine. The returned function, which also runs at the end of
// the test, puts it back.
func removeGrant(t *testing.T, name, action string) (restore func()) {
	t.Helper()
	miniStackOnly(t, "LocalStack's core evaluates no policies")
	role, err := roleOf(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	before, err := policiesOf(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	without, found := map[string]document{}, false
	for policy, d := range before {
		left := document{Version: d.Version}
		for _, st := range d.Statement {
			if i := slices.Index(st.Action, action); i >= 0 {
				found = true
				st.Action = slices.Delete(slices.Clone(st.Action), i, i+1)
			}
			if len(st.Action) > 0 {
				left.Statement = append(left.Statement, st)
			}
		}
		without[policy] = left
	}
	if !found {
		t.Fatalf("%s is not granted %s: %+v", name, action, before)
	}
	putPolicies(t, role, without)
	done := false
	restore = func() {
		if !done {
			done = true
			putPolicies(t, role, before)
		}
	}
	t.Cleanup(restore)
	return restore
}

// withoutGrant runs f while a function or a state machine lacks a grant.
func withoutGrant(t *testing.T, name, action string, f func()) {
	t.Helper()
	defer removeGrant(t, name, action)()
	f()
}
