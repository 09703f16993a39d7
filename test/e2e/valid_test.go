package e2e

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	v1 "archivist/pkg/api/v1"
)

// validObjects validates the objects of jobs as a storage root of their own.
func validObjects(t *testing.T, jobs ...v1.Job) {
	t.Helper()
	prefixes := map[string]bool{}
	for _, j := range jobs {
		o, err := client.Object(t.Context(), j.Identifiers.Primary)
		if err != nil {
			t.Fatal(err)
		}
		prefixes[o.Stored] = true
	}
	dir := t.TempDir()
	copyOut(t, dir, &s3.ListObjectsV2Input{Delimiter: aws.String("/")}) // the root's own files
	for prefix := range prefixes {
		copyOut(t, dir, &s3.ListObjectsV2Input{Prefix: &prefix})
	}
	validRoot(t, dir, len(prefixes))
}

// validStorage validates all that is in the storage bucket.
func validStorage(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	copyOut(t, dir, &s3.ListObjectsV2Input{})
	validRoot(t, dir, -1)
}

// validRoot validates a storage root in a folder, which has n objects; -1 = any but none.
func validRoot(t *testing.T, dir string, n int) {
	t.Helper()
	found, err := stack.Validate(t.Context(), dir)
	if err != nil {
		t.Error(err)
	}
	if found == 0 || n >= 0 && found != n {
		t.Errorf("the validator found %d objects, expected %d", found, n)
	}
}

// copyOut copies what is listed in the storage bucket to a folder.
func copyOut(t *testing.T, dir string, in *s3.ListObjectsV2Input) {
	t.Helper()
	in.Bucket = &out.StorageBucket
	pages := s3.NewListObjectsV2Paginator(buckets(), in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			download(t, aws.ToString(o.Key), filepath.Join(dir, filepath.FromSlash(aws.ToString(o.Key))))
		}
	}
}

func download(t *testing.T, key, to string) {
	t.Helper()
	got, err := buckets().GetObject(t.Context(), &s3.GetObjectInput{Bucket: &out.StorageBucket, Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
