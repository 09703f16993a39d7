package localstack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// platform are the lines that Lambda itself logs for each call, beside what the function logs.
var platform = regexp.MustCompile(`^(START|END|REPORT|INIT_START) `)

// Logs are the lines that a function on the local AWS has logged, in the order of time: none if it was not
// called yet. Its log group is read ("FilterLogEvents" in the CloudWatch Logs API reference); the emulator sends
// all of it. The request is made by hand and signed: one call is not worth another module of the SDK.
func (s *Stack) Logs(ctx context.Context, name string) (lines []string, err error) {
	query, err := json.Marshal(map[string]string{"logGroupName": s.logGroup(ctx, name)})
	if err != nil {
		return nil, err
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Endpoint()+"/",
		bytes.NewReader(query))
	if err != nil {
		return nil, err
	}

	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	// The protocol of this service is AWS JSON 1.1: the operation is in a header, not in the path.
	r.Header.Set("X-Amz-Target", "Logs_20140328.FilterLogEvents")
	keys, err := Root.Retrieve(ctx)
	if err != nil {
		return nil, err
	}

	// The signature is over the digest of the body (Signature Version 4).
	sum := sha256.Sum256(query)
	hash := hex.EncodeToString(sum[:])
	if err := v4.NewSigner().SignHTTP(ctx, keys, r, hash, "logs", Region, time.Now()); err != nil {
		return nil, err
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}

	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}

	// The group comes into being with the first line.
	if noGroup(resp, body) {
		return nil, nil
	}

	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the logs of %s: %s: %s", name, resp.Status, body)
	}

	var found struct{ Events []struct{ Message string } }
	if err := json.Unmarshal(body, &found); err != nil {
		return nil, fmt.Errorf("the logs of %s: %w", name, err)
	}

	for _, e := range found.Events {
		if !platform.MatchString(e.Message) {
			lines = append(lines, strings.TrimRight(e.Message, "\n"))
		}
	}
	return lines, nil
}

// noGroup reports whether the answer is that there is no such log group. A line of a log can name the same exception.
func noGroup(resp *http.Response, body []byte) bool {
	return resp.StatusCode != http.StatusOK && bytes.Contains(body, []byte("ResourceNotFoundException"))
}

// logGroup is the log group of a function: its own, or that which Lambda makes. If the function cannot be looked
// at, it is taken to have the latter.
func (s *Stack) logGroup(ctx context.Context, name string) string {
	functions := lambda.New(lambda.Options{
		Region:       Region,
		BaseEndpoint: aws.String(s.Endpoint()),
		Credentials:  Root,
	})

	known, err := functions.GetFunctionConfiguration(ctx,
		&lambda.GetFunctionConfigurationInput{FunctionName: &name})
	if err == nil && known.LoggingConfig != nil {
		return aws.ToString(known.LoggingConfig.LogGroup)
	}
	return "/aws/lambda/" + name
}
