package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A task definition has its revision, so that another one is run only after a deployment.
var (
	functionARN = regexp.MustCompile(
		`^arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_$-]{1,128})?$`)
	streamARN = regexp.MustCompile(
		`^arn:aws[a-z-]*:dynamodb:[a-z0-9-]+:[0-9]{12}:table/([a-zA-Z0-9_.-]{3,255})/stream/[0-9T:.-]+$`)
	taskARN = regexp.MustCompile(
		`^arn:aws[a-z-]*:ecs:[a-z0-9-]+:[0-9]{12}:task-definition/[A-Za-z0-9_-]{1,255}:[0-9]+$`)
	roleARN   = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,500}$`)
	queuePath = regexp.MustCompile(`/([0-9]{12})/([A-Za-z0-9_-]{1,80})$`)
	queueHost = regexp.MustCompile(`^sqs\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$`)
)

// streamOf is the table of a stream, by its ARN; "" if it is none. It tells that the setting
// tableStream is of the restored table.
func streamOf(arn string) string {
	if m := streamARN.FindStringSubmatch(arn); m != nil {
		return m[1]
	}
	return ""
}

// readTargets reads what consumers may call, separated by commas: ARNs of functions and URLs
// of queues, as definitions of consumers name them. FIFO queues are refused by their names,
// which have a dot.
func (s *Settings) readTargets(text string) (wrong []error) {
	for target := range strings.SplitSeq(text, ",") {
		target = strings.TrimSpace(target)
		if target == "" {
			continue
		}

		if _, ok := s.queueARN(target, ""); !ok && !functionARN.MatchString(target) {
			wrong = append(wrong,
				fmt.Errorf("consumerTargets: found %q; expected ARNs of functions and URLs of "+
					"standard queues, separated by commas", target))
			continue
		}

		s.Targets = append(s.Targets, target)
	}
	return wrong
}

// readTasks reads which containers components may run, separated by commas: ARNs of task
// definitions, each with its revision, and of the roles that these name.
func (s *Settings) readTasks(text string) (wrong []error) {
	for arn := range strings.SplitSeq(text, ",") {
		arn = strings.TrimSpace(arn)
		if arn == "" {
			continue
		}

		if !taskARN.MatchString(arn) && !roleARN.MatchString(arn) {
			wrong = append(wrong,
				fmt.Errorf("componentTasks: found %q; expected ARNs of task definitions of ECS, "+
					"with their revisions, and of the roles of their containers, separated by commas", arn))
			continue
		}

		s.Tasks = append(s.Tasks, arn)
	}
	return wrong
}

// taskARNs are the task definitions that components may run, and the roles of their
// containers. The order is that of the settings.
func (s Settings) taskARNs() (tasks, roles []string) {
	for _, arn := range s.Tasks {
		if taskARN.MatchString(arn) {
			tasks = append(tasks, arn)
		} else {
			roles = append(roles, arn)
		}
	}
	return tasks, roles
}

// targets are the targets as the functions get them.
func (s Settings) targets() string { return strings.Join(s.Targets, ",") }

// queueARN is the ARN of a queue by its URL. region is that of an emulator's queue. Only a
// local stack may have queues at another host than SQS's. The partition follows from the host
// or the region.
func (s Settings) queueARN(text, region string) (arn string, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return "", false
	}

	// The account and the name are the last two parts of the path, wherever the queue is.
	path, host := queuePath.FindStringSubmatch(u.Path), queueHost.FindStringSubmatch(u.Host)
	partition := "aws"
	switch {
	case path == nil || u.RawQuery != "" || u.User != nil:
		return "", false
	case host != nil && u.Scheme == "https" && u.Path == path[0]:
		region = host[1]
		switch {
		case host[2] != "":
			partition = "aws-cn"
		case strings.HasPrefix(region, "us-gov-"):
			partition = "aws-us-gov"
		}
	case !s.Local:
		return "", false
	}
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", partition, region, path[1], path[2]), true
}

// targetARNs are the ARNs of the functions and the queues that consumers may call. region is that
// of an emulator.
func (s Settings) targetARNs(region string) (functions, queues []string) {
	for _, target := range s.Targets {
		if arn, is := s.queueARN(target, region); is {
			queues = append(queues, arn)
		} else {
			functions = append(functions, target)
		}
	}
	return functions, queues
}
