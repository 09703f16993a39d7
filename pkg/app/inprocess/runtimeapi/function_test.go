package runtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// mode makes the test's own program a function.
const mode = "RUNTIMEAPI_TEST_MODE"

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case "":
		os.Exit(m.Run())
	case "dies":
		fmt.Println("dies at once")
		os.Exit(3)
	case "refuses":
		_, err := http.Post("http://"+os.Getenv("AWS_LAMBDA_RUNTIME_API")+"/2018-06-01/runtime/init/error",
			"application/json", strings.NewReader(`{"errorMessage": "no database", "errorType": "Init.Failed"}`))
		fmt.Println(err)
		os.Exit(1)
	case "hangs":
		forever()
	}
	lambda.Start(handle)
}

func forever() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt)
	<-never
}

// request is what the function is to do.
type request struct{ Do, Text string }

type reply struct {
	Text, ARN, Name, Extra string
	Process                int
	Left                   time.Duration // until the deadline
}

var calls int

func handle(ctx context.Context, r request) (reply, error) {
	calls++
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	switch r.Do {
	case "fail":
		return reply{}, errors.New(r.Text)
	case "exit":
		os.Exit(7)
	case "hang":
		forever()
	case "large":
		r.Text = strings.Repeat("x", maxPayload+1)
	case "meet": // until another process says that it is here
		resp, err := http.Get(r.Text)
		if err != nil {
			return reply{}, err
		}
		resp.Body.Close()
	}
	fmt.Println("call", calls, "of", os.Getenv("AWS_LAMBDA_FUNCTION_NAME"))
	return reply{Text: r.Text, ARN: lc.InvokedFunctionArn, Name: os.Getenv("AWS_LAMBDA_FUNCTION_NAME"),
		Extra: os.Getenv("EXTRA"), Process: os.Getpid(), Left: time.Until(deadline)}, nil
}

// lines collects what processes print.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

// program is the test's program as a function.
func program(t *testing.T, how string) (*Function, *lines) {
	t.Helper()
	out := &lines{}
	f := &Function{Name: "words", ARN: "arn:words", Command: []string{os.Args[0]},
		Env: append(os.Environ(), mode+"="+how, "EXTRA=more"), Limit: time.Minute, Output: out}
	t.Cleanup(f.Close)
	return f, out
}

// call calls a function, which answers.
func call(t *testing.T, f *Function, r request) reply {
	t.Helper()
	out, err := invoke(t, f, r)
	var got reply
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return got
}

func invoke(t *testing.T, f *Function, r request) ([]byte, error) {
	t.Helper()
	payload, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return f.Invoke(t.Context(), payload)
}

// refused is the error of a call.
func refused(t *testing.T, f *Function, r request) messages.InvokeResponse_Error {
	t.Helper()
	out, err := invoke(t, f, r)
	e, is := err.(messages.InvokeResponse_Error)
	if !is {
		t.Fatalf("%+v: %s, %v", r, out, err)
	}
	return e
}

// TestInvoke: a function of AWS's own library is called, knows who it is, stays for the next call, reports its errors,
// and prints.
func TestInvoke(t *testing.T) {
	f, out := program(t, "works")
	first := call(t, f, request{Text: "ü"})
	if first.Text != "ü" || first.ARN != "arn:words" || first.Name != "words" || first.Extra != "more" ||
		first.Left <= 0 || first.Left > time.Minute {
		t.Errorf("the function answered %+v", first)
	}
	if e := refused(t, f, request{Do: "fail", Text: "no"}); e.Message != "no" || e.Type != "errorString" {
		t.Errorf("an error of the function: %+v", e)
	}
	if e := refused(t, f, request{Do: "large"}); e.Type != "Function.ResponseSizeTooLarge" {
		t.Errorf("a response that is too large: %s", e.Type)
	}
	if e := refused(t, f, request{Text: strings.Repeat("x", maxPayload)}); e.Type != "RequestTooLarge" {
		t.Errorf("a request that is too large: %s", e.Type)
	}
	f.Close()
	if !strings.Contains(out.text.String(), "call 1 of words\n") {
		t.Errorf("it printed %q", out.text.String())
	}
	if _, err := invoke(t, f, request{}); err == nil {
		t.Error("a closed function was called")
	}
}

// TestSameProcess: calls one after another are of one process.
func TestSameProcess(t *testing.T) {
	f, _ := program(t, "works")
	if a, b := call(t, f, request{}), call(t, f, request{}); a.Process != b.Process {
		t.Errorf("two calls were of the processes %d and %d", a.Process, b.Process)
	}
}

// TestRestart: after a process has died, or was ended at the time limit, the next call is of another.
func TestRestart(t *testing.T) {
	f, _ := program(t, "works")
	f.Limit = 2 * time.Second
	before := call(t, f, request{})
	if e := refused(t, f, request{Do: "exit"}); e.Type != "Runtime.ExitError" ||
		!strings.HasSuffix(e.Message, "Runtime exited with error: exit status 7") {
		t.Errorf("a process that died: %+v", e)
	}
	after := call(t, f, request{})
	if after.Process == before.Process {
		t.Error("a process that died was called")
	}
	if e := refused(t, f, request{Do: "hang"}); e.Type != "Sandbox.Timedout" ||
		!strings.HasSuffix(e.Message, "Task timed out after 2.00 seconds") {
		t.Errorf("a process that hangs: %+v", e)
	}
	if last := call(t, f, request{}); last.Process == after.Process {
		t.Error("a process that hangs was called")
	}
}

// TestCancelled: a call that nobody waits for any more ends its process.
func TestCancelled(t *testing.T) {
	f, _ := program(t, "works")
	before := call(t, f, request{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := f.Invoke(ctx, []byte(`{"Do": "hang"}`))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled: %v", err)
	}
	f.mu.Lock()
	idle := len(f.idle)
	f.mu.Unlock()
	if after := call(t, f, request{}); idle == 0 && after.Process == before.Process {
		t.Error("the process of a call that was cancelled was called")
	}
}

// TestStartFails: a process that dies before it asks for a call, says why it cannot start, or is not there.
func TestStartFails(t *testing.T) {
	f, out := program(t, "dies")
	if e := refused(t, f, request{}); e.Type != "Runtime.ExitError" ||
		!strings.HasSuffix(e.Message, "Runtime exited with error: exit status 3") {
		t.Errorf("a process that dies at once: %+v", e)
	}
	if out.text.String() != "dies at once\n" {
		t.Errorf("it printed %q", out.text.String())
	}
	f, _ = program(t, "refuses")
	if e := refused(t, f, request{}); e.Type != "Init.Failed" || e.Message != "no database" {
		t.Errorf("a process that refuses: %+v", e)
	}
	f, _ = program(t, "hangs")
	f.Init = 100 * time.Millisecond
	if e := refused(t, f, request{}); e.Type != "Sandbox.Timedout" {
		t.Errorf("a process that asks for nothing: %+v", e)
	}
	f, _ = program(t, "works")
	f.Command = []string{"/nowhere/words"}
	if e := refused(t, f, request{}); e.Type != "Runtime.InvalidEntrypoint" || !strings.Contains(e.Message, "nowhere") {
		t.Errorf("a program that is not there: %+v", e)
	}
}

// TestConcurrency: calls at once are of several processes, of no more than so many; the others wait.
func TestConcurrency(t *testing.T) {
	f, _ := program(t, "works")
	f.Processes = 2
	meeting := make(chan bool) // two calls meet here: one gives, one takes
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case meeting <- true:
		case <-meeting:
		}
	}))
	t.Cleanup(api.Close)
	var wg sync.WaitGroup
	var mu sync.Mutex
	processes := map[int]int{}
	for range 6 {
		wg.Go(func() {
			got := call(t, f, request{Do: "meet", Text: api.URL})
			mu.Lock()
			defer mu.Unlock()
			processes[got.Process]++
		})
	}
	wg.Wait()
	if len(processes) != 2 {
		t.Errorf("the calls of the processes: %v, want two processes", processes)
	}
}
