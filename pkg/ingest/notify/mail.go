package notify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
)

// Mail is a message to one recipient. ID is stable: a message that is sent again
// has the same one.
type Mail struct {
	ID      string // of the header Message-ID, without brackets; see MessageID
	From    string
	To      string
	Subject string
	Text    string
	HTML    string
	Attach  []Attachment
}

// Attachment is a file of a message.
type Attachment struct {
	Name string // ASCII
	JSON []byte
}

// MaxAttached limits the attachments, in bytes: SES allows 10 MB after base64.
const MaxAttached = 5 << 20

// MessageID makes the id of a message to a recipient (RFC 5322, section 3.6.4). about
// names the message, in letters, digits, dots and hyphens. The part after the "@" is
// the domain of the sender.
func MessageID(from, to, about string) (string, error) {
	sender, err := netmail.ParseAddress(from)
	if err != nil {
		return "", fmt.Errorf("notify: from %q: %w", from, err)
	}
	bare, err := ascii(sender.Address)
	if err != nil {
		return "", fmt.Errorf("notify: from %w", err)
	}
	sum := sha256.Sum256([]byte(to))
	return about + "." + hex.EncodeToString(sum[:8]) + bare[strings.LastIndex(bare, "@"):], nil
}

// Encode returns the message in MIME form. All text that is not ASCII is encoded.
func (m Mail) Encode(now time.Time) ([]byte, error) {
	msg := mail.NewMsg()
	if err := msg.From(m.From); err != nil {
		return nil, fmt.Errorf("notify: from %q: %w", m.From, err)
	}

	to, err := ascii(m.To)
	if err != nil {
		return nil, fmt.Errorf("notify: to %w", err)
	}

	if err := msg.To(to); err != nil {
		return nil, fmt.Errorf("notify: to %q: %w", m.To, err)
	}

	msg.Subject(m.Subject)
	msg.SetMessageIDWithValue(m.ID)
	msg.SetDateWithValue(now)
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	for _, a := range m.Attach {
		err := msg.AttachReader(a.Name, bytes.NewReader(a.JSON),
			mail.WithFileContentType("application/json"))
		if err != nil {
			return nil, fmt.Errorf("notify: attach %s: %w", a.Name, err)
		}
	}

	var b bytes.Buffer
	_, err = msg.WriteTo(&b)
	return b.Bytes(), err
}
