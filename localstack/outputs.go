package localstack

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/signin"
)

// Outputs say where everything is. They are stored as JSON, and read by the command line, which takes only
// apiUrl, clientId and clientSecret (cmd/archivist/command), and by tools.
type Outputs struct {
	APIURL           string `json:"apiUrl"`
	EndpointURL      string `json:"endpointUrl"`
	Region           string `json:"region"`
	TableName        string `json:"tableName"`
	StorageBucket    string `json:"storageBucket"`
	WorkBucket       string `json:"workBucket"`
	SampleCollection string `json:"sampleCollection"`
	SampleURL        string `json:"sampleUrl,omitempty"` // of the web server for local content
	State            string `json:"state"`               // the folder of its files
	Control          string `json:"control,omitempty"`   // the socket of a demo, see Control
	// ClientID and ClientSecret are the program as which the command line acts while nobody has signed in, and this
	// machine's tools do; "" = the API demands no tokens, or they have to sign in.
	ClientID     string            `json:"clientId,omitempty"`
	ClientSecret string            `json:"clientSecret,omitempty"`
	All          map[string]string `json:"all"` // every output of the app stack
}

// Client calls the API as the program of the outputs. user is the header Archivist-User, "" for none.
func (o Outputs) Client(user string) *v1.Client {
	c := &v1.Client{URL: o.APIURL, HTTP: http.DefaultClient, User: user}
	if o.ClientID != "" {
		p := &signin.Program{ID: o.ClientID, Secret: o.ClientSecret, HTTP: http.DefaultClient, Now: time.Now,
			At: func(ctx context.Context) (string, error) {
				where, err := c.SignIn(ctx)
				return where.Issuer, err
			}}
		c.Bearer = p.Token
	}
	return c
}

// Environment are the variables by which a command line that is given the API's URL acts as the program.
func (o Outputs) Environment() []string {
	if o.ClientID == "" {
		return nil
	}
	return []string{"ARCHIVIST_CLIENT_ID=" + o.ClientID, "ARCHIVIST_CLIENT_SECRET=" + o.ClientSecret}
}

// published is where the command line looks for what is up, below a folder.
const published = ".local/outputs.json"

// Publish lets the command line find what is up, in a folder and below it. What another has published there is
// replaced.
func (o Outputs) Publish(folder string) error {
	path := filepath.Join(folder, published)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err != nil {
		return err
	}
	return o.write(path)
}

// write writes the outputs as JSON, for their owner only: they have a secret.
func (o Outputs) write(path string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	// A file that is there keeps its mode, and earlier versions let everybody read it.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o600)
}

// Withdraw undoes Publish, unless another has published there since: then its file stays.
func (o Outputs) Withdraw(folder string) error {
	now, err := Published(folder)
	if err != nil || now.State != o.State || now.APIURL != o.APIURL {
		return err
	}
	err = os.Remove(filepath.Join(folder, published))
	if errors.Is(err, fs.ErrNotExist) { // another process was quicker
		return nil
	}
	return err
}

// Published is what is up in a folder; an empty value means nothing. Whether it still is, is not looked at:
// after a crash the file stays.
func Published(folder string) (o Outputs, err error) {
	data, err := os.ReadFile(filepath.Join(folder, published))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}

// Save writes the outputs where tools of the checkout find them; Publish writes them for the command line.
func (s *Stack) Save(o Outputs) error {
	return o.write(s.State("outputs.json"))
}

// Load reads the outputs of a stack that is deployed; the error is fs.ErrNotExist if none is.
func (s *Stack) Load() (o Outputs, err error) {
	data, err := os.ReadFile(s.State("outputs.json"))
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}
