// Package opensearch is a search index in a domain of Amazon OpenSearch Service, or any other
// server that has OpenSearch's REST API: "Bulk API", "Search API", "Create index" of the
// OpenSearch 2 documentation. Requests are signed with AWS Signature Version 4 ("Signing HTTP
// requests to Amazon OpenSearch Service").
//
// Writers need no lease. Every document is written with the version of its object's newest
// event, and the domain refuses a version that is older than the one it has (version type
// external_gte).
//
//	x := &opensearch.Index{URL: "https://search-archive-….us-east-1.es.amazonaws.com", Name: opensearch.Objects,
//		Region: "us-east-1", Credentials: cfg.Credentials, HTTP: http.DefaultClient, Now: time.Now}
package opensearch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// Objects is the name of the index of the objects of a deployment.
const Objects = "objects"

// RegionOf is the region of a domain, by its endpoint; "" if the endpoint does not name it. The name of
// a domain's endpoint is NAME.REGION.es.amazonaws.com.
func RegionOf(endpoint string) string {
	_, host, _ := strings.Cut(endpoint, "://")
	if parts := strings.Split(host, "."); len(parts) > 2 && parts[2] == "es" {
		return parts[1]
	}
	return ""
}

// Index is an index of a domain. It is safe for concurrent use.
type Index struct {
	URL         string // of the domain, without a slash at the end
	Name        string // of the index, e.g. "objects"
	Region      string
	Credentials aws.CredentialsProvider // nil: requests are not signed
	HTTP        *http.Client
	Now         func() time.Time

	mu sync.Mutex
	// created is whether this process knows that the index exists.
	created bool
}

// Limits of requests. A domain of small instances accepts 10 MiB ("Quotas").
const (
	maxBulk   = 5 << 20
	maxAnswer = 10 << 20
	readers   = 8 // objects that are read at once
)

// timeout of one request. A gateway waits 29 seconds for the whole call.
const timeout = 20 * time.Second

// Update implements search.Index. The requests are made one after the other, each of maxBulk bytes at
// most unless one document is larger. An error may leave a part of the changes done; the same call
// again is right, since a document of the same version replaces itself.
func (x *Index) Update(ctx context.Context, changed []search.Change, read search.Reader) error {
	if err := x.create(ctx); err != nil {
		return err
	}

	lines := make([][]byte, len(changed))
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, c := range changed {
		g.Go(func() error {
			d, err := read(reading, c.ARK)
			if err != nil {
				return err
			}
			lines[i], err = x.action(c, d)
			return err
		})
	}

	if err := g.Wait(); err != nil {
		return err
	}

	var body []byte
	for _, line := range lines {
		if len(body) > 0 && len(body)+len(line) > maxBulk {
			if err := x.bulk(ctx, body); err != nil {
				return err
			}
			body = nil
		}
		body = append(body, line...)
	}
	return x.bulk(ctx, body)
}

// target names a document of the index and its version in a bulk request.
type target struct {
	ID      string `json:"_id"`
	Version int64  `json:"version"`
	Type    string `json:"version_type"`
}

// action is what a bulk request does with one document: one or two lines. The version is the newest
// that is known, by the change or by the document, and at least 1.
func (x *Index) action(c search.Change, d *search.Document) ([]byte, error) {
	to := target{c.ARK, max(c.Version, 1), "external_gte"}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // ends each value with a line break
	if d == nil {
		err := enc.Encode(map[string]target{"delete": to})
		return b.Bytes(), err
	}

	to.Version = max(to.Version, d.Version)
	err := enc.Encode(map[string]target{"index": to})
	if err != nil {
		return b.Bytes(), err
	}
	err = enc.Encode(d.Body())
	return b.Bytes(), err
}

// bulk sends a bulk request. A conflict means that a newer state was written meanwhile. A bulk request
// succeeds as a whole although single documents failed, so each is looked at. Removing what is not
// there is a success. The first document that failed is an Unavailable.
func (x *Index) bulk(ctx context.Context, body []byte) error {
	if len(body) == 0 {
		return nil
	}

	var answer struct {
		Items []map[string]struct {
			ID     string `json:"_id"`
			Status int    `json:"status"`
			Error  struct {
				Type, Reason string
			} `json:"error"`
		} `json:"items"`
	}

	path := "/" + url.PathEscape(x.Name) + "/_bulk"
	if err := x.send(ctx, http.MethodPost, path, "application/x-ndjson", body,
		&answer); err != nil {
		return err
	}

	for _, item := range answer.Items {
		for op, r := range item {
			done := r.Status < 300 || r.Status == http.StatusConflict ||
				op == "delete" && r.Status == http.StatusNotFound
			if !done {
				return fault.New(fault.Unavailable, "OpenSearch: %s %s: %d %s: %s", op, r.ID,
					r.Status, r.Error.Type,
					r.Error.Reason)
			}
		}
	}
	return nil
}

// create creates the index with its fields, if it does not exist; else it gives it those that are
// new ("Put mapping"). It asks once in a process. Two processes may ask at once: for one of them
// the index exists already, which is as good.
func (x *Index) create(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.created {
		return nil
	}

	err := x.send(ctx, http.MethodPut, "/"+url.PathEscape(x.Name), "application/json",
		[]byte(fields), nil)
	var refused *refusal
	if asRefusal(err, &refused) && refused.Type == "resource_already_exists_exception" {
		err = x.send(ctx, http.MethodPut, "/"+url.PathEscape(x.Name)+"/_mapping",
			"application/json",
			[]byte(`{"properties": {`+added+`}}`), nil)
	}

	x.created = err == nil
	return err
}

// fields are those of search.Body. The texts are normal already; the standard tokenizer splits
// them by Unicode's rules.
const fields = `{"settings": {"analysis": {"analyzer": {"words": {"type": "custom", "tokenizer": "standard"}}}},
"mappings": {"dynamic": false, "properties": {
"title": {"type": "text", "analyzer": "words"}, "creator": {"type": "text", "analyzer": "words"},
"date": {"type": "text", "analyzer": "words"}, "file": {"type": "text", "analyzer": "words"},
"any": {"type": "text", "analyzer": "words"},
"ark": {"type": "keyword"}, "collection": {"type": "keyword"}, "id": {"type": "keyword"}, "day": {"type": "keyword"},
"titlekey": {"type": "keyword"}, "modified": {"type": "long"}, ` + added + `}}}`

// added are the fields that an index of an earlier release may lack.
const added = `"format": {"type": "keyword"}, "kind": {"type": "keyword"}`

// refusal is an error response of the domain. Type is OpenSearch's name of the error, "" if the answer
// was not its own.
type refusal struct {
	Status       int
	Type, Reason string
}

// Error has what the domain says.
func (r *refusal) Error() string {
	return fmt.Sprintf("OpenSearch: %d %s: %s", r.Status, r.Type, r.Reason)
}

// send makes one request, and decodes its answer into out unless that is nil. Every error is an
// Unavailable but one of making the request; that of an error response has a *refusal inside. An answer
// is read up to maxAnswer bytes; a longer one is cut, and then is not JSON.
func (x *Index) send(ctx context.Context, method, path, media string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(x.URL, "/")+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}

	r.Header.Set("Content-Type", media)
	if err := x.sign(ctx, r, body); err != nil {
		return fault.New(fault.Unavailable, "OpenSearch: sign the request: %w", err)
	}

	answer, err := x.HTTP.Do(r)
	if err != nil {
		return fault.New(fault.Unavailable, "OpenSearch: %w", err)
	}

	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fault.New(fault.Unavailable, "OpenSearch: %w", err)
	}

	if answer.StatusCode >= 300 {
		var said struct{ Error struct{ Type, Reason string } }
		_ = json.Unmarshal(data, &said) // a gateway's error is not JSON
		refused := &refusal{answer.StatusCode, said.Error.Type, said.Error.Reason}
		return &fault.Error{Kind: fault.Unavailable, Msg: refused.Error(), Err: refused}
	}

	if out == nil {
		return nil
	}

	if err := json.Unmarshal(data, out); err != nil {
		return fault.New(fault.Unavailable, "OpenSearch: its response is not JSON: %w", err)
	}
	return nil
}

// sign adds the signature. The header X-Amz-Content-Sha256 has the digest of the body, which the
// signature covers. Without credentials nothing is signed.
func (x *Index) sign(ctx context.Context, r *http.Request, body []byte) error {
	if x.Credentials == nil {
		return nil
	}

	who, err := x.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}

	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	return v4.NewSigner().SignHTTP(ctx, who, r, hash, "es", x.Region, x.Now())
}

// asRefusal finds the error response in an error. It is false for nil.
func asRefusal(err error, to **refusal) bool { return errors.As(err, to) }
