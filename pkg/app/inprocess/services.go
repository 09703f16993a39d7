package inprocess

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/mail"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secrets "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	sestypes "github.com/aws/aws-sdk-go-v2/service/ses/types"
)

// Mail is a mail that was sent.
type Mail struct {
	From    string   // its address
	To      []string // their addresses
	Subject string
	Message []byte // complete, as RFC 5322 has it
}

// services are the twins of SES, Secrets Manager and CloudWatch. Mails and metrics are kept
// in memory for as long as the system lives.
type services struct {
	told func(Mail)

	mu      sync.Mutex
	mails   []Mail
	secrets map[string]string
	sums    map[string]float64 // of metrics, by name
	refused map[string]bool    // senders whose identity was deleted
}

// handle adds the operations of the three services.
func (s *services) handle(o operations) {
	op(o, s.sendMail)
	op(o, s.verify)
	op(o, s.deleteIdentity)
	op(o, s.readSecret)
	op(o, s.createSecret)
	op(o, s.putMetrics)
}

// sendMail is SendRawEmail. Every sender is verified, unless its identity was deleted. told
// is called without the lock, so it may ask for the mails.
func (s *services) sendMail(_ context.Context,
	in *ses.SendRawEmailInput) (*ses.SendRawEmailOutput, error) {
	sent, err := readMail(in.RawMessage.Data)
	if err != nil {
		return nil, &sestypes.MessageRejected{Message: aws.String(err.Error())}
	}

	s.mu.Lock()

	// SES says the same of an address that was never verified; tests use it to let mails
	// fail.
	if s.refused[sent.From] {
		s.mu.Unlock()
		return nil, &sestypes.MessageRejected{Message: aws.String("Email address is not verified: " + sent.From)}
	}

	s.mails = append(s.mails, sent)
	id := fmt.Sprintf("mail-%d", len(s.mails))
	s.mu.Unlock()
	if s.told != nil {
		s.told(sent)
	}
	return &ses.SendRawEmailOutput{MessageId: &id}, nil
}

// readMail reads a complete message. Encoded words of the subject are decoded (RFC 2047).
func readMail(message []byte) (out Mail, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return out, err
	}

	from, err := mail.ParseAddress(m.Header.Get("From"))
	if err != nil {
		return out, fmt.Errorf("header From: %w", err)
	}

	to, err := mail.ParseAddressList(m.Header.Get("To"))
	if err != nil {
		return out, fmt.Errorf("header To: %w", err)
	}

	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	out = Mail{From: from.Address, Subject: subject, Message: message}
	for _, a := range to {
		out.To = append(out.To, a.Address)
	}
	return out, err
}

// verify is VerifyEmailIdentity, which is done at once.
func (s *services) verify(_ context.Context,
	in *ses.VerifyEmailIdentityInput) (*ses.VerifyEmailIdentityOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refused, *in.EmailAddress)
	return &ses.VerifyEmailIdentityOutput{}, nil
}

// deleteIdentity is DeleteIdentity: mails of that sender are refused from now on.
func (s *services) deleteIdentity(_ context.Context,
	in *ses.DeleteIdentityInput) (*ses.DeleteIdentityOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[*in.Identity] = true
	return &ses.DeleteIdentityOutput{}, nil
}

// readSecret is GetSecretValue, by the secret's name.
func (s *services) readSecret(_ context.Context, in *secretsmanager.GetSecretValueInput) (
	*secretsmanager.GetSecretValueOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, there := s.secrets[*in.SecretId]
	if !there {
		return nil, &secrets.ResourceNotFoundException{Message: aws.String("there is no secret " +
			*in.SecretId)}
	}
	return &secretsmanager.GetSecretValueOutput{Name: in.SecretId, SecretString: &value}, nil
}

// createSecret is CreateSecret, of a text.
func (s *services) createSecret(_ context.Context, in *secretsmanager.CreateSecretInput) (
	*secretsmanager.CreateSecretOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.secrets[*in.Name]; there {
		return nil, &secrets.ResourceExistsException{Message: aws.String("there is a secret " +
			*in.Name)}
	}
	s.secrets[*in.Name] = aws.ToString(in.SecretString)
	return &secretsmanager.CreateSecretOutput{Name: in.Name}, nil
}

// putMetrics is PutMetricData. Dimensions are not looked at.
func (s *services) putMetrics(_ context.Context,
	in *cloudwatch.PutMetricDataInput) (*cloudwatch.PutMetricDataOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range in.MetricData {
		s.sums[*d.MetricName] += aws.ToFloat64(d.Value)
	}
	return &cloudwatch.PutMetricDataOutput{}, nil
}
