package api_test

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/research"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
)

// bounds are the bounds of fields of wire types, with those of the packages that check them once more, since others
// than the API call them, too. What only the API bounds is not here.
var bounds = []struct {
	of     any
	fields string
	tag    string
	most   int
}{
	{v1.ActionOptions{}, "reason", "maxLength", ingest.MaxActionReason},
	{v1.OperationAction{}, "reason", "maxLength", ingest.MaxActionReason},
	{v1.BatchRequest{}, "submitter", "maxLength", ingest.MaxSubmitter},
	{v1.BatchRequest{}, "note", "maxLength", ingest.MaxNote},
	{v1.BatchRequest{}, "notification", "maxItems", ingest.MaxMails},
	{v1.BatchRequest{}, "stopAfterFailures", "maximum", ingest.MaxJobs},
	{v1.Payload{}, "url", "maxLength", ingest.MaxURL},
	{v1.Metadata{}, "who what when where", "maxLength", ingest.MaxMetadata},
	{v1.Identifiers{}, "local", "maxItems", ingest.MaxLocalIDs},
	{v1.CorrectionRequest{}, "who what when", "maxLength", ingest.MaxMetadata},
	{v1.CorrectionRequest{}, "addLocal withdrawLocal", "maxItems", ingest.MaxLocalIDs},
	{v1.CorrectionRequest{}, "reason", "maxLength", ingest.MaxActionReason},
	{v1.Profile{}, "notification", "maxItems", ingest.MaxMails},
	{v1.Profile{}, "defer", "maxItems", collection.MaxDeferred},
	{v1.BatchRequest{}, "callback", "maxLength", ingest.MaxCallback},
	{v1.Callback{}, "url", "maxLength", ingest.MaxURL},
	{v1.Callback{}, "hosts", "maxItems", collection.MaxCallbackHosts},
	{v1.Containers{}, "maxFiles", "maximum", collection.MaxFiles},
	{v1.Containers{}, "maxBytes", "maximum", collection.MaxBytes},
	{v1.Containers{}, "maxRatio", "maximum", collection.MaxRatio},
	{v1.Formats{}, "refuse accept warn", "maxItems", collection.MaxFormats},
	{v1.Sources{}, "allow deny credentials buckets", "maxItems", collection.MaxSources},

	{v1.ComponentDefinition{}, "description", "maxLength", definition.MaxDescription},
	{v1.ComponentDefinition{}, "pastSuccess pastFailure future old types", "maxItems", component.MaxNames},
	{v1.ComponentItems{}, "ids", "maxItems", component.MaxIDs},
	{v1.ComponentTask{}, "subnets", "maxItems", component.MaxSubnets},
	{v1.ComponentTask{}, "securityGroups", "maxItems", component.MaxGroups},
	{v1.ComponentRetry{}, "max", "maximum", component.MaxRetries},
	{v1.ComponentRetry{}, "backoffSeconds", "maximum", component.MaxBackoff},
	{v1.ItemShape{}, "types", "maxItems", component.MaxTypes},
	{v1.ItemShape{}, "parents", "maxItems", component.MaxParents},
	{v1.ItemShape{}, "identifiers", "maxItems", component.MaxIdentifiers},
	{v1.ItemAction{}, "events", "maxItems", component.MaxEventNames},
	{v1.ItemAction{}, "priority", "maximum", component.MaxPriority},
	{v1.ConsumerDefinition{}, "description", "maxLength", definition.MaxDescription},
	{v1.ConsumerDefinition{}, "retries", "minimum", consumer.NoRetries},

	{v1.ResearchDefinition{}, "description", "maxLength", definition.MaxDescription},
	{v1.ResearchDefinition{}, "feeds", "maxItems", research.MaxFeeds},
	{v1.ResearchHello{}, "capacity", "maximum", research.MaxWorkers},
	{v1.ResearchHello{}, "researcher", "maxLength", research.MaxResearcher},
	{v1.ResearchNext{}, "researcher", "maxLength", research.MaxResearcher},
	{v1.ResearchAction{}, "researcher", "maxLength", research.MaxResearcher},
	{v1.ArchiveLocation{}, "url", "maxLength", archive.MaxURL},
	{v1.ArchiveLocation{}, "branch", "maxLength", archive.MaxBranch},
	{v1.ArchiveDefinition{}, "title", "maxLength", revision.MaxTitle},
	{v1.RevisionNotice{}, "transaction", "maxLength", revision.MaxTransaction},
}

// TestBoundsAgree: the API refuses what is beyond the bounds of the package that keeps it, and nothing else.
func TestBoundsAgree(t *testing.T) {
	for _, b := range bounds {
		of := reflect.TypeOf(b.of)
		for name := range strings.FieldsSeq(b.fields) {
			if got := field(of, name).Tag.Get(b.tag); got != strconv.Itoa(b.most) {
				t.Errorf("%s.%s: its %s is %q; the package that checks it has %d", of.Name(), name, b.tag, got, b.most)
			}
		}
	}
}

// TestReasonsAgree: a reason is as long as it is kept: that of an action on a job, or on what is registered.
func TestReasonsAgree(t *testing.T) {
	n := 0
	for name, s := range document(t)["components"].(object)["schemas"].(object) {
		reason, _ := s.(object)["properties"].(object)["reason"].(object)
		most, bounded := reason["maxLength"].(float64)
		if !bounded {
			continue
		}
		n++
		if int(most) != registry.MaxReason && int(most) != ingest.MaxActionReason {
			t.Errorf("%s.reason: at most %v characters", name, most)
		}
	}
	if n < 15 {
		t.Errorf("only %d reasons are bounded", n)
	}
}

// field is the field of a struct with a name in JSON, also one of a struct that it embeds.
func field(of reflect.Type, name string) reflect.StructField {
	for _, f := range reflect.VisibleFields(of) {
		if jsonName(f) == name {
			return f
		}
	}
	return reflect.StructField{}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// TestDefinitionsAgree: a definition has the same JSON here and where it is kept. That it has the same fields, the
// compiler knows, since one is converted to the other.
func TestDefinitionsAgree(t *testing.T) {
	names := func(of reflect.Type) (all []string) {
		for _, f := range reflect.VisibleFields(of) {
			all = append(all, jsonName(f))
		}
		return all
	}
	for here, kept := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[v1.ComponentDefinition](): reflect.TypeFor[component.Definition](),
		reflect.TypeFor[v1.ConsumerDefinition]():  reflect.TypeFor[consumer.Definition](),
		reflect.TypeFor[v1.ResearchDefinition]():  reflect.TypeFor[research.Project](),
	} {
		if a, b := names(here), names(kept); !slices.Equal(a, b) {
			t.Errorf("%s has the fields %q, and %s %q", here, a, kept, b)
		}
	}
}
