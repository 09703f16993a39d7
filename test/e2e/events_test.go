package e2e

import (
	"fmt"
	"strings"

	"archivist/localstack"
	"archivist/pkg/app/inprocess"
)

// What consumers may call in these tests: each has its own.
const (
	ruleQueue = "archivist-e2e-rule"
	ownLambda = "archivist-e2e-own"
	pingQueue = "archivist-e2e-queue"
	// stationLambda is the runnable of components.
	stationLambda = "archivist-e2e-station"
)

// targets is the setting consumerTargets: what it names is made later, by the tests.
func targets(s *localstack.Stack) string {
	return strings.Join([]string{functionARN(ownLambda), functionARN(stationLambda),
		queueURL(s, pingQueue)}, ",")
}

func functionARN(name string) string {
	return fmt.Sprintf("arn:aws:lambda:%s:000000000000:function:%s", localstack.Region, name)
}

// queueURL is the URL that a queue has where the system runs.
func queueURL(s *localstack.Stack, name string) string {
	if inProcess() {
		return inprocess.QueueURL(name)
	}
	if s.Core {
		return fmt.Sprintf("%s/queue/%s/000000000000/%s", s.Endpoint(), localstack.Region, name)
	}
	return fmt.Sprintf("%s/000000000000/%s", s.Endpoint(), name)
}
