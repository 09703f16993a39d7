package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot"
	"archivist/pkg/kernel/fault"
)

// TestRevisionNotifierKey: a key with the role of a notifier says that a revision of its archive was committed. It can
// do nothing else, and nobody can without a key.
func TestRevisionNotifierKey(t *testing.T) {
	begin(t)
	a, other := newArchive(t, "notified"), newArchive(t, "unnotified")
	a.commits("[]")
	hook, admin := newKey(t, "hook"), newKey(t, "admin")
	withKeys(t, fmt.Sprintf("administrator=%s,notifier:notified=%s", admin.ID, hook.ID))
	as := func(key string) *v1.Client { return &v1.Client{URL: out.APIURL, HTTP: http.DefaultClient, Key: key} }
	notify := func(c *v1.Client, archive string, n int64) error {
		_, err := c.NotifyRevision(t.Context(), archive, v1.RevisionNotice{Revision: n}, "")
		return err
	}
	until(t, "the API knows the keys", soon, func() bool { return fault.Is(notify(as(""), a.name, 1), fault.Denied) })
	hooks := as(hook.Value)
	if err := notify(hooks, a.name, 1); err != nil {
		t.Errorf("the key cannot notify its archive: %v", err)
	}
	_, listed := hooks.Archives(t.Context())
	_, read := hooks.RevisionPlan(t.Context(), a.name, 1, "")
	_, paused := hooks.ActOnArchive(t.Context(), a.name, v1.ArchiveAction{Action: "pause", Reason: "a test"})
	_, ran := hooks.StartTask(t.Context(), a.name, "index", v1.TaskRun{}, "")
	for what, err := range map[string]error{"notifies another archive": notify(hooks, other.name, 1), "lists": listed,
		"reads": read, "pauses": paused, "runs": ran, "notifies with a key of nobody": notify(as("guessed"), a.name, 1),
		"notifies with the id of a key": notify(as(hook.ID), a.name, 1)} {
		if !fault.Is(err, fault.Denied) {
			t.Errorf("who only notifies %s: %v", what, err)
		}
	}
	if got, err := as(admin.Value).RevisionPlan(t.Context(), a.name, 1, ""); err != nil || got.Revision != 1 {
		t.Errorf("what was notified is %+v, %v", got, err)
	}
	_, err := as(admin.Value).RevisionPlan(t.Context(), other.name, 1, "")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("what was not notified: %v", err)
	}
}

// apiKey is a key of API Gateway.
type apiKey struct{ ID, Value string }

// newKey makes a key ("CreateApiKey" in the API Gateway API reference).
func newKey(t *testing.T, name string) (made apiKey) {
	t.Helper()
	text := fmt.Sprintf(`{"name": %q, "enabled": true}`, name)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, out.EndpointURL+"/apikeys",
		strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	as, err := localstack.Root.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	if err := v4.NewSigner().SignHTTP(t.Context(), as, r, hash, "apigateway", out.Region, time.Now()); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.ID == "" || made.Value == "" {
		t.Fatalf("%s: %+v, %v", resp.Status, made, err)
	}
	return made
}

// withKeys lets the API know keys, until the end of the test.
func withKeys(t *testing.T, keys string) {
	t.Helper()
	name, functions := functionOf(t, "api"), lambda.NewFromConfig(cfg)
	before, err := functions.GetFunctionConfiguration(t.Context(),
		&lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, env map[string]string) {
		if _, err := functions.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &name, Environment: &types.Environment{Variables: env}}); err != nil {
			t.Fatal(err)
		}
	}
	known := maps.Clone(before.Environment.Variables)
	known[boot.EnvKeys] = keys
	set(t.Context(), known)
	t.Cleanup(func() {
		set(context.WithoutCancel(t.Context()), before.Environment.Variables)
		until(t, "the API needs no key", soon, func() bool {
			_, err := client.Archives(context.WithoutCancel(t.Context()))
			return err == nil
		})
	})
}
