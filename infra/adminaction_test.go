package main

import (
	"strings"
	"testing"

	"archivist/pkg/app/boot"
	"archivist/pkg/ingest/queue"
)

// TestAdminMachine: the state machine admin-action may invoke its function and nothing else,
// has the name by which all functions know it, and gives a page no more time than its
// function has.
func TestAdminMachine(t *testing.T) {
	all := synth(t, production)
	var function, role string
	for id := range of(all, "AWS::Lambda::Function") {
		if strings.HasPrefix(id, "admin") {
			function = id
		}
	}
	for id, m := range of(all, "AWS::StepFunctions::StateMachine") {
		if m.Properties["StateMachineName"] != "Archivist-"+queue.MachineAdmin {
			continue
		}
		if role != "" || !refers(m.Properties["DefinitionSubstitutions"], function) {
			t.Errorf("%s: %v", id, m.Properties)
		}
		for r := range of(all, "AWS::IAM::Role") {
			if refers(m.Properties["RoleArn"], r) {
				role = r
			}
		}
	}
	invokes := 0
	for _, p := range of(all, "AWS::IAM::Policy") {
		doc, _ := p.Properties["PolicyDocument"].(map[string]any)
		for _, st := range list(doc["Statement"]) {
			if !strings.Contains(text(st["Action"]), "lambda:") || !strings.Contains(text(st), function) {
				continue
			}
			invokes++
			if st["Action"] != "lambda:InvokeFunction" || !refers(st["Resource"], function) ||
				!refers(p.Properties["Roles"], role) {
				t.Errorf("%v may do %v", p.Properties["Roles"], st)
			}
		}
	}
	if invokes != 1 {
		t.Errorf("%d statements allow to invoke the function", invokes)
	}
	for id, f := range of(all, "AWS::Lambda::Function") {
		if env := text(f.Properties["Environment"]); !strings.HasPrefix(id, "authorizer") &&
			(!strings.Contains(env, boot.EnvAdminMachine) ||
				!strings.Contains(env, ":stateMachine:Archivist-admin-action")) {
			t.Errorf("%s does not know the state machine: %s", id, env)
		}
	}
}
