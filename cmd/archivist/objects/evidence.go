package objects

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/terminal"
)

// The files of a report. Each has its signature beside it: 64 bytes, by Ed25519 (RFC 8032) over the whole file, so
// that other software can verify it.
const (
	reportJSON = "report.json"
	reportHTML = "report.html"
	signature  = ".sig"
)

// preservationReportCmd writes the status of all objects as evidence for an auditor.
type preservationReportCmd struct {
	Folder     string   `arg:"" help:"New folder for the report and its signatures."`
	Key        string   `required:"" help:"Private Ed25519 key in PEM, which signs the report." placeholder:"FILE"`
	Collection []string `short:"c" help:"Only these collections; all if it is left out." placeholder:"NAME"`
}

// evidence is the report as JSON.
type evidence struct {
	// What it is of: the API of the archive.
	Archive string `json:"archive"`
	// When the last object was read, in UTC.
	Made string `json:"made"`
	// The public key that verifies the signatures, in PEM. An auditor compares it with the one that the archive has
	// published: a report cannot vouch for its own key.
	PublicKey   string               `json:"publicKey"`
	Total       preservationStatus   `json:"total"`
	Collections []preservationStatus `json:"collections"`
}

// written is what the command prints.
type written struct {
	File string `json:"file"`
}

func (preservationReportCmd) Prints() any { return written{} }

// Run refuses a folder that exists: a report is not replaced.
func (c *preservationReportCmd) Run(a *command.App) error {
	key, err := privateKey(c.Key)
	if err != nil {
		return err
	}

	if _, err := os.Stat(c.Folder); !errors.Is(err, fs.ErrNotExist) {
		return command.Usage("%s exists: name a new folder, so that no report is replaced", c.Folder)
	}

	all, err := statusOfAll(a, c.Collection)
	if err != nil {
		return err
	}

	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}

	e := evidence{
		Archive:     a.Client.URL,
		Made:        a.Now().UTC().Format(time.RFC3339),
		PublicKey:   string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		Total:       totalStatus(all),
		Collections: all,
	}
	files, err := e.files()
	if err != nil {
		return err
	}

	var names []written
	for _, name := range []string{reportJSON, reportHTML} {
		files[name+signature] = ed25519.Sign(key, files[name])
		file := filepath.Join(c.Folder, name)
		names = append(names, written{file}, written{file + signature})
	}
	if err := writeNew(c.Folder, files); err != nil {
		return err
	}
	return a.Print(names, func(p terminal.Page) {
		terminal.Table(p, names, terminal.Column[written]{Title: "file",
			Text: func(w written) string { return w.File }})
	})
}

//go:embed evidence.html
var evidencePage string

var evidenceTemplate = template.Must(template.New("report").Parse(evidencePage))

// files are the report in both forms.
func (e evidence) files() (map[string][]byte, error) {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}

	var page bytes.Buffer
	if err := evidenceTemplate.Execute(&page, e); err != nil {
		return nil, err
	}
	return map[string][]byte{reportJSON: append(text, '\n'), reportHTML: page.Bytes()}, nil
}

// writeNew writes files into a folder beside the new one, which then gets its name: a report is there as a whole or
// not at all.
func writeNew(folder string, files map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(filepath.Clean(folder)), 0o755); err != nil {
		return err
	}

	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(folder)), ".report-")
	if err != nil {
		return err
	}

	defer os.RemoveAll(part)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(part, name), data, 0o644); err != nil {
			return err
		}
	}

	if err := os.Chmod(part, 0o755); err != nil {
		return err
	}
	return os.Rename(part, folder)
}

// privateKey reads a key in PKCS #8 (RFC 8410), as OpenSSL writes it.
func privateKey(file string) (ed25519.PrivateKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	block, _ := pem.Decode(data)
	if block == nil {
		return nil, command.Usage("%s is no PEM file; make a key: openssl genpkey -algorithm ed25519 -out %s", file,
			file)
	}

	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, is := any.(ed25519.PrivateKey)
	if err != nil || !is {
		return nil, command.Usage("%s has no private Ed25519 key (PKCS #8, not encrypted): %v", file, err)
	}
	return key, nil
}

// preservationVerifyCmd verifies a report without the archive.
type preservationVerifyCmd struct {
	Folder string `arg:"" help:"Folder of a report."`
	Key    string `required:"" help:"Public key in PEM, as the archive has published it." placeholder:"FILE"`
}

func (preservationVerifyCmd) Prints() any { return written{} }

// Run fails with the first file that is not as it was signed.
func (c *preservationVerifyCmd) Run(a *command.App) error {
	key, err := publicKey(c.Key)
	if err != nil {
		return err
	}

	var right []written
	for _, name := range []string{reportJSON, reportHTML} {
		file := filepath.Join(c.Folder, name)
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}

		sum, err := os.ReadFile(file + signature)
		if err != nil {
			return err
		}

		if err := ed25519.VerifyWithOptions(key, data, sum, &ed25519.Options{Hash: crypto.Hash(0)}); err != nil {
			return fmt.Errorf("%s is not as it was signed, or was signed with another key", file)
		}
		right = append(right, written{file})
	}
	return a.Print(right, func(p terminal.Page) {
		terminal.Table(p, right, terminal.Column[written]{Title: "as it was signed",
			Text: func(w written) string { return w.File }})
	})
}

// publicKey reads a key as a SubjectPublicKeyInfo (RFC 8410).
func publicKey(file string) (ed25519.PublicKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}

	block, _ := pem.Decode(data)
	if block == nil {
		return nil, command.Usage("%s is no PEM file", file)
	}

	any, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, is := any.(ed25519.PublicKey)
	if err != nil || !is {
		return nil, command.Usage("%s has no public Ed25519 key: %v", file, err)
	}
	return key, nil
}
