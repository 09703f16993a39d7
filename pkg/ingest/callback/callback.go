// Package callback notifies a depositor's server with a signed POST that a version is
// preserved. Without a key it is not signed.
//
// A callback is delivered at least once: it is sent again after a failure, and also
// if only the response was lost. The field id is the same each time. The receiver
// computes the signature of the body with the shared key, compares it with the one in
// the header Archivist-Signature, and refuses an old time:
//
//	Archivist-Signature: t=1764547200,v1=5f2c…
//
// The same rules as for sources hold for its URL: public addresses only. A redirect is not
// followed, because the signed content is for one receiver.
package callback

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// TypePreserved is the type of a Preserved.
const TypePreserved = "job.preserved"

// Preserved is the notification that a job's version is preserved.
type Preserved struct {
	ID              string   `json:"id"`   // the same for each delivery
	Type            string   `json:"type"` // TypePreserved
	Job             string   `json:"job"`
	Batch           string   `json:"batch"`
	Collection      string   `json:"collection"`
	ARK             string   `json:"ark"`
	Version         int      `json:"version"`
	NoChange        bool     `json:"noChange"`
	LocalIDs        []string `json:"localIds"`
	Files           int      `json:"files"`
	Bytes           int64    `json:"bytes"`
	InventoryDigest string   `json:"inventoryDigest"` // sha512 of the OCFL inventory
}

// SignatureHeader carries the signature of a callback.
const SignatureHeader = "Archivist-Signature"

// Sign returns the signature of a callback's body: "t=<seconds>,v1=<hex>", where
// v1 is HMAC-SHA256 over "<seconds>.<body>". The time is signed, too: else an old callback could be
// sent again by anybody who has seen it.
func Sign(key string, body []byte, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// Sender sends callbacks.
type Sender struct {
	Fetch *fetch.Client // its guard and its retries apply to callbacks, too
	Now   func() time.Time
}

// timeout limits one try: all tries must fit into the time-out of a function.
const timeout = 8 * time.Second

// maxAnswer is how much of a response is read, so that the connection can be reused.
const maxAnswer = 64 << 10

// Same reports whether two URLs name the same receiver, however they are written.
func Same(a, b string) bool { return canonical(a) == canonical(b) }

// canonical is the one form of a URL: host in lower case, no default port of https, no empty path, no fragment. A URL
// that cannot be parsed is its own.
func canonical(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	u.Host, u.Fragment, u.RawFragment = strings.ToLower(u.Host), "", ""
	if u.Scheme == "https" {
		u.Host = strings.TrimSuffix(u.Host, ":443")
	}
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// Send posts p to a URL, signed with a key at each try, "" for none, and expects a success. tries
// are the requests. The error is Invalid when another try cannot help, else Unavailable. It names
// the host only: the path of such a URL is often a secret.
func (s Sender) Send(ctx context.Context, to, key string, p Preserved) (tries int, err error) {
	body, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("callback: %w", err)
	}

	site := fetch.Site(to)
	err = s.Fetch.Retry(ctx, site, func() error {
		tries++
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
		if err != nil {
			return fault.New(fault.Invalid, "the URL of the callback cannot be parsed")
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", s.Fetch.UserAgent)
		if key != "" {
			// At each try, since receivers refuse an old time.
			req.Header.Set(SignatureHeader, Sign(key, body, s.Now()))
		}
		return s.post(site, req)
	})
	return tries, err
}

// post sends one request. Any status but 2xx is an error, a redirect (3xx) as well.
func (s Sender) post(site string, req *http.Request) error {
	direct := *s.Fetch.HTTP
	direct.CheckRedirect = func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}

	direct.Timeout = timeout

	resp, err := direct.Do(req)
	if err != nil {
		return err
	}

	defer resp.Body.Close()

	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fetch.NewStatusError(site, resp)
	}
	return nil
}
