package command

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"github.com/goccy/go-yaml"

	"archivist/pkg/kernel/fault"
)

// Open opens a file of the user, or the standard input for "-". The caller closes it; closing the standard input
// does nothing. A file that cannot be opened is Invalid: the command line names the wrong one.
func (a *App) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Machine.In), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return f, nil
}

// maxDefinition is the size in bytes of a definition, at most: so a large file that is named by mistake is
// refused at once. A definition has no need of more.
const maxDefinition = 64 << 10

// ReadDefinition reads the definition of something (what, for messages) from a file of YAML or JSON into a
// pointer. A field that the type does not have is refused, because a misspelt name would otherwise be ignored
// silently. All errors are Invalid.
func (a *App) ReadDefinition(file, what string, into any) error {
	in, err := a.Open(file)
	if err != nil {
		return err
	}

	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxDefinition+1))
	if err != nil {
		return fault.New(fault.Invalid, "%s: %w", file, err)
	}

	if len(text) > maxDefinition {
		return fault.New(fault.Invalid, "%s has more than %d bytes, too many for a definition",
			file, maxDefinition)
	}

	if err := decode(text, into); err != nil {
		return fault.New(fault.Invalid, "%s is not the definition of %s: %w", file, what, err)
	}
	return nil
}

// decode reads a text of YAML, of which JSON is a part, into a wire type by the names of its fields in JSON.
func decode(text []byte, into any) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}

	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
