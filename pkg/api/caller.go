package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// Caller is who makes a request. The header is for the record only: it gives no rights. Those are the
// identity's.
type Caller struct {
	User string `header:"Archivist-User" maxLength:"100"`

	who access.Identity
}

// Resolve takes over who was identified. huma calls it when the request is read.
func (c *Caller) Resolve(ctx huma.Context) []error {
	c.who = identityOf(ctx.Context())
	return nil
}

// role is what the caller may do of actions.
func (c Caller) role() ingest.Role { return roleOf(c.who) }

// mayDo returns a Denied if the caller may not do an action on something that is defined: who defines it is an
// administrator, and so is who deletes it.
func (c Caller) mayDo(action string) error {
	if action != "delete" || c.who.Is(administrator) {
		return nil
	}
	return fault.New(fault.Denied, "%s needs the role administrator; the caller has %s", action,
		has(c.who))
}

// named is an identity in events: the subject of the token, with the name that the issuer knows. Both were verified.
// The quotes keep what people call themselves apart from our own words.
func named(x access.Identity) string {
	switch {
	case x.Subject != "" && x.Name != "":
		return fmt.Sprintf("%s (%q)", x.Subject, x.Name)
	case x.Subject != "":
		return x.Subject
	}
	return nobody
}

// actor is the caller's name in events. The name in the request was not verified, so the actor says that. A call with
// a token has none. The error is an Invalid for a name that no event can have, e.g. with a line break.
func (c Caller) actor() (string, error) {
	who := named(c.who)

	if c.User == "" {
		return who, nil
	}

	if err := ingest.CheckText(v1.UserHeader, c.User, 100); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s (unverified: %q)", who, c.User), nil
}

// keyHeader is the header with the key of a request that can be repeated.
const keyHeader = "Idempotency-Key"

// Repeatable is a request that can be repeated safely with the same key.
type Repeatable struct {
	Key string `header:"Idempotency-Key" maxLength:"190"`
}

// Resolve refuses a blank key. huma calls it when the request is read.
func (Repeatable) Resolve(ctx huma.Context) []error { return blankKey(ctx) }

// blankKey refuses an Idempotency-Key that is there and blank, as a template whose value is missing sends it: who sends
// one relies on it, and the request would be done again when it is repeated.
func blankKey(ctx huma.Context) (out []error) {
	ctx.EachHeader(func(name, value string) {
		if http.CanonicalHeaderKey(name) == keyHeader && strings.TrimSpace(value) == "" {
			out = []error{&huma.ErrorDetail{Location: "header." + keyHeader,
				Message: "expected a key, found a blank; leave the header out if the request has none"}}
		}
	})
	return out
}

// request is the id of the request, "" without a key. The prefix keeps it apart from the ids of
// requests that come in other ways. An Invalid refuses characters that a row cannot have. How long the
// id is known, the service decides that keeps it.
func (r Repeatable) request() (string, error) {
	if r.Key == "" {
		return "", nil
	}
	return "api:" + r.Key, ingest.CheckText(keyHeader, r.Key, 190)
}

// Asking is what all requests have whose body a person writes. RawBody is filled by huma beside the typed body; Resolve
// needs it, because a null is gone after decoding.
type Asking struct {
	Caller
	RawBody []byte
}

// Resolve takes over who was identified, and refuses null in the body: a template whose value is missing would
// otherwise act on more than it names, or hold without an end. huma calls it after it has validated the body, and
// answers 422 with all errors.
func (in *Asking) Resolve(ctx huma.Context) []error {
	in.Caller.Resolve(ctx)
	var body any
	if json.Unmarshal(in.RawBody, &body) != nil {
		return nil // refused already
	}
	return nulls("body", body)
}

// Acting is an Asking that can be repeated.
type Acting struct {
	Asking
	Repeatable
}

// nulls are the errors of the fields in an object that are null. Fields of objects are looked at in
// their order, so that the errors are the same each time; elements of lists are not.
func nulls(path string, value any) (out []error) {
	fields, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := path + "." + name
		if fields[name] == nil {
			out = append(out, &huma.ErrorDetail{Location: at,
				Message: "expected a value, found null; leave the field out if none is wanted"})
		}
		out = append(out, nulls(at, fields[name])...)
	}
	return out
}

// nobody is the actor of requests without a token: on a local stack.
const nobody = "an operator"

// by says who asks for something, and why. The error is an Invalid for a name that cannot be stored.
func (c Caller) by(reason string) (by registry.By, err error) {
	by.Reason, by.Component = reason, "api"
	by.Actor, err = c.actor()
	return by, err
}

// by says who acts, why, and by which request. The error is an Invalid for a name or a key that cannot be stored.
func (in *Acting) by(reason string) (by registry.By, err error) {
	by, err = in.Asking.by(reason)
	if err != nil {
		return by, err
	}
	by.Asks = meaning(in.RawBody)
	by.Request, err = in.request()
	return by, err
}

// meaning is the same for two bodies that say the same, whatever their blanks and the order of their fields.
func meaning(body []byte) string {
	var value any
	if json.Unmarshal(body, &value) == nil {
		body, _ = json.Marshal(value)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}
