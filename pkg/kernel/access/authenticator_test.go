package access

import (
	"context"
	"errors"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
)

// says accepts each token, as the identity of a subject.
type says string

func (s says) Verify(context.Context, string) (Identity, error) {
	return Identity{Subject: string(s)}, nil
}

// away does not answer.
type away struct{}

func (away) Verify(context.Context, string) (Identity, error) {
	return Identity{}, fault.New(fault.Unavailable, "away")
}

// TestAuthenticator: a token is verified by those whose it is, and by nobody else. Nobody of the issuer is taken for a
// token of our own.
func TestAuthenticator(t *testing.T) {
	both := Authenticator{Issuer: says("ann"), Tokens: says("token:1")}
	for _, c := range []struct {
		a       Authenticator
		token   string
		subject string
		refused string
	}{
		{both, "eyJ", "ann", ""},
		{both, "", "ann", ""},
		{both, "ARC_1_2", "ann", ""},
		{both, " arc_1_2", "ann", ""},
		{both, "arc_1_2", "token:1", ""},
		{both, "arc_", "token:1", ""},
		{Authenticator{Issuer: both.Issuer}, "arc_1_2", "", "no tokens that begin with arc_"},
		{Authenticator{Tokens: both.Tokens}, "eyJ", "", "no issuer of tokens"},
		{Authenticator{}, "eyJ", "", "no issuer of tokens"},
		{Authenticator{Issuer: says("token:1"), Tokens: says("")}, "eyJ", "", "begins with token:"},
		{Authenticator{Issuer: says("schedule")}, "eyJ", "", "a part of the system"},
		{Authenticator{Issuer: says("archivist")}, "eyJ", "", "a part of the system"},
		{Authenticator{Issuer: says("component:fixity-check")}, "eyJ", "", "a part of the system"},
		{Authenticator{Issuer: says("Schedule")}, "eyJ", "Schedule", ""},
	} {
		x, err := c.a.Verify(t.Context(), c.token)
		if x.Subject != c.subject || errors.Is(err, ErrUnauthenticated) != (c.refused != "") ||
			err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%q: %+v, %v; expected %q or %q", c.token, x, err, c.subject, c.refused)
		}
		if x.OwnToken() != (c.subject == "token:1") {
			t.Errorf("%+v is a token of our own: %v", x, x.OwnToken())
		}
	}
	for _, token := range []string{"eyJ", "arc_1_2"} {
		_, err := Authenticator{Issuer: away{}, Tokens: away{}}.Verify(t.Context(), token)
		if !fault.Is(err, fault.Unavailable) || errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %v", token, err)
		}
	}
}
