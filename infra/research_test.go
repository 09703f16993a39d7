package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/app/boot"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
)

// researched is a deployment with projects of research.
func researched() Settings {
	s := heard()
	s.readResearch("demo, "+strings.Repeat("long-name-", 4), "")
	return s
}

// longNames are names of projects that are too long together.
var longNames = func() (names []string) {
	for i := range mostProjects {
		names = append(names, fmt.Sprintf("%s-%02d", strings.Repeat("p", mostNames/mostProjects-2), i))
	}
	return names
}()

// TestResearchSettings: names of projects are checked, and no name is there twice; times that do not go
// together are refused when deploying.
func TestResearchSettings(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"researchProjects", "Demo", "lower-case letters"},
		{"researchProjects", "demo, demo", "twice"},
		{"researchProjects", "demo;other", "lower-case letters"},
		{"researchProjects", strings.Repeat("a", 41), "at most 40"},
		{"researchProjects", "a,b,c,d,e,f,g,h,i,j,k", "a deployment can have 10"},
		{"researchProjects", strings.Join(longNames, ","), "together they can have 300"},
		{"researchTimes", "queue=2h", "shorter than the lease"},
		{"researchTimes", "queue=30s", "at least a minute"},
		{"researchTimes", "queue=400h,lease=500h,longest=500h", "at most 336h"},
		{"researchTimes", "rest=2h", "the names are"},
	} {
		context := maps.Clone(enough)
		context[c.name] = c.value
		_, err := given(context)
		if s := fmt.Sprint(err); !strings.Contains(s, c.name) || !strings.Contains(s, c.says) ||
			strings.Contains(s, "\n") {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
	context := maps.Clone(enough)
	context["researchProjects"], context["researchTimes"] = "demo, other", "lease=3h"
	s, err := given(context)
	if err != nil || !slices.Equal(s.Projects, []string{"demo", "other"}) || s.Times.Lease != 3*time.Hour {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestResearchIdles: without a project nothing of research is deployed.
func TestResearchIdles(t *testing.T) {
	for id, r := range synth(t, heard()) {
		name := strings.ToLower(id + text(r.Properties["Environment"]))
		for _, word := range []string{"research", "curat", "pendingwork", "completedwork"} {
			if r.Type != "AWS::S3::BucketPolicy" && strings.Contains(name, word) {
				t.Errorf("%s is deployed: %s", id, name)
			}
		}
	}
}

// TestPendingQueues: each project has a queue of its own, whose name SQS takes, and whose messages expire
// before their leases do. A message that its receiver does not accept comes back before it expires.
func TestPendingQueues(t *testing.T) {
	s := researched()
	s.Times.Queue, s.Times.Lease = 20*time.Minute, 3*time.Hour
	for _, times := range []research.Times{research.Default, s.Times} {
		s.Times = times
		found := 0
		for id, q := range of(synth(t, s), "AWS::SQS::Queue") {
			name, _ := q.Properties["QueueName"].(string)
			if len(name) > 80 { // "CreateQueue"
				t.Errorf("%s: the name has %d characters", id, len(name))
			}
			if !strings.Contains(name, "-pending-work-") {
				continue
			}
			found++
			kept, hidden := secs(q.Properties["MessageRetentionPeriod"]), secs(q.Properties["VisibilityTimeout"])
			if kept != times.Queue || kept >= times.Lease || hidden <= 0 || hidden > kept {
				t.Errorf("%s keeps a message for %s, the lease is %s; it is hidden for %s", id, kept, times.Lease,
					hidden)
			}
			if q.Properties["RedrivePolicy"] != nil {
				t.Errorf("%s has dead letters; what expires is assigned again", id)
			}
		}
		if found != 2 {
			t.Errorf("%d queues of pending work", found)
		}
	}
}

// TestResearchQueues: a curated record or a report that cannot be handled becomes a dead letter before it
// expires, and is delivered again after the function's time-out. The function answers for each message, so
// one does not keep others back.
func TestResearchQueues(t *testing.T) {
	all := synth(t, researched())
	for queue, function := range map[string]string{"curatedepisodesqueue": "curation", "curatedclipsqueue": "curation",
		"completedworkqueue": "completedwork"} {
		times := queueTimes(t, all, queue, "researchdead")
		times.Timeout = secs(find(t, all, "AWS::Lambda::Function", function).Properties["Timeout"])
		if !times.Redrives() || times.Visibility <= times.Timeout || times.DeadLetter <= times.Retention ||
			times.Retention > longestQueue {
			t.Errorf("%s: %+v", queue, times)
		}
		fed := 0
		for _, m := range of(all, "AWS::Lambda::EventSourceMapping") {
			from, to := text(m.Properties["EventSourceArn"]), text(m.Properties["FunctionName"])
			if strings.Contains(from, `["`+queue) && strings.Contains(to, `"`+function) &&
				text(m.Properties["FunctionResponseTypes"]) == `["ReportBatchItemFailures"]` {
				fed++
			}
		}
		if fed != 1 {
			t.Errorf("%s feeds %s %d times", queue, function, fed)
		}
	}
	pass := find(t, all, "AWS::Lambda::Function", "pendingwork").Properties
	if secs(pass["Timeout"]) >= research.Default.Pass || pass["RecursiveLoop"] != "Allow" {
		t.Errorf("a pass has %v, its lease %s; it wakes itself: %v", pass["Timeout"], research.Default.Pass,
			pass["RecursiveLoop"])
	}
	minute := text(find(t, all, "AWS::Events::Rule", "EachMinute").Properties["Targets"])
	for _, function := range []string{"pendingwork", "curation"} {
		if !strings.Contains(minute, `["`+function) {
			t.Errorf("%s is not started each minute: %s", function, minute)
		}
	}
}

// TestWhoKnowsResearch: the functions that hand out work, and no others, know the projects; those that can
// end a lease or add to the projects know the function that they wake.
func TestWhoKnowsResearch(t *testing.T) {
	for id, f := range of(synth(t, researched()), "AWS::Lambda::Function") {
		env := text(f.Properties["Environment"])
		knows, wakes := strings.Contains(env, boot.EnvResearchProjects), strings.Contains(env, `"`+boot.EnvPendingWork)
		reader := strings.HasPrefix(id, "api") || strings.HasPrefix(id, "curation") ||
			strings.HasPrefix(id, "completedwork")
		if knows != (reader || strings.HasPrefix(id, "pendingwork")) || wakes != reader {
			t.Errorf("%s has %s", id, env)
		}
		if size := environment(f); size > 4096 { // "Lambda quotas"
			t.Errorf("the environment of %s has %d bytes", id, size)
		}
	}
}

// environment is about how many bytes the environment of a function has: what is known when it is deployed
// counts as 100 bytes.
func environment(f resource) (size int) {
	var env struct{ Variables map[string]any }
	_ = json.Unmarshal([]byte(text(f.Properties["Environment"])), &env)
	for name, v := range env.Variables {
		value := text(v)
		size += len(name) + len(value) + 100*strings.Count(value, `{"Ref"`)
	}
	return size
}

// TestResearcherRole: a researcher that receives from the queue of its project can do nothing else, and
// only a principal of the account can be one. The API receives from the queues of all projects.
func TestResearcherRole(t *testing.T) {
	all := synth(t, researched())
	roles, receives := 0, map[string]int{}
	for id, r := range of(all, "AWS::IAM::Role") {
		if strings.HasPrefix(id, "researcher") {
			roles++
			trusts := text(r.Properties["AssumeRolePolicyDocument"])
			if !strings.Contains(trusts, `":iam::",{"Ref":"AWS::AccountId"},":root"`) {
				t.Errorf("%s can be assumed by %s", id, trusts)
			}
		}
	}
	for _, g := range grants(t, all) {
		switch {
		case strings.HasPrefix(g.policy, "researcher"):
			if !slices.Equal(g.actions, receive) || strings.Count(text(g.resource), `["pendingwork`) != 1 {
				t.Errorf("%s may %v on %s", g.policy, g.actions, text(g.resource))
			}
			receives["researcher"]++
		case slices.Contains(g.actions, "sqs:ReceiveMessage") && strings.Contains(text(g.resource), `["pendingwork`):
			receives[strings.ToLower(g.policy[:3])]++
		}
	}
	if roles != 2 || receives["researcher"] != 2 || receives["api"] != 1 || len(receives) != 2 {
		t.Errorf("%d roles, and %v", roles, receives)
	}
}

// TestResearchIsHeard: what goes wrong with research has an alarm, but only where there are projects.
func TestResearchIsHeard(t *testing.T) {
	watched := map[string]bool{}
	all := of(synth(t, researched()), "AWS::CloudWatch::Alarm")
	for _, a := range all {
		name, _ := a.Properties["MetricName"].(string)
		watched[name+text(a.Properties["Dimensions"])] = true
	}
	for _, name := range []string{research.MetricExpired, research.MetricResent, research.MetricQuarantined,
		research.MetricPaused, feed.MetricFailing} {
		if !watched[name+"null"] {
			t.Errorf("the metric %s has no alarm", name)
		}
	}
	dead := slices.ContainsFunc(slices.Collect(maps.Keys(watched)), func(name string) bool {
		return strings.HasPrefix(name, "ApproximateNumberOfMessagesVisible") && strings.Contains(name, `["researchdead`)
	})
	if idle := of(synth(t, heard()), "AWS::CloudWatch::Alarm"); !dead || len(all) != len(idle)+6 {
		t.Errorf("%d alarms, %d without projects; dead letters are heard: %v", len(all), len(idle), dead)
	}
}
