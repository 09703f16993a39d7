package container_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"archivist/pkg/formats/container"
)

// Example lists the files of a container.
func Example() {
	data := zipOf(entry{name: "letters/1.txt", text: "Dear Anna"}, entry{name: "letters/2.txt", text: "Dear Bert"})
	kind, from, size := container.Detect(data), bytes.NewReader(data), int64(len(data))
	r, err := container.Open(kind, from, size, container.DefaultLimits, nil)
	for err == nil {
		var file *container.File
		if file, err = r.Next(); err == nil {
			text, _ := io.ReadAll(r)
			fmt.Printf("%s: %s\n", file.Name, text)
		}
	}
	fmt.Println(err)
	// Output:
	// letters/1.txt: Dear Anna
	// letters/2.txt: Dear Bert
	// EOF
}

// contents are what is unpacked: the files in their order, and their bytes by name.
type contents struct {
	files []container.File
	bytes map[string]string
}

// keep takes the bytes that were read of the last file.
func (c *contents) keep(b *bytes.Buffer) {
	if len(c.files) > 0 && (b.Len() > 0 || c.bytes[c.files[len(c.files)-1].Name] == "") {
		c.bytes[c.files[len(c.files)-1].Name] = b.String()
	}
	b.Reset()
}

// unpack reads a container in one go, and again in many, each in a new reader: the results must be the same.
func unpack(t *testing.T, data []byte, limits container.Limits) (contents, error) {
	t.Helper()
	once, err := read(t, data, limits, nil)
	again, err2 := read(t, data, limits, rand.New(rand.NewPCG(7, uint64(len(data)))))
	if fmt.Sprint(err) != fmt.Sprint(err2) || fmt.Sprint(once) != fmt.Sprint(again) {
		t.Fatalf("continued: %.300v, %v; in one go: %.300v, %v", again, err2, once, err)
	}
	return once, err
}

// read reads a container. With random numbers it is continued at some places.
func read(t *testing.T, data []byte, limits container.Limits, rnd *rand.Rand) (contents, error) {
	t.Helper()
	all, content := contents{bytes: map[string]string{}}, &bytes.Buffer{}
	defer all.keep(content)
	var saved *container.State
	open := func() (*container.Reader, error) {
		r, err := container.Open(container.Detect(data), bytes.NewReader(data), int64(len(data)), limits, saved)
		if err == nil && saved != nil {
			for _, f := range all.files {
				r.Seen(f.Name)
			}
		}
		return r, err
	}

	r, err := open()
	for err == nil {
		if rnd != nil && rnd.IntN(3) == 0 {
			saved = stateOf(t, r)
			if r, err = open(); err != nil {
				return all, err
			}
		}

		if file, _ := r.Current(); file == nil {
			all.keep(content)
			file, err = r.Next()
			if err == io.EOF && rnd != nil { // it is at its end, too, for who goes on there
				saved = stateOf(t, r)
				if r, err = open(); err == nil {
					file, err = r.Next()
				}
			}
			if err == io.EOF {
				return all, nil
			}
			if err != nil {
				return all, err
			}
			all.files = append(all.files, *file)
		}

		size := 1 << 16
		if rnd != nil {
			size = 1 + rnd.IntN(1<<(1+rnd.IntN(15)))
		}
		p, n := make([]byte, size), 0
		n, err = r.Read(p)
		content.Write(p[:n])
		if err == io.EOF {
			err = nil
		}
	}
	return all, err
}

// stateOf is the state of a reader after it was kept as JSON.
func stateOf(t *testing.T, r *container.Reader) *container.State {
	t.Helper()
	s, err := r.State()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back container.State
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return &back
}

// refused checks that a container is refused with a reason.
func refused(t *testing.T, what string, data []byte, limits container.Limits, says string) {
	t.Helper()
	got, err := unpack(t, data, limits)
	if r := new(container.RefusedError); !errors.As(err, &r) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v with %d files; expected a refusal with %q", what, err, len(got.files), says)
	}
}
