package ses

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ses"

	"archivist/pkg/aws/awstest"
	"archivist/pkg/kernel/fault"
)

// TestRefusedMail: what SES refuses for good and what may pass are errors of different
// kinds, with SES's own words.
func TestRefusedMail(t *testing.T) {
	for code, want := range map[string]fault.Kind{
		"MessageRejected": fault.Invalid, "InvalidParameterValue": fault.Invalid,
		"Throttling": fault.Unavailable, "AccessDenied": fault.Unavailable,
	} {
		cfg, _ := awstest.Endpoint(t, http.StatusBadRequest, fmt.Sprintf("<ErrorResponse><Error><Type>Sender</Type>"+
			"<Code>%s</Code><Message>it is so</Message></Error></ErrorResponse>", code))
		err := (&Mailer{Client: ses.NewFromConfig(cfg)}).Send(t.Context(), []byte("x"))
		if !fault.Is(err, want) || err.Error() != code+": it is so" {
			t.Errorf("%s became %v of kind %q", code, err, fault.Of(err))
		}
	}
}
