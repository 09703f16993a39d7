package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
	"archivist/pkg/revisions/runner"
)

// contained is a deployment that has containers.
func contained(t *testing.T) Settings {
	t.Helper()
	s := production
	s.Revisions = true
	wrong := s.readImages("registry.example.org/vips:8.15, 111122223333.dkr.ecr.eu-west-1.amazonaws.com/book/tex:2",
		"subnet-0abc1234, subnet-0abc1235, sg-0abc1234, public")
	if wrong != nil {
		t.Fatal(wrong)
	}
	return s
}

// TestImages: each wrong setting is named, with what it would have to be.
func TestImages(t *testing.T) {
	for _, c := range []struct{ images, network, says string }{
		{"Vips", "subnet-0abc1234,sg-0abc1234", `"Vips"; expected names of images`},
		{"vips:1", "", "0 subnets and 0 security groups"},
		{"vips:1", "subnet-0abc1234", "1 subnets and 0 security groups"},
		{"vips:1", "subnet-0abc1234,sg-0abc1234,vpc-0abc1234", `"vpc-0abc1234"; expected ids of subnets`},
		{"", "public", "taskImages"},
		{strings.Repeat("a", 1001), "subnet-0abc1234,sg-0abc1234", "1000 bytes"},
		{"a,b,c,d,e,f,g,h,i,j,k", "subnet-0abc1234,sg-0abc1234", "found 11; a deployment can have 10"},
	} {
		s := Settings{Revisions: true}
		wrong := s.readImages(c.images, c.network)
		if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), c.says) {
			t.Errorf("%.40s, %s: %v", c.images, c.network, wrong)
		}
	}
	wrong := (&Settings{}).readImages("vips:1", "subnet-0abc1234,sg-0abc1234")
	if len(wrong) != 1 || !strings.Contains(wrong[0].Error(), "revisionQueue=true") {
		t.Errorf("without a revision queue: %v", wrong)
	}
	_, err := given(map[string]string{"naan": "13030", "alarmMail": "none", "taskImages": "Vips"})
	if err == nil || !strings.Contains(err.Error(), "taskImages") {
		t.Errorf("the settings are not read: %v", err)
	}
}

// TestContainersCostNothingIdle: for containers a deployment has what is charged only while a task runs, and nothing
// of a network.
func TestContainersCostNothingIdle(t *testing.T) {
	count := func(s Settings) map[string]int {
		n := map[string]int{}
		for _, r := range synth(t, s) {
			n[r.Type]++
		}
		return n
	}
	without := production
	without.Revisions = true
	more := count(contained(t))
	for kind, n := range count(without) {
		more[kind] -= n
	}
	maps.DeleteFunc(more, func(_ string, n int) bool { return n == 0 })
	want := map[string]int{"AWS::ECS::Cluster": 1, "AWS::ECS::TaskDefinition": 2, "AWS::IAM::Role": 2,
		"AWS::IAM::Policy": 2, "AWS::Logs::LogGroup": 1}
	if !maps.Equal(more, want) {
		t.Errorf("it has %v, want %v", more, want)
	}
}

// TestContainerDefinitions: the control function knows the task definition of each image, and each runs its image
// with nothing open to the network, and time to end.
func TestContainerDefinitions(t *testing.T) {
	all := synth(t, contained(t))
	env, _ := find(t, all, "AWS::Lambda::Function", "taskcontrol").Properties["Environment"].(map[string]any)
	variables, _ := env["Variables"].(map[string]any)
	var at runner.Containers
	if err := json.Unmarshal([]byte(joined(variables[boot.EnvTaskContainers])), &at); err != nil {
		t.Fatalf("%v: %s", err, text(variables))
	}
	if len(at.Images) != 2 || at.PublicIP != "ENABLED" || len(at.Subnets) != 2 || len(at.SecurityGroups) != 1 ||
		!strings.HasPrefix(at.Cluster, "<") {
		t.Errorf("the control function knows %+v", at)
	}
	images := map[string]string{}
	for id, r := range of(all, "AWS::ECS::TaskDefinition") {
		containers, _ := r.Properties["ContainerDefinitions"].([]any)
		c, _ := containers[0].(map[string]any)
		image, _ := c["Image"].(string)
		images[image] = "<" + id + ">"
		if len(containers) != 1 || c["Name"] != runner.ContainerName || c["PortMappings"] != nil ||
			c["Privileged"] != nil || c["EntryPoint"] != nil || number(c["StopTimeout"]) < 45 ||
			!strings.Contains(text(c["Environment"]), boot.EnvWork) || r.Properties["NetworkMode"] != "awsvpc" {
			t.Errorf("%s: %s", id, text(r.Properties))
		}
	}
	if !maps.Equal(images, at.Images) {
		t.Errorf("there are %v; the control function knows %v", images, at.Images)
	}
}

// joined is a text that the template puts together; a reference is <ID>.
func joined(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var b strings.Builder
		for _, part := range v {
			b.WriteString(joined(part))
		}
		return b.String()
	case map[string]any:
		if parts, is := v["Fn::Join"].([]any); is {
			return joined(parts[1])
		}
		if id, is := v["Ref"].(string); is {
			return "<" + id + ">"
		}
		if parts, is := v["Fn::GetAtt"].([]any); is {
			return "<" + joined(parts[0]) + ">"
		}
	}
	return ""
}

// TestContainersMay: containers may do what the runner may, and nothing else; ECS pulls the images of ECR that the
// settings name, and writes the log; the state machine starts and stops these containers only. Without images there
// are no such grants, but for the rule without which Step Functions makes no state machine that runs containers.
func TestContainersMay(t *testing.T) {
	may := map[string][]string{}
	for _, g := range grants(t, synth(t, contained(t))) {
		for _, action := range g.actions {
			if strings.HasPrefix(action, "xray:") || action == "lambda:InvokeFunction" {
				continue
			}
			who := g.policy[:max(0, len(g.policy)-8)]
			may[who] = append(may[who], action+" "+joined(g.resource)+g.condition)
			if strings.ContainsAny(action, "*?") || g.resource == "*" && action == "ecs:StopTask" {
				t.Errorf("%s may %s on %s", g.policy, action, text(g.resource))
			}
		}
	}
	for _, all := range may {
		slices.Sort(all)
	}
	run, container := may["taskDefaultPolicy"], may["taskcontainerDefaultPolicy"]
	if !slices.Equal(run, container) || len(container) != 5 {
		t.Errorf("runs in the function may %q, containers %q", run, container)
	}
	start := strings.Join(may["taskcontainerstartDefaultPolicy"], "\n")
	for _, part := range []string{"arn:<AWS::Partition>:ecr:eu-west-1:111122223333:repository/book/tex",
		"ecr:GetAuthorizationToken *", "logs:PutLogEvents <taskcontainersLog"} {
		if !strings.Contains(start, part) {
			t.Errorf("ECS may\n%s\nand not %s", start, part)
		}
	}
	if n := len(may["taskcontainerstartDefaultPolicy"]); n != 6 {
		t.Errorf("ECS may %d things:\n%s", n, start)
	}
	machine := strings.Join(may["taskrunRoleDefaultPolicy"], "\n")
	for _, part := range []string{"ecs:RunTask <taskimage", "ecs:StopTask arn:<AWS::Partition>:ecs:",
		":task/<taskcontainers>/*", "StepFunctionsGetEventsForECSTaskRule", "iam:PassRole <taskcontainer",
		`{"iam:PassedToService":"ecs-tasks.amazonaws.com"}`} {
		if !strings.Contains(machine, part) {
			t.Errorf("the machine may\n%s\nand not %s", machine, part)
		}
	}
	s := production
	s.Revisions = true
	ruled, all := false, synth(t, s)
	for _, g := range grants(t, all) {
		if strings.HasPrefix(g.policy, "taskrun") && strings.Contains(strings.Join(g.actions, " "), "ecs:") {
			t.Errorf("without images %s may %v", g.policy, g.actions)
		}
		ruled = ruled || strings.HasPrefix(g.policy, "taskrunRole") && slices.Contains(g.actions, "events:PutRule")
	}
	if !ruled {
		t.Error("without images Step Functions refuses to make the state machine")
	}
	if after := text(find(t, all, "AWS::StepFunctions::StateMachine", "taskrun").DependsOn); !strings.Contains(after,
		`"taskrunRoleDefaultPolicy`) {
		t.Errorf("the state machine is made after %s, and not after its grants", after)
	}
}
