package localstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Control is the path of the socket on which a demo is told what to do. Only who can open the file can: a web page that
// is open in a browser cannot, as it could with a port.
type Control string

// UserFunction is a program that a demo runs as a Lambda function.
type UserFunction struct {
	Name    string `json:"name"`
	Command string `json:"command"` // for a shell, or the folder of a Go program, which is built
	Dir     string `json:"dir"`     // in which the command runs
}

// AddFunction makes a program a function of the demo, and returns its ARN. A function of this name is replaced.
// The error says why the demo refuses it, e.g. what does not compile.
func (c Control) AddFunction(ctx context.Context, f UserFunction) (arn string, err error) {
	var out struct{ ARN string }
	err = c.post(ctx, "/functions", f, &out)
	return out.ARN, err
}

// Stop ends the demo, and waits for that: the demo answers by ending the connection. One that has ended already
// is no error, nor one whose socket is left from a crash.
func (c Control) Stop(ctx context.Context) error {
	err := c.post(ctx, "/stop", nil, nil)
	ended := errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET)
	if ended {
		return nil
	}
	return err
}

// post makes a request by HTTP on the socket. out may be nil; an answer other than 200 is an error with its
// text.
func (c Control) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://demo"+path,
		bytes.NewReader(body))
	if err != nil {
		return err
	}

	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", string(c))
	}}

	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("the demo does not answer: %w", err)
	}

	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}

	if resp.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(answer)))
	}

	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// FunctionLog is the file to which a demo writes what a function prints, in the folder of its state. name is a
// name that CheckFunctionName accepts.
func FunctionLog(state, name string) string {
	return filepath.Join(state, "functions", name+
		".log")
}

// DemoLogs are the lines that a function of a demo has printed: none if it was not called yet.
func DemoLogs(o Outputs, name string) (lines []string, err error) {
	// The name comes from a command line: only its last part is used, so that no other file is read.
	data, err := os.ReadFile(FunctionLog(o.State, filepath.Base(name)))
	if errors.Is(err, fs.ErrNotExist) || len(data) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), err
}
