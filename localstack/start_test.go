package localstack_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"archivist/infra/toolchain"
	"archivist/localstack"
)

// TestStartBesideAnother: a local AWS that was not started from this folder is neither used nor
// stopped; one that was is used as it is.
func TestStartBesideAnother(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	at, err := url.Parse(up.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	s := &localstack.Stack{Checkout: toolchain.Checkout{Root: t.TempDir(), Log: os.Stderr}, Name: "run", Port: port}
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), at.Port()) {
		t.Errorf("another's was used: %v", err)
	}
	if err := s.Stop(t.Context()); err != nil || !s.Healthy() {
		t.Errorf("another's was stopped, or waited for: %v", err)
	}
	file := s.State("ministack.pid")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Errorf("its own was not used: %v", err)
	}
}
