package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/kernel/access"
)

// Issuer says whose tokens the API takes. The zero value is none.
type Issuer struct {
	URL      string
	Audience string // the audiences of its tokens, separated by commas
	Claim    string // the claims with roles, separated by commas; "" = that of Amazon Cognito
}

// issuerOf reads the settings of the issuer.
func issuerOf(context func(name string) string) Issuer {
	return Issuer{
		URL:      context("tokenIssuer"),
		Audience: context("tokenAudience"),
		Claim:    context("tokenClaim"),
	}
}

// listed is a list of audiences or claims.
var listed = regexp.MustCompile(`^[\x21-\x2b\x2d-\x7e]{1,100}(,[\x21-\x2b\x2d-\x7e]{1,100})*$`)

// checkIssuer returns what is wrong with the settings of the issuer.
func (s Settings) checkIssuer() (wrong []error) {
	is := s.Issuer
	if is.URL == "" {
		if is.Audience+is.Claim != "" {
			wrong = append(wrong, fmt.Errorf("tokenAudience, tokenClaim: they need tokenIssuer"))
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
	return wrong
}

// issuer puts the settings of the issuer into the environment of the API.
func (s Settings) issuer(env map[string]*string) {
	for name, value := range map[string]string{boot.EnvIssuer: s.Issuer.URL,
		boot.EnvAudience: s.Issuer.Audience,
		boot.EnvClaim:    strings.TrimSpace(s.Issuer.Claim)} {
		if value != "" {
			env[name] = jsii.String(value)
		}
	}
}
