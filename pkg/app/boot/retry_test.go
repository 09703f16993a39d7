package boot

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// answers is an HTTP client of the AWS SDK.
type answers func(*http.Request) (*http.Response, error)

func (a answers) Do(r *http.Request) (*http.Response, error) { return a(r) }

// TestCommitEndsInTime: whatever DynamoDB does, a commit through the SDK as the
// functions have it ends within a minute, before a stage's lease.
func TestCommitEndsInTime(t *testing.T) {
	lease := ingest.Timings["production"].Times(ingest.Stage{}).Lease
	const most = 24 // twelve tries, after each of which one read looks whether it happened
	for name, answer := range map[string]answers{
		"no answer": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"a late error": func(r *http.Request) (*http.Response, error) {
			time.Sleep(9 * time.Second) // of the bubble
			return nil, io.ErrUnexpectedEOF
		},
		"errors": func(r *http.Request) (*http.Response, error) {
			body := `{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"no"}`
			return &http.Response{StatusCode: 500, Header: http.Header{},
				Body: io.NopCloser(bytes.NewReader([]byte(body)))}, nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			counted := answers(func(r *http.Request) (*http.Response, error) {
				asked++
				return answer(r)
			})
			cfg := aws.Config{Region: "us-east-1", HTTPClient: counted,
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
			tb := table.New(dynamo.NewFromIface(authorizer.TableClient(cfg)), "t")
			for n := range 5 {
				began, before := time.Now(), asked
				tx := tb.Begin(fmt.Sprint(n))
				tx.Insert(&table.Head{PK: "a", SK: "b"})
				tx.Insert(&table.Head{PK: "a", SK: "c"})
				if err := tx.Commit(t.Context()); !fault.Is(err, fault.Unavailable) {
					t.Errorf("%s: %v", name, err)
				}
				if took := time.Since(began); took > time.Minute || took >= lease || asked-before < 2 ||
					asked-before > most {
					t.Errorf("%s: %s and %d requests", name, took, asked-before)
				}
			}
		})
	}
}
