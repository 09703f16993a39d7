package access

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"archivist/pkg/kernel/fault"
)

// The bounds of a token.
const (
	maxToken = 8 << 10     // bytes
	skew     = time.Minute // that clocks may differ
	maxName  = 100         // characters
)

// subjects are the subjects that are accepted: printable ASCII without blanks, as events have them.
var subjects = regexp.MustCompile(`^[\x21-\x7e]{1,200}$`)

// DefaultClaim is the claim with the groups of a user of Amazon Cognito.
const DefaultClaim = "cognito:groups"

// ResourceServer is what stands before a scope of Amazon Cognito that is a grant, with a slash: the id of the resource
// server, which only a client has that may call it. It is among the audiences of such a token, which names none.
const ResourceServer = "archivist"

// Verifier verifies tokens (JWT, RFC 7519) of one OpenID Connect issuer. The fields are set before and not changed;
// the methods can be called concurrently.
type Verifier struct {
	Issuer string // its URL, exactly as in the claim iss
	// Audiences: one of them is in aud. An access token of Cognito has no aud: there it is the client_id, or the
	// resource server of one of the scopes.
	Audiences []string
	Claims    []string // where the grants are; nil = DefaultClaim
	Keys      *Keys    // of the issuer
	Now       func() time.Time
}

// claims are those that are read beside the grants. A token for machines has its client as the subject.
type claims struct {
	jwt.Claims
	ClientID          string `json:"client_id"`
	Scope             string `json:"scope"`
	Use               string `json:"token_use"`
	Name              string `json:"name"`
	PreferredUsername string `json:"preferred_username"`
	Username          string `json:"username"`
}

// Verify returns who a token is for. An error has ErrUnauthenticated if the token is not accepted, and is an
// Unavailable while the issuer does not answer and its keys are needed: then nothing is known of the token.
func (v *Verifier) Verify(ctx context.Context, token string) (x Identity, err error) {
	if len(token) > maxToken {
		return x, Refused("the token is too long: at most 8 KiB are accepted")
	}

	t, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256})
	if err != nil || len(t.Headers) != 1 {
		return x, Refused("the token cannot be read: expected a JWT that is signed with RS256 or ES256")
	}

	head := t.Headers[0]
	keys, err := v.Keys.find(ctx, head.KeyID, jose.SignatureAlgorithm(head.Algorithm))
	if err != nil {
		return x, err
	}

	var all map[string]json.RawMessage
	var is claims
	if !slices.ContainsFunc(keys, func(k jose.JSONWebKey) bool {
		return t.Claims(k.Key, &all,
			&is) == nil
	}) {
		return x, Refused("the signature of the token is wrong, or its claims cannot be read")
	}

	if err := v.check(is); err != nil {
		return x, err
	}
	return v.identity(is, all), nil
}

// audiences are for whom a token is. An access token of Cognito does not say so: it is for its client, and for the
// resource servers of its scopes.
func (is claims) audiences() jwt.Audience {
	if len(is.Audience) > 0 || is.Use != "access" {
		return is.Audience
	}
	aud := jwt.Audience{is.ClientID}
	for scope := range strings.FieldsSeq(is.Scope) {
		if at := strings.LastIndex(scope, "/"); at > 0 {
			aud = append(aud, scope[:at])
		}
	}
	return aud
}

// check refuses claims that are not for us, or not for now.
func (v *Verifier) check(is claims) error {
	aud := is.audiences()
	switch {
	case v.Issuer == "" || is.Issuer != v.Issuer:
		return Refused("the token is of another issuer")
	case !slices.ContainsFunc(v.Audiences, func(a string) bool {
		return a != "" &&
			aud.Contains(a)
	}):
		return Refused("the token is for another audience")
	case is.Expiry == nil:
		return Refused("the token has no end (exp)")
	case !subjects.MatchString(is.Subject):
		return Refused("the token has no subject (sub) of 1 to 200 printable ASCII characters")
	}

	err := is.ValidateWithLeeway(jwt.Expected{Time: v.Now()}, skew)
	switch {
	case errors.Is(err, jwt.ErrExpired):
		return Refused("the token has expired; get a new one")
	case err != nil:
		return Refused("the token is not valid yet; is the clock right?")
	}
	return nil
}

// identity is who the verified claims are about. A name that no event can have is left out.
func (v *Verifier) identity(is claims, all map[string]json.RawMessage) Identity {
	x := Identity{Subject: is.Subject, Expires: is.Expiry.Time().UTC(), Claims: v.claims()}
	for _, name := range []string{is.Name, is.PreferredUsername, is.Username} {
		if x.Name == "" && name != x.Subject && presentable(name) {
			x.Name = name
		}
	}

	for _, claim := range x.Claims {
		for _, entry := range entries(all[claim]) {
			g, err := Parse(strings.TrimPrefix(entry, ResourceServer+"/"))
			if err == nil && !slices.Contains(x.Grants, g) {
				x.Grants = append(x.Grants, g)
			}
		}
	}
	return x
}

// claims are the claims in which grants are looked for.
func (v *Verifier) claims() []string {
	if len(v.Claims) == 0 {
		return []string{DefaultClaim}
	}
	return v.Claims
}

// entries are the texts of a claim: a list, or one text that is separated by blanks. Issuers have other groups, too,
// and other forms of claims: these have no entries.
func entries(claim json.RawMessage) []string {
	var list []string
	if json.Unmarshal(claim, &list) == nil {
		return list
	}
	var text string
	_ = json.Unmarshal(claim, &text) // another form
	return strings.Fields(text)
}

// presentable reports whether a name can be shown in one line.
func presentable(name string) bool {
	n := utf8.RuneCountInString(name)
	return n > 0 && n <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name,
		func(r rune) bool {
			return !unicode.IsPrint(r)
		})
}

// CheckIssuer returns an Invalid if a URL cannot be an issuer: https, or http for an issuer on this machine.
func CheckIssuer(text string) error {
	if _, err := issuerURL(text); err != nil {
		return fault.New(fault.Invalid,
			"found %q; expected the https URL of an OpenID Connect issuer, without a query", text)
	}
	return nil
}
