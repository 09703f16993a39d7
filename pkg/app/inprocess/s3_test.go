package inprocess

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// dying ends a process when it is read.
type dying struct{ *process }

// Read gives a part of the content, and the process ends.
func (d dying) Read(data []byte) (int, error) {
	d.died.Store(true)
	return copy(data, "the second half"), io.EOF
}

// TestUploadEndsWithItsProcess: a process that ends while it uploads has stored nothing; one that lives has.
func TestUploadEndsWithItsProcess(t *testing.T) {
	w := begin(t, quick())
	for name, second := range map[string]func(p *process) io.Reader{
		"lives": func(*process) io.Reader { return strings.NewReader("the second half") },
		"dies":  func(p *process) io.Reader { return dying{p} },
	} {
		p := &process{}
		body := io.MultiReader(strings.NewReader("the first half, "), second(p))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.endpoint+"/work/"+name, body)
		w.must(err)
		resp, err := requests{w.buckets, p}.Do(r)
		w.must(err)
		w.must(resp.Body.Close())
	}
	if data, _ := w.Buckets().Object("work/lives"); string(data) != "the first half, the second half" {
		t.Errorf("stored %q", data)
	}
	if data, there := w.Buckets().Object("work/dies"); there {
		t.Errorf("a dead process has stored %q", data)
	}
}
