package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/events"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
)

// TestMissingGrantIsReportedAndSurvived: a function that lacks a grant is refused the call,
// says which, and goes on when it has the grant again. So each function runs with its own
// role, and this lane can fail.
func TestMissingGrantIsReportedAndSurvived(t *testing.T) {
	begin(t)
	// One call of each stage's step.
	broken := []struct{ stage, operation string }{{"unpack", "PutObject"}, {"estimate", "PutObject"},
		{"download", "PutObject"}, {"process", "PutObject"},
		{"store", "PutObject"}, {"record", "GetObject"}, {"notify", "DeleteObject"}, {"report", "PutObject"}}
	if len(broken) != len(ingest.Stages) {
		t.Fatalf("%d stages are looked at, there are %d", len(broken), len(ingest.Stages))
	}
	var restore []func()
	for _, b := range broken {
		restore = append(restore, removeGrant(t, b.stage, "s3:"+b.operation))
	}
	src := newSource(t)
	src.put("/granted.txt", []byte("granted content"))
	src.manifest(t, "/granted.checkm", src.row("/granted.txt"))
	row := src.row("/granted.checkm")
	row.Local = []string{"granted"}
	batch, _ := submit(t, src.list(t, "/batch.checkm", "mrt-batch-manifest", []checkm.Row{row}...), "")
	job := ingest.JobID(batch, 1)
	for i, b := range broken {
		until(t, b.stage+" is refused "+b.operation, soon, func() bool {
			said := batchOf(t, batch).Message
			if ingest.Stages[i].Job != "" {
				said = jobOf(t, job).Message
			}
			return strings.Contains(said, "refused "+b.operation)
		})
		restore[i]()
	}
	until(t, "the batch completes", soon, func() bool { return batchOf(t, batch).State == "Completed" })
	t.Run("scheduler", func(t *testing.T) { refused(t, "scheduler", "dynamodb:Query", "scheduler.minute.json") })
	t.Run("api", func(t *testing.T) { refused(t, "api", "dynamodb:GetItem", "api.request.json") })
	t.Run("admin", func(t *testing.T) { refused(t, "admin", "dynamodb:GetItem", "admin-action.requeue.json") })
}

// refused invokes a function without one of its grants.
func refused(t *testing.T, name, action, event string) {
	ticking.Store(false)
	defer ticking.Store(true)
	payload, err := events.Files.ReadFile(event)
	if err != nil {
		t.Fatal(err)
	}
	const headers = `"multiValueHeaders": {` // of a request of the API, which needs a token
	token := headers + `"Authorization": ["Bearer ` + tokens.admin + `"], `
	payload = bytes.Replace(payload, []byte(headers), []byte(token), 1)
	function := functionOf(t, name)
	call := func() string {
		r, err := lambda.NewFromConfig(cfg).Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &function,
			Payload: payload, LogType: lambdatypes.LogTypeTail})
		if err != nil {
			t.Fatal(err)
		}
		log, err := base64.StdEncoding.DecodeString(aws.ToString(r.LogResult))
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Payload) + string(log)
	}
	says := "not authorized to perform: " + action
	withoutGrant(t, name, action, func() {
		if said := call(); !strings.Contains(said, says) {
			t.Errorf("without %s it says %s", action, said)
		}
	})
	// The emulator may show the end of the former call's log with this one.
	until(t, name+" is no longer refused "+action, soon, func() bool {
		return !strings.Contains(call(), "not authorized")
	})
}

// TestContentLinksAreLimited: a link to content is valid for one method, one key and a
// limited time.
func TestContentLinksAreLimited(t *testing.T) {
	begin(t)
	src := newSource(t)
	_, job := submit(t, src.put("/signed.txt", []byte("signed content")), "file", "signed")
	j := ends(t, job, "Completed", soon)
	_, _, link := fetched(t, http.MethodGet, out.APIURL+v1.ObjectPath(j.Identifiers.Primary)+
		"/versions/1/content?path=producer/signed.txt")
	if status, body, _ := fetched(t, http.MethodGet, link); status != http.StatusOK || body != "signed content" {
		t.Fatalf("the link %q gives %d %s", link, status, body)
	}
	at, _, _ := strings.Cut(link, "?")
	key, err := url.PathUnescape(strings.TrimPrefix(at, out.EndpointURL+"/"+out.StorageBucket+"/"))
	if err != nil {
		t.Fatal(err)
	}
	presigned := func(ago time.Duration) string {
		signer := s3.NewPresignClient(buckets(), func(o *s3.PresignOptions) {
			o.Expires = 2 * time.Minute
			asS3 := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }
			o.Presigner = past{v4.NewSigner(asS3), ago}
		})
		p, err := signer.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: &out.StorageBucket, Key: &key})
		if err != nil {
			t.Fatal(err)
		}
		return p.URL
	}
	for _, c := range []struct {
		what, method, link string
		status             int
		says               string
	}{
		{"another method", http.MethodHead, link, http.StatusForbidden, ""},
		{"a deletion", http.MethodDelete, presigned(0), http.StatusForbidden, "SignatureDoesNotMatch"},
		{"a write", http.MethodPut, presigned(0), http.StatusForbidden, "SignatureDoesNotMatch"},
		{"another key", http.MethodGet, strings.Replace(link, "signed.txt", "other.txt", 1), http.StatusForbidden,
			"SignatureDoesNotMatch"},
		{"a link before its end", http.MethodGet, presigned(time.Minute), http.StatusOK, "signed content"},
		{"a link after its end", http.MethodGet, presigned(3 * time.Minute), http.StatusForbidden,
			"Request has expired"},
		{"no signature", http.MethodGet, at, http.StatusForbidden, "AccessDenied"},
	} {
		if onCore() && c.link == at {
			continue // LocalStack's core checks signatures, but lets in who has none
		}
		if status, body, _ := fetched(t, c.method, c.link); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s gives %d %s", c.what, status, body)
		}
	}
}

// past signs as if it were earlier.
type past struct {
	s3.HTTPPresignerV4
	ago time.Duration
}

func (p past) PresignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string,
	at time.Time, opts ...func(*v4.SignerOptions)) (string, http.Header, error) {
	return p.HTTPPresignerV4.PresignHTTP(ctx, c, r, hash, service, region, at.Add(-p.ago), opts...)
}

// fetched is what one request gives, without redirects.
func fetched(t *testing.T, method, link string) (status int, body, location string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(link, out.APIURL) { // signed links have none
		req.Header.Set("Authorization", "Bearer "+tokens.admin)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header.Get("Location")
}
