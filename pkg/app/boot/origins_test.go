package boot

import (
	"strings"
	"testing"

	"archivist/pkg/api"
)

// TestWrongOrigins: a function whose environment lets in whom nobody means does not start, and says which variable it
// is.
func TestWrongOrigins(t *testing.T) {
	for _, origin := range []string{"*", "null", "https://example.org/"} {
		s := &System{api: &api.API{}, env: func(name string) string {
			return map[string]string{EnvOrigins: origin, "AWS_ENDPOINT_URL": "http://127.0.0.1"}[name]
		}}
		if _, err := s.API(nil); err == nil || !strings.Contains(err.Error(), EnvOrigins+": found ") {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
