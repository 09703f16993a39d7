package localstack

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Outputs say where everything is. They are stored as JSON, and read by the command line, which takes only
// apiUrl (cmd/archivist/command), and by tools.
type Outputs struct {
	APIURL           string            `json:"apiUrl"`
	EndpointURL      string            `json:"endpointUrl"`
	Region           string            `json:"region"`
	TableName        string            `json:"tableName"`
	StorageBucket    string            `json:"storageBucket"`
	WorkBucket       string            `json:"workBucket"`
	SampleCollection string            `json:"sampleCollection"`
	SampleURL        string            `json:"sampleUrl,omitempty"` // of the web server for local content
	State            string            `json:"state"`               // the folder of its files
	Control          string            `json:"control,omitempty"`   // the socket of a demo, see Control
	All              map[string]string `json:"all"`                 // every output of the app stack
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

// write writes the outputs as JSON, for people to read, too.
func (o Outputs) write(path string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
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
