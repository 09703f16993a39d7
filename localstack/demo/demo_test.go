package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
)

// limit only ends what hangs.
const limit = 3 * time.Minute

// asFunction makes the test's own program a function.
const asFunction = "DEMO_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if os.Getenv(asFunction) != "" {
		lambda.Start(func() (map[string]bool, error) {
			fmt.Println("called by " + os.Getenv("ARCHIVIST_API"))
			return map[string]bool{"ok": true}, nil
		})
	}
	os.Exit(m.Run())
}

// started starts a demo on free ports.
func started(t *testing.T, o Options) (*Demo, *v1.Client) {
	t.Helper()
	d, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, &v1.Client{URL: d.APIURL, HTTP: http.DefaultClient}
}

// until waits until something is so.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not come", what)
		}
	}
}

// letter submits a file, and returns the batch.
func letter(t *testing.T, client *v1.Client, url string, notify ...string) string {
	t.Helper()
	b, err := client.Submit(t.Context(), v1.BatchRequest{Collection: "demo", Submitter: "test", Notification: notify,
		Payload: v1.Payload{URL: url}, Identifiers: &v1.Identifiers{Local: []string{"letter"}},
		Metadata: &v1.Metadata{What: "A letter"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	return b.ID
}

func completed(t *testing.T, client *v1.Client, batch string) func() bool {
	return func() bool {
		b, err := client.Batch(t.Context(), batch)
		if err != nil || v1.Ended(b.State) && b.State != v1.Completed {
			t.Fatalf("the batch is %s: %s, %v", b.State, b.Message, err)
		}
		return b.State == v1.Completed
	}
}

// TestDemo: the sample is preserved, the documents' page is there, a mail is shown, a submission is preserved, the
// command line finds the demo, and nothing is left afterwards.
func TestDemo(t *testing.T) {
	here, out := t.TempDir(), &bytes.Buffer{}
	d, client := started(t, Options{Folder: here, Out: out})
	if objects, err := client.Objects(t.Context(), v1.Filter{Collection: "sample"}); err != nil || len(objects) != 7 {
		t.Errorf("objects of the sample: %d, %v", len(objects), err)
	}
	resp, err := http.Get(d.APIURL + "/docs")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the documents' page: %v, %v", resp, err)
	}
	found, err := localstack.Published(here)
	if err != nil || found.APIURL != d.APIURL {
		t.Errorf("the command line finds %+v, %v", found, err)
	}
	manifest := d.SampleURL + "/manifests/maps.checkm?round=7"
	until(t, "the submission", completed(t, client, letter(t, client, manifest, "ada@example.org")))
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "Mail to ada@example.org: ") || !strings.Contains(out.String(), "  | ") {
		t.Errorf("no mail is shown:\n%s", out)
	}
	_, missing := os.Stat(d.state.scratch)
	found, err = localstack.Published(here)
	if err != nil || found.APIURL != "" || !errors.Is(missing, os.ErrNotExist) {
		t.Errorf("after its end: %+v, %v, %v", found, err, missing)
	}
}

// TestRestart: what was preserved is there after a restart, and a job that was under way ends.
func TestRestart(t *testing.T) {
	served, wait := make(chan bool, 10), make(chan bool)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.txt" && r.Method == http.MethodGet {
			served <- true
			select {
			case <-wait:
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, "Dear reader")
	}))
	t.Cleanup(source.Close)
	keep := Options{Empty: true, Keep: filepath.Join(t.TempDir(), "kept")}
	d, client := started(t, keep)
	first := letter(t, client, source.URL+"/letter.txt")
	until(t, "the first letter", completed(t, client, first))
	before, err := client.Events(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	slow := letter(t, client, source.URL+"/slow.txt")
	<-served
	_, err = Start(t.Context(), keep)
	if err == nil || !strings.Contains(err.Error(), "another demo uses the folder") {
		t.Errorf("a second demo on the folder: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	close(wait)
	_, client = started(t, keep)
	after, err := client.Events(t.Context(), first)
	if err != nil || len(after) != len(before) || len(before) == 0 {
		t.Errorf("%d events after the restart, %d before, %v", len(after), len(before), err)
	}
	until(t, "the letter that was under way", completed(t, client, slow))
	objects, err := client.Objects(t.Context(), v1.Filter{Collection: "demo"})
	if err != nil || len(objects) != 1 || objects[0].Version != 2 {
		t.Fatalf("the object: %+v, %v", objects, err)
	}
	body, err := client.Content(t.Context(), objects[0].ARK, 2, "producer/slow.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if text, err := io.ReadAll(body); err != nil || string(text) != "Dear reader" {
		t.Errorf("the content is %q, %v", text, err)
	}
}

// TestFunction: a program is added while the demo runs, gets the API's address, is what a consumer calls, and is there
// after a restart. One with the name of a function of Archivist is refused.
func TestFunction(t *testing.T) {
	keep := Options{Empty: true, Keep: filepath.Join(t.TempDir(), "kept"), Out: &bytes.Buffer{}}
	d, _ := started(t, keep)
	f := localstack.UserFunction{Name: "words", Command: asFunction + "=1 exec '" + os.Args[0] + "'", Dir: t.TempDir()}
	arn, err := localstack.Control(d.Control).AddFunction(t.Context(), f)
	if err != nil || arn != "arn:aws:lambda:us-east-1:000000000000:function:words" {
		t.Fatalf("the function is %q, %v", arn, err)
	}
	f.Name = "scheduler"
	if _, err := localstack.Control(d.Control).AddFunction(t.Context(), f); err == nil ||
		!strings.Contains(err.Error(), "choose another name") {
		t.Errorf("a function in place of one of Archivist: %v", err)
	}
	for range 2 { // before and after a restart
		out, err := d.system.Invoke(t.Context(), "words", []byte(`{}`))
		if err != nil || string(out) != `{"ok":true}` {
			t.Fatalf("the function answered %q, %v", out, err)
		}
		until(t, "what it prints", func() bool {
			lines, err := localstack.DemoLogs(d.Outputs, "words")
			return err == nil && len(lines) == 1 && lines[0] == "called by "+d.APIURL
		})
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d, _ = started(t, keep)
	}
	ended := make(chan error, 1)
	go func() {
		<-d.Stopped
		ended <- d.Close()
	}()
	if err := errors.Join(localstack.Control(d.Control).Stop(t.Context()), <-ended); err != nil {
		t.Errorf("it is told to end: %v", err)
	}
}

// TestPortInUse: the error names the port, and the flag.
func TestPortInUse(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	at, err := url.Parse(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Port: port})
	if err == nil || !strings.Contains(err.Error(), "port "+at.Port()+" is in use") ||
		!strings.Contains(err.Error(), "--port") {
		t.Errorf("a port that is in use: %v", err)
	}
}
