package deposit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// request is a PUT of a content, or of a part of it, to the storage.
type request struct {
	of      *work
	url     string // a secret: whoever has it can send the content
	headers map[string]string
	from    int64
	size    int64
	whole   bool
}

// work is a content of the round.
type work struct {
	plan.Content
	left int // parts that are not there, also those whose requests the API will name later
}

// request makes a request. refusal is why the storage does not take it, although the content can be sent by another
// one: it has expired, or what it belongs to has ended. The error is one of the file, or of a storage that does not
// answer.
func (s *Sender) request(ctx context.Context, q *request) (refusal string, err error) {
	err = s.Again(ctx, func() (err error) {
		refusal, err = s.try(ctx, q)
		return err
	})
	return refusal, err
}

// stall is how long the storage may take none of a body, and give no answer.
const stall = 2 * time.Minute

// errStalled ends a request without a sign of life.
var errStalled = errors.New("it has taken nothing for two minutes")

// try makes a request once.
func (s *Sender) try(ctx context.Context, q *request) (refusal string, err error) {
	body, err := q.body(s.Progress)
	if err != nil {
		return "", fault.New(fault.Conflict, "%w", err)
	}
	defer body.stop()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body.alive = time.AfterFunc(stall, func() { cancel(errStalled) })
	defer body.alive.Stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodPut, q.url, body)
	if err != nil {
		return "", fault.New(fault.Unavailable, "the API names a request that cannot be made")
	}
	for name, value := range q.headers {
		req.Header.Set(name, value)
	}
	req.ContentLength = q.size
	if q.size == 0 {
		req.Body = http.NoBody
	}

	client := *s.HTTP
	client.CheckRedirect = notFollowed
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		refusal, err = q.answer(req, resp)
	} else {
		err = unanswered(ctx, req, err)
	}

	sent, broken := body.stop()
	if broken != nil {
		// The file is the cause, and not what the request has become by that.
		refusal, err = "", fault.New(fault.Conflict, "%w", broken)
	}
	if refusal == "" && err == nil && sent != q.size {
		err = fault.New(fault.Unavailable, "the storage at %s has not taken all of %q",
			req.URL.Host, q.of.Name)
	}
	if refusal != "" || err != nil {
		s.Progress.Add(-sent)
	}
	return refusal, err
}

// notFollowed gives a redirect back as the answer: a body is sent to where the API says, and nowhere else.
func notFollowed(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// unanswered is the error of a request without an answer. It does not have the URL, which is a secret.
func unanswered(ctx context.Context, req *http.Request, err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fault.New(fault.Unavailable, "the storage at %s does not answer: %w", req.URL.Host, err)
}

// answer is what the answer of the storage means: nothing if the body is stored.
func (q *request) answer(req *http.Request, resp *http.Response) (refusal string, err error) {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	var said struct{ Code string }
	says := fmt.Sprintf("the storage at %s answers %s", req.URL.Host,
		terminal.Printable(resp.Status))
	if xml.Unmarshal(data, &said) == nil && said.Code != "" {
		says += " (" + terminal.Printable(said.Code) + ")"
	}

	switch status := resp.StatusCode; {
	case status >= 200 && status < 300:
		return "", nil
	case status == http.StatusForbidden || status == http.StatusNotFound ||
		status == http.StatusGone,
		said.Code == "ExpiredToken":
		return says, nil
	case status >= 500 || status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout,
		said.Code == "RequestTimeout", said.Code == "BadDigest":
		return "", fault.New(fault.Unavailable, "%s to %q", says, q.of.Name)
	}
	return "", fault.New(fault.Invalid, "%s to %q; tell the operator", says, q.of.Name)
}

// body opens what the request sends.
func (q *request) body(progress *terminal.Transfer) (*body, error) {
	b := &body{of: q.of.Content, size: q.size, progress: progress}
	if q.whole {
		b.sum = sha256.New()
	}
	if text := q.of.Text; text != nil {
		b.in = io.NewSectionReader(bytes.NewReader(text()), q.from, q.size)
		return b, nil
	}

	file, err := open(q.of.File)
	if err != nil {
		return nil, err
	}
	b.file, b.in = file, io.NewSectionReader(file, q.from, q.size)
	return b, nil
}

// body is the body of a request. If the content is not what it was, its last bytes are held back, so that no storage
// has all of it. The transport may read it while the request has ended already.
type body struct {
	of       plan.Content
	in       io.Reader
	size     int64
	sum      hash.Hash // nil: of a part
	file     *os.File  // nil: of a manifest
	progress *terminal.Transfer
	alive    *time.Timer

	mu      sync.Mutex
	sent    int64
	broken  error
	stopped bool
}

// Read reads.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.stopped:
		return 0, os.ErrClosed
	case b.broken != nil:
		return 0, b.broken
	}

	b.alive.Reset(stall)
	n, err := b.in.Read(p)
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	switch complete := b.sent+int64(n) == b.size; {
	case err != nil && err != io.EOF:
		b.broken = unreadable(b.of.Name, err)
	case complete:
		b.broken = b.check()
	case err == io.EOF:
		b.broken = changed(b.of.File) // it is shorter than it was
	}
	if b.broken != nil {
		return 0, b.broken
	}

	b.sent += int64(n)
	b.progress.Add(int64(n))
	return n, err
}

// check checks that the content is what it was when its digest was computed.
func (b *body) check() error {
	if b.file == nil {
		return nil
	}
	if b.sum != nil && hex.EncodeToString(b.sum.Sum(nil)) != b.of.SHA256 {
		return changed(b.of.File)
	}
	return unchanged(b.of.File, b.file)
}

// Close is called by the transport, perhaps before stop.
func (b *body) Close() error { return nil }

// stop ends the body, and says how much of it was read, and what is wrong with the file.
func (b *body) stop() (sent int64, broken error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped && b.file != nil {
		b.file.Close()
	}
	b.stopped = true
	return b.sent, b.broken
}
