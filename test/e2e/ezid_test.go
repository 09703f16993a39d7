package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/ezid/ezidtest"
)

// registry is the EZID of the deployment, and target what its ARKs resolve to.
var registry *ezidtest.Server

const target = "https://archive.example.org"

// TestEZID: the ARK of an object is public with its description; the description follows a correction; the object is
// unavailable when it is withdrawn; a collection that registers nothing has nothing there.
func TestEZID(t *testing.T) {
	begin(t)
	if _, err := secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: aws.String("archivist/ezid"), SecretString: aws.String(registry.Secret())}); err != nil {
		t.Fatal(err)
	}
	src := newSource(t)
	putProfile(t, "registered", v1.Profile{Register: "ezid"})
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "registered",
		Metadata: &v1.Metadata{What: "A: map"},
		Payload:  v1.Payload{URL: src.put("/a.txt", []byte("a")), Type: "file"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	job := ingest.JobID(b.ID, 1)
	ark := ends(t, job, "Completed", soon).Identifiers.Primary
	has := func(status, what string) {
		t.Helper()
		until(t, "EZID has "+status+" "+what, soon, func() bool {
			is := registry.Identifiers()[ark]
			return strings.HasPrefix(is["_status"], status) && strings.Contains(is["erc"], "what: "+what+"\n") &&
				is["_target"] == target+"/"+ark && is["archivist.job"] == job
		})
	}
	has("public", "A: map")
	correct := func(in v1.CorrectionRequest) {
		t.Helper()
		in.Reason = "a test"
		b, err := client.Correct(t.Context(), ark, in, "")
		if err != nil {
			t.Fatal(err)
		}
		ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	}
	correct(v1.CorrectionRequest{What: "A chart"})
	has("public", "A chart")
	correct(v1.CorrectionRequest{Access: "withdraw"})
	has("unavailable", "A chart")
	correct(v1.CorrectionRequest{Access: "reinstate"})
	has("public", "A chart")

	_, other := submitTo(t, "unregistered", src.put("/b.txt", []byte("b")))
	if at := ends(t, other, "Completed", soon).Identifiers.Primary; registry.Identifiers()[at] != nil {
		t.Errorf("%s is registered, although its collection registers nothing", at)
	}
}
