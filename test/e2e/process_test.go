package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"os"
	"strings"
	"testing"
	"time"

	"archivist/localstack"
	"archivist/localstack/issuer"
	"archivist/pkg/app/boot"
	"archivist/pkg/app/inprocess"
)

// system is the one under test, in the lane of the process.
var system *inprocess.System

// startProcess starts the system in this process, with the settings of the stack. Its API and its signed URLs are
// served on loopback; the minute's rule is played often. What functions log is in .local/e2e-process.
func startProcess(ctx context.Context) (stop func() error, err error) {
	if err := stack.InstallPython(ctx); err != nil { // the validators
		return nil, err
	}
	stack.Name, *replica = "e2e-process", "copies"
	if err := os.MkdirAll(stack.State(), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(stack.State("functions.log"))
	if err != nil {
		return nil, err
	}
	limits := boot.DefaultLimits
	limits.MaxInFlight = 20
	system, err = inprocess.Start(inprocess.Settings{Timing: stack.Context["timing"], Limits: limits, MailFrom: sender,
		Targets:  strings.Split(stack.Context["consumerTargets"], ","),
		Projects: strings.Split(researchNames, ","), ResearchTimes: researchTimes, Revisions: true,
		ReplicaBucket: *replica, Sources: []string{sourceBucket},
		EZID: registry.URL, EZIDTarget: target, Scanner: inprocess.ARN(scannerLambda),
		Issuer: inprocess.Issuer{URL: tokens.url, Audience: issuer.Audience, Claims: issuer.Claims(),
			Client: issuer.ClientID, Scopes: issuer.Scopes()},
		Each: time.Second / 2, Window: time.Second / 20, Listen: "127.0.0.1:0",
		Log: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		return nil, err
	}
	api := httptest.NewServer(system.API())
	cfg = system.Config()
	all := system.Outputs()
	out = localstack.Outputs{APIURL: api.URL, EndpointURL: *cfg.BaseEndpoint, Region: cfg.Region,
		TableName: all["tableName"], StorageBucket: all["storageBucket"], WorkBucket: all["workBucket"], All: all}
	client = as("admin")
	return func() error {
		api.CloseClientConnections()
		api.Close()
		return errors.Join(system.Close(), log.Close())
	}, nil
}

// sentInProcess are the mails that were sent, with their addresses and their texts.
func sentInProcess(t *testing.T) (all []string) {
	t.Helper()
	for _, m := range system.Mails() {
		message, err := mail.ReadMessage(strings.NewReader(string(m.Message)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := readable(textproto.MIMEHeader(message.Header), message.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Join(m.To, " ")+" "+m.Subject+"\n"+text)
	}
	return all
}

// readable is the text of a part of a mail, and of all parts in it.
func readable(header textproto.MIMEHeader, body io.Reader) (text string, err error) {
	kind, of, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		data, err := io.ReadAll(body)
		return string(data), err
	}
	for parts := multipart.NewReader(body, of["boundary"]); ; {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return "", err
		}
		more, err := readable(part.Header, part)
		if err != nil {
			return "", err
		}
		text += more + "\n"
	}
}
