package localstack_test

import (
	"os"
	"path/filepath"
	"testing"

	"archivist/localstack"
)

// TestOutputsAreTheOwners: nobody else can read the secret in the outputs, also where an earlier version has written
// them for everybody.
func TestOutputsAreTheOwners(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".local", "outputs.json")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := localstack.Outputs{APIURL: "http://127.0.0.1:1/", ClientID: "a", ClientSecret: "b"}
	if err := o.Publish(dir); err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(file)
	if err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", is.Mode(), err)
	}
	if now, err := localstack.Published(dir); err != nil || now.ClientSecret != "b" {
		t.Errorf("%+v, %v", now, err)
	}
}
