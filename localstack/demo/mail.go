package demo

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

	"archivist/pkg/app/inprocess"
)

// showMail shows a mail on the terminal: whom it is for, its subject, its text, and the names of its
// attachments. It is written at once, so that logs do not come between its lines.
func (d *Demo) showMail(m inprocess.Mail) {
	var text strings.Builder
	fmt.Fprintf(&text, "Mail to %s: %s\n", strings.Join(m.To, ", "), m.Subject)
	body, err := textOf(m.Message)
	if err != nil {
		body = err.Error()
	}
	for line := range strings.SplitSeq(strings.TrimSpace(body), "\n") {
		fmt.Fprintf(&text, "  | %s\n", strings.TrimRight(line, "\r"))
	}
	_, _ = io.WriteString(d.out, text.String())
}

// textOf is the text of a message (RFC 5322), with the names of what is attached below it.
func textOf(message []byte) (string, error) {
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return "", err
	}
	return textOfPart(textproto.MIMEHeader(m.Header), m.Body)
}

// textOfPart is the text of a part of a message (RFC 2045): of parts within it, of plain text, or the name of a
// file; "" for anything else, such as HTML.
func textOfPart(h textproto.MIMEHeader, body io.Reader) (string, error) {
	// A part without a type is plain text (RFC 2045, section 5.2).
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		kind = "text/plain"
	}

	if strings.HasPrefix(kind, "multipart/") {
		return textOfParts(multipart.NewReader(body, params["boundary"]))
	}

	_, disposition, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	// An attachment is only named: reports can be long, and need not be text.
	if name := disposition["filename"]; name != "" {
		return "attached: " + name + "\n", nil
	}

	if kind != "text/plain" {
		return "", nil
	}

	switch strings.ToLower(h.Get("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}

	text, err := io.ReadAll(body)
	return string(text), err
}

// textOfParts joins the texts of the parts of a multipart message. The parts are read raw, since textOfPart
// decodes them.
func textOfParts(parts *multipart.Reader) (string, error) {
	var all strings.Builder
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}

		if err != nil {
			return all.String(), err
		}

		text, err := textOfPart(p.Header, p)
		if err != nil {
			return all.String(), err
		}

		all.WriteString(text)
	}
}
