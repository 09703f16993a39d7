package access

import (
	"context"
	"slices"
	"strings"
)

// Verifies verifies a bearer token; a Verifier does it, and so does an Authenticator. An error that is not an
// Unavailable has ErrUnauthenticated, and its text is for the caller.
type Verifies interface {
	Verify(ctx context.Context, token string) (Identity, error)
}

const (
	// TokenPrefix begins the text of each token of our own. No JWT begins so: its first part is an object in base64.
	TokenPrefix = "arc_"
	// TokenSubject begins the subject of who calls with a token of our own; its id follows.
	TokenSubject = "token:"
)

// OwnToken reports whether the identity is that of a token of our own, not of a person or a machine of the issuer.
func (x Identity) OwnToken() bool { return strings.HasPrefix(x.Subject, TokenSubject) }

// machines are the actors in events that are parts of the system, beside those that begin with
// component.
var machines = []string{"system", "archivist", "schedule", "revision-queue", "object-archives",
	"pending-work", "curation"}

// component begins the actors that are components; the name follows.
const component = "component:"

// Machine reports whether an actor of an event is a part of the system. Nobody who calls is: a
// person with such a subject would not be seen among those who did something.
func Machine(actor string) bool {
	return slices.Contains(machines, actor) || strings.HasPrefix(actor, component)
}

// Authenticator verifies the tokens of an issuer, and those of our own. Either field may be nil: the deployment has
// none of these.
type Authenticator struct {
	Issuer Verifies
	Tokens Verifies
}

// Verify returns whose token it is. What begins with TokenPrefix is ours, all else is the issuer's. Nobody of the
// issuer can have a subject like those of our own tokens, or like parts of the system: events and keys of requests are
// told apart by it.
func (a Authenticator) Verify(ctx context.Context, token string) (Identity, error) {
	ours := strings.HasPrefix(token, TokenPrefix)
	switch {
	case ours && a.Tokens == nil:
		return Identity{}, Refused("this deployment has no tokens that begin with " + TokenPrefix)
	case ours:
		return a.Tokens.Verify(ctx, token)
	case a.Issuer == nil:
		return Identity{}, Refused("this deployment has no issuer of tokens")
	}

	x, err := a.Issuer.Verify(ctx, token)
	switch {
	case err != nil:
		return x, err
	case x.OwnToken():
		return Identity{}, Refused("the subject of the token begins with " + TokenSubject +
			", as only those of the deployment's own tokens do")
	case Machine(x.Subject):
		return Identity{}, Refused("the subject of the token is the name of a part of the system: " +
			"the issuer has to give another one (sub)")
	}
	return x, nil
}
