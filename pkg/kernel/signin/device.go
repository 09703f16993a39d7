package signin

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"archivist/pkg/kernel/fault"
)

// Code is what a person needs to sign in elsewhere: the page, the code to type there, and a URL
// that has both, "" if the issuer has none.
type Code struct {
	URL  string
	Code string
	Both string
}

// byDevice is the type of the grant.
const byDevice = "urn:ietf:params:oauth:grant-type:device_code"

// Device signs a person in with the browser of any machine (RFC 8628): show shows what to do
// there. wait waits between two requests; its error ends the sign-in.
func (i *Issuer) Device(ctx context.Context, show func(Code) error,
	wait func(context.Context, time.Duration) error) (Tokens, error) {
	c, at, err := i.config(ctx)
	if err != nil {
		return Tokens{}, err
	}
	if at.Device == "" {
		return Tokens{}, fault.New(fault.Invalid, "the issuer %s has no sign-in by device", i.URL)
	}
	began := i.Now()
	d, err := c.DeviceAuth(i.context(ctx))
	if err != nil {
		return Tokens{}, i.refused(err)
	}
	if err := show(Code{d.VerificationURI, d.UserCode, d.VerificationURIComplete}); err != nil {
		return Tokens{}, err
	}

	// RFC 8628, section 3.2: 5 s unless the issuer says more.
	each := max(time.Duration(d.Interval)*time.Second, 5*time.Second)
	for i.Now().Sub(began) < time.Hour { // the issuer says when it has expired; if it never does, it ends, too
		if err := wait(ctx, each); err != nil {
			return Tokens{}, err
		}
		t, err := c.Exchange(i.context(ctx), "", oauth2.SetAuthURLParam("grant_type", byDevice),
			oauth2.SetAuthURLParam("device_code", d.DeviceCode))
		if err == nil {
			return i.tokens(t, nil)
		}
		if ctx.Err() != nil {
			return Tokens{}, ctx.Err()
		}

		switch codeOf(err) {
		case "authorization_pending":
		case "slow_down":
			each += 5 * time.Second
		case "": // there was no answer of the issuer: it is asked less often (RFC 8628, section 3.5)
			each *= 2
		case "expired_token":
			return Tokens{}, fault.New(fault.Denied,
				"nobody has signed in within the time of the code; start again")
		default:
			return Tokens{}, i.refused(err)
		}
	}
	return Tokens{}, fault.New(fault.Unavailable, "the issuer %s does not end the sign-in", i.URL)
}

// codeOf is the code of a refusal of the issuer, "" if there was no answer.
func codeOf(err error) string {
	if says, answered := errors.AsType[*oauth2.RetrieveError](err); answered {
		return says.ErrorCode
	}
	return ""
}
