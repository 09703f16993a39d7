package main

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/boot/authorizer"
	"archivist/pkg/kernel/access"
)

// Issuer says whose tokens the API takes. The zero value is none.
type Issuer struct {
	URL      string
	Audience string // the audiences of its tokens, separated by commas
	Claim    string // the claims with roles, separated by commas; "" = that of Amazon Cognito
	Client   string // as which the command line signs people in; "" = it does not
	Scopes   string // for which it asks, separated by blanks; "" = the usual ones
}

// keysHaveEnded says what to do to who gives the setting apiKeys of earlier releases.
const keysHaveEnded = "apiKeys: keys of the API have ended; take the setting out, and give each " +
	"holder a token: archivist token create NAME --role ROLE"

// listed is a list of audiences or claims.
var listed = regexp.MustCompile(`^[\x21-\x2b\x2d-\x7e]{1,100}(,[\x21-\x2b\x2d-\x7e]{1,100})*$`)

// client is the id of a client, scopes are some scopes (RFC 6749, appendix A).
var (
	client = regexp.MustCompile(`^[\x21-\x7e]{1,200}$`)
	scopes = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+){0,19}$`)
)

// checkIssuer returns what is wrong with the settings of the issuer.
func (s Settings) checkIssuer() (wrong []error) {
	is := s.Issuer
	if is.URL == "" {
		if is != (Issuer{}) {
			wrong = append(wrong, fmt.Errorf("tokenAudience, tokenClaim, tokenClient, tokenScopes: "+
				"they need tokenIssuer"))
		}
		return wrong
	}

	if err := access.CheckIssuer(is.URL); err != nil {
		wrong = append(wrong, fmt.Errorf("tokenIssuer: %w", err))
	}
	if !listed.MatchString(is.Audience) {
		wrong = append(wrong,
			fmt.Errorf("tokenAudience: found %q; expected audiences of its tokens, "+
				"separated by commas, each of at most 100 characters", is.Audience))
	}
	if is.Claim != "" && !listed.MatchString(is.Claim) {
		wrong = append(wrong,
			fmt.Errorf("tokenClaim: found %q; expected names of claims, separated by commas",
				is.Claim))
	}
	if is.Client != "" && !client.MatchString(is.Client) {
		wrong = append(wrong, fmt.Errorf("tokenClient: found %q; expected the id of a client of the "+
			"issuer that has no secret", is.Client))
	}
	if is.Scopes != "" && (is.Client == "" || !scopes.MatchString(is.Scopes)) {
		wrong = append(wrong, fmt.Errorf("tokenScopes: found %q; expected scopes of tokenClient, "+
			"separated by blanks", is.Scopes))
	}
	return wrong
}

// verifying is the environment of the functions that verify tokens of the issuer.
func (is Issuer) verifying() map[string]*string {
	return set(map[string]string{
		authorizer.EnvIssuer:   is.URL,
		authorizer.EnvAudience: is.Audience,
		authorizer.EnvClaim:    strings.TrimSpace(is.Claim),
	})
}

// signingIn is that of the API, which says in addition where people sign in.
func (is Issuer) signingIn() map[string]*string {
	env := is.verifying()
	maps.Copy(env, set(map[string]string{boot.EnvClient: is.Client, boot.EnvScopes: is.Scopes}))
	return env
}

// set are the variables that have a value.
func set(all map[string]string) map[string]*string {
	env := map[string]*string{}
	for name, value := range all {
		if value != "" {
			env[name] = jsii.String(value)
		}
	}
	return env
}
