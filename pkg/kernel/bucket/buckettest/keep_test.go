package buckettest

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// kept opens a twin whose content is in folder, and whose journal is at path.
func kept(t *testing.T, folder, path string) *Twin {
	t.Helper()
	twin := New(folder)
	twin.Small = 100
	if err := twin.Keep(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = twin.Close() })
	return twin
}

func served(t *testing.T, twin *Twin) *s3.Client {
	server := httptest.NewServer(twin)
	t.Cleanup(server.Close)
	return Client(server.URL)
}

var b, large = aws.String("b"), strings.Repeat("large", 100)

// writes are requests, each of which changes something.
func writes(t *testing.T, client *s3.Client) (all []func() error) {
	upload := aws.String("upload1")
	put := func(name, text string) func() error {
		return func() error {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: b, Key: &name,
				Body: strings.NewReader(text)})
			return err
		}
	}
	part := func(n int32, text string) func() error {
		return func() error {
			_, err := client.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: b, Key: aws.String("parts"),
				UploadId: upload, PartNumber: &n, Body: strings.NewReader(text)})
			return err
		}
	}
	return []func() error{put("small", "one"), put("large", large), func() error {
		_, err := client.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: b, Key: aws.String("copy"),
			CopySource: aws.String("b/large")})
		return err
	}, func() error {
		_, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: b,
			Key: aws.String("parts")})
		return err
	}, part(1, large), part(2, "end"), put("small", "two"), func() error {
		_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: b, Key: aws.String("large")})
		return err
	}}
}

// content is everything that a twin has.
func content(t *testing.T, twin *Twin) map[string]string {
	all := map[string]string{}
	for _, name := range twin.Names("") {
		data, there := twin.Object(name)
		if !there {
			t.Errorf("%s cannot be read", name)
		}
		all[name] = string(data)
	}
	for id, parts := range twin.uploads {
		for n, o := range parts {
			all[fmt.Sprint(id, "/", n)] = o.ETag
		}
	}
	return all
}

// TestKeepCutAtEachByte: of a journal that is cut at any byte, the writes that are complete are there.
func TestKeepCutAtEachByte(t *testing.T) {
	folder, path := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	twin := kept(t, folder, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	sizes, states := []int{0, int(info.Size())}, []map[string]string{{}, {}}
	for i, request := range writes(t, served(t, twin)) {
		if err := request(); err != nil {
			t.Fatal(i, err)
		}
		info, err = os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes, states = append(sizes, int(info.Size())), append(states, content(t, twin))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut, copied := filepath.Join(t.TempDir(), "journal"), t.TempDir()
	for n := range len(data) + 1 {
		again := kept(t, linked(t, folder, copied), written(t, cut, data[:n]))
		last := sort.SearchInts(sizes, n+1) - 1
		if got := content(t, again); !reflect.DeepEqual(got, states[last]) {
			t.Fatalf("of %d bytes: %v\nwant %v", n, got, states[last])
		}
		_ = again.Close()
	}
}

// linked makes the files of folder those of to.
func linked(t *testing.T, folder, to string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		at := filepath.Join(to, e.Name())
		if _, missing := os.Stat(at); missing != nil && err == nil {
			err = os.Link(filepath.Join(folder, e.Name()), at)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func written(t *testing.T, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKeepGoesOn: an upload under way is completed after a restart, the next upload has another id, and files that
// nothing has are removed.
func TestKeepGoesOn(t *testing.T) {
	folder, path := t.TempDir(), filepath.Join(t.TempDir(), "journal")
	for i, request := range writes(t, served(t, kept(t, folder, path))) {
		if err := request(); err != nil {
			t.Fatal(i, err)
		}
	}
	stray := filepath.Join(folder, filePrefix+"-stray")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	client := served(t, kept(t, folder, path))
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Errorf("a file of no object is there: %v", err)
	}
	begin := &s3.CreateMultipartUploadInput{Bucket: b, Key: aws.String("more")}
	next, err := client.CreateMultipartUpload(t.Context(), begin)
	if err != nil || *next.UploadId != "upload2" {
		t.Errorf("the next upload: %v, %v", next, err)
	}
	_, err = client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: b,
		Key: aws.String("parts"), UploadId: aws.String("upload1")})
	if err != nil {
		t.Fatal(err)
	}
	twin := kept(t, folder, path)
	if data, _ := twin.Object("b/parts"); !bytes.Equal(data, []byte(large+"end")) {
		t.Errorf("the object of an upload over a restart: %q", data)
	}
	client = served(t, kept(t, folder, path))
	again, err := client.CreateMultipartUpload(t.Context(), begin)
	if err != nil || *again.UploadId != "upload3" {
		t.Errorf("the upload after that: %v, %v", again, err)
	}
}

// TestKeepFails: a write that cannot be kept is refused.
func TestKeepFails(t *testing.T) {
	twin := kept(t, t.TempDir(), filepath.Join(t.TempDir(), "journal"))
	client := served(t, twin)
	if err := twin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := writes(t, client)[0](); err == nil || len(twin.Names("")) != 0 {
		t.Errorf("a write that cannot be kept: %v, %v", err, twin.Names(""))
	}
}
