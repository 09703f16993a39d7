package e2e

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/ingest/queue"
)

// repairs is the metric that the sweep counts.
func repairs(t *testing.T) float64 {
	t.Helper()
	return sumOf(t, cloudwatch.Namespace, queue.Repairs)
}

// sumOf is the sum of a metric in the last hours.
func sumOf(t *testing.T, namespace, name string, of ...cwtypes.Dimension) float64 {
	t.Helper()
	if inProcess() {
		return system.Metric(name)
	}
	got, err := awscloudwatch.NewFromConfig(cfg).GetMetricStatistics(t.Context(),
		&awscloudwatch.GetMetricStatisticsInput{
			Namespace: &namespace, MetricName: &name, Dimensions: of,
			Statistics: []cwtypes.Statistic{cwtypes.StatisticSum},
			StartTime:  aws.Time(time.Now().Add(-2 * time.Hour)), EndTime: aws.Time(time.Now().Add(time.Minute)),
			Period: aws.Int32(10800)})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range got.Datapoints {
		sum += aws.ToFloat64(p.Sum)
	}
	return sum
}

// mails returns the mails to the test's address that say a text, as the local AWS
// keeps them.
func mails(t *testing.T, says string) (found []string) {
	t.Helper()
	for _, text := range sent(t) {
		if strings.Contains(text, strings.ToLower(t.Name())+"@example.org") && strings.Contains(text, says) {
			found = append(found, text)
		}
	}
	return found
}

// sent are the mails that were sent, as the emulator or the process keeps them.
func sent(t *testing.T) (all []string) {
	t.Helper()
	if inProcess() {
		return sentInProcess(t)
	}
	at := "/_ministack/ses/messages"
	if onCore() {
		at = "/_aws/ses"
	}
	resp, err := http.Get(out.EndpointURL + at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var kept struct{ Messages json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&kept); err != nil {
		t.Fatal(err)
	}
	var flat []json.RawMessage
	var byAccount map[string][]json.RawMessage
	if json.Unmarshal(kept.Messages, &flat) != nil && json.Unmarshal(kept.Messages, &byAccount) == nil {
		flat = slices.Concat(slices.Collect(maps.Values(byAccount))...)
	}
	for _, m := range flat {
		all = append(all, string(m))
	}
	return all
}
