package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// sourceBucket is the one that the deployment may read submitted content from.
const sourceBucket = "e2e-digitisation"

// guarded is a source that wants a password.
func guarded(t *testing.T) *source {
	src := newSource(t)
	open := src.Config.Handler
	src.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "archive" || password != "open sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	})
	return src
}

// TestSources: content comes from a server that wants a password, and from a bucket; another host is refused when it is
// submitted.
func TestSources(t *testing.T) {
	begin(t)
	src := guarded(t)
	u, err := url.Parse(src.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secretsmanager.NewFromConfig(cfg).CreateSecret(t.Context(),
		&secretsmanager.CreateSecretInput{Name: aws.String("archivist/sources/e2e"), SecretString: aws.String(
			`{"host": "` + u.Host + `", "username": "archive", "password": "open sesame"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := buckets().CreateBucket(t.Context(),
		&s3.CreateBucketInput{Bucket: aws.String(sourceBucket)}); err != nil {
		t.Fatal(err)
	}
	if _, err := buckets().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(sourceBucket),
		Key: aws.String("scans/b c.txt"), Body: strings.NewReader("of the bucket")}); err != nil {
		t.Fatal(err)
	}

	putProfile(t, "sourced", v1.Profile{Sources: &v1.Sources{Allow: []string{u.Hostname()},
		Buckets:     []string{sourceBucket},
		Credentials: []v1.Credential{{Host: u.Host, Secret: "archivist/sources/e2e"}}}})
	src.put("/a.txt", []byte("of the server"))
	files := src.manifest(t, "/o.checkm", src.row("/a.txt"),
		checkm.Row{URL: "s3://" + sourceBucket + "/scans/b%20c.txt", Name: "b c.txt", Size: -1})
	objects := src.list(t, "/b.checkm", "mrt-batch-manifest", checkm.Row{URL: files, Name: "o", Size: -1})
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "sourced", Payload: v1.Payload{URL: objects,
		Type: "batch-manifest"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	j := ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
	all, err := client.Files(t.Context(), j.Identifiers.Primary, 1)
	if err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	for _, f := range all {
		sizes[f.Path] = f.Size
	}
	if sizes["producer/a.txt"] != 13 || sizes["producer/b c.txt"] != 13 {
		t.Errorf("the object has %v", sizes)
	}

	// The manifest itself can be in the bucket.
	src.mu.Lock()
	list := string(src.files["/b.checkm"])
	src.mu.Unlock()
	if _, err := buckets().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(sourceBucket),
		Key: aws.String("b.checkm"), Body: strings.NewReader(list)}); err != nil {
		t.Fatal(err)
	}
	b, err = client.Submit(t.Context(), v1.BatchRequest{Collection: "sourced", Payload: v1.Payload{
		URL: "s3://" + sourceBucket + "/b.checkm", Type: "batch-manifest"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	ends(t, ingest.JobID(b.ID, 1), "Completed", soon)

	_, err = client.Submit(t.Context(), v1.BatchRequest{Collection: "sourced", Payload: v1.Payload{
		URL: "https://example.org/a", Type: "file"}}, "")
	if err == nil || !strings.Contains(err.Error(), "payload.url: the host example.org is not one of those") {
		t.Errorf("another host: %v", err)
	}
}
