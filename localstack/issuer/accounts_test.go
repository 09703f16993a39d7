package issuer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestAccounts: a file of accounts is read as it is written; what is wrong is refused.
func TestAccounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accounts.json")
	read := func(text string) (Accounts, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(file)
	}
	data, err := json.Marshal(Default())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(string(data)); err != nil || len(got.Users) != 5 || len(got.Machines) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, says := range map[string]string{
		`{`: "does not have accounts", `{"user": []}`: "unknown field",
		`{"users": [{"subject": "A", "name": "Ada"}]}`:                                                        `the account "A"`,
		`{"users": [{"subject": "a", "name": "Ada"}, {"subject": "a", "name": "B"}]}`:                         `the account "a"`,
		`{"users": [{"subject": "archivist-cli", "name": "Ada"}]}`:                                            "archivist-cli",
		`{"users": [{"subject": "a", "name": ""}]}`:                                                           "name",
		`{"users": [{"subject": "a", "name": "Ada", "groups": ["boss"]}]}`:                                    `found "boss"`,
		`{"machines": [{"id": "m", "secret": "short"}]}`:                                                      "secret",
		`{"users": [{"subject": "m", "name": "M"}], "machines": [{"id": "m", "secret": "0123456789abcdef"}]}`: `"m"`,
	} {
		if _, err := read(text); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, at := range []string{"", "http://example.org", "http://127.0.0.1:1/path", "127.0.0.1:1"} {
		if _, err := New(Settings{URL: at, Now: time.Now}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", at, err)
		}
	}
}
