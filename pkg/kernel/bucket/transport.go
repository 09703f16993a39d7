package bucket

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"archivist/pkg/kernel/fault"
)

// RoundTrip answers a request for the s3 URL of one of the bucket's objects as a web server would: GET and HEAD, with
// Range and If-Range (RFC 9110, sections 13.1.5 and 14.2). So content of a bucket is fetched as that of a web server.
func (b Bucket) RoundTrip(req *http.Request) (*http.Response, error) {
	key := strings.TrimPrefix(req.URL.Path, "/")
	if req.Method == http.MethodHead {
		out, err := b.Client.HeadObject(req.Context(), &s3.HeadObjectInput{Bucket: &b.Name, Key: &key})
		if err != nil {
			return b.refusal(req, err)
		}
		return object(req, http.StatusOK, http.NoBody, out.ContentLength, out.ETag, out.ContentEncoding,
			out.LastModified), nil
	}

	in := &s3.GetObjectInput{Bucket: &b.Name, Key: &key, Range: header(req, "Range"), IfMatch: header(req, "If-Range")}
	out, err := b.Client.GetObject(req.Context(), in)
	if in.IfMatch != nil && statusOf(err) == http.StatusPreconditionFailed {
		in.Range, in.IfMatch = nil, nil // it has changed: all of it is sent
		out, err = b.Client.GetObject(req.Context(), in)
	}
	if err != nil {
		return b.refusal(req, err)
	}

	status := http.StatusOK
	if out.ContentRange != nil {
		status = http.StatusPartialContent
	}
	resp := object(req, status, out.Body, out.ContentLength, out.ETag, out.ContentEncoding, out.LastModified)
	if out.ContentRange != nil {
		resp.Header.Set("Content-Range", *out.ContentRange)
	}
	return resp, nil
}

// object is the answer that has an object, or a part of it.
func object(req *http.Request, status int, body io.ReadCloser, size *int64, etag, encoding *string,
	modified *time.Time) *http.Response {
	resp := answer(req, status)
	resp.Body, resp.ContentLength = body, aws.ToInt64(size)
	resp.Header.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
	for name, value := range map[string]*string{"ETag": etag, "Content-Encoding": encoding} {
		if value != nil && *value != "" && *value != "aws-chunked" {
			resp.Header.Set(name, *value)
		}
	}
	if modified != nil {
		resp.Header.Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	}
	return resp
}

// refusal is the answer of S3 that is no success. An error without an answer is one of the network.
func (b Bucket) refusal(req *http.Request, err error) (*http.Response, error) {
	status := statusOf(err)
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket":
		return nil, fault.New(fault.Invalid, "there is no bucket %s", b.Name)
	case status == http.StatusMovedPermanently || status == http.StatusTemporaryRedirect:
		return nil, fault.New(fault.Invalid,
			"the bucket %s is in another region than this deployment; S3 is asked "+
				"in the deployment's own region only", b.Name)
	case status < http.StatusBadRequest:
		return nil, b.wrap("get", strings.TrimPrefix(req.URL.Path, "/"), err)
	}
	resp := answer(req, status)
	resp.Body = http.NoBody
	return resp, nil
}

// statusOf is the HTTP status of an error that S3 answered; 0 of any other error.
func statusOf(err error) int {
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) {
		return resp.HTTPStatusCode()
	}
	return 0
}

func answer(req *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req}
}

func header(req *http.Request, name string) *string {
	if value := req.Header.Get(name); value != "" {
		return &value
	}
	return nil
}
