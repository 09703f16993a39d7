// Package ses sends mail by Amazon SES.
//
// It uses the first version of the SES API: the only one that both emulators have.
// The queue decides when a mail is tried again; This package
// distinguishes the kinds of SES's refusals.
package ses

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/ses/types"
	"github.com/aws/smithy-go"

	"archivist/pkg/kernel/fault"
)

// Mailer sends mail.
type Mailer struct{ Client *ses.Client }

// Send sends a complete RFC 5322 message. It returns an Invalid if SES refuses the message itself
// or one of its addresses, and an Unavailable if a later try may succeed. A mail whose response
// was lost may have been sent, too.
func (m *Mailer) Send(ctx context.Context, message []byte) error {
	in := &ses.SendRawEmailInput{RawMessage: &types.RawMessage{Data: message}}
	_, err := m.Client.SendRawEmail(ctx, in)
	return asFault(err)
}

// asFault turns an error of SES into a message for a batch's history. An error that is not
// SES's stays as it is.
func asFault(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	kind := fault.Unavailable
	var rejected *types.MessageRejected
	if errors.As(err, &rejected) || api.ErrorCode() == "InvalidParameterValue" {
		kind = fault.Invalid
	}
	return &fault.Error{Kind: kind, Msg: api.ErrorCode() + ": " + api.ErrorMessage(), Err: err}
}
