package runtimeapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// errorType is the header, or the trailer of a streamed response, that names an error.
const errorType = "Lambda-Runtime-Function-Error-Type"

// handler is the runtime API of a process. A response may be streamed: an error in the middle
// of it comes as a trailer.
func (p *process) handler() http.Handler {
	const runtime = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtime+"invocation/next", p.serveNext)
	mux.HandleFunc("POST "+runtime+"invocation/{id}/response",
		func(w http.ResponseWriter, r *http.Request) {
			p.end(w, r, func(body []byte) answer {
				if r.Trailer.Get(errorType) != "" {
					return answer{err: failed(r.Trailer.Get(errorType),
						"the response was not complete")}
				}
				return answer{out: body}
			})
		})

	mux.HandleFunc("POST "+runtime+"invocation/{id}/error",
		func(w http.ResponseWriter, r *http.Request) {
			p.end(w, r, func(body []byte) answer { return answer{err: reported(r, body)} })
		})

	mux.HandleFunc("POST "+runtime+"init/error", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
		if err != nil {
			refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
			return
		}
		p.mu.Lock()
		p.initErr = reported(r, body)
		p.mu.Unlock()
		accept(w)
	})

	return mux
}

// serveNext waits for the next invocation. The process is ready when it asks for the first
// time; how long it works until then is its init.
func (p *process) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case in := <-p.next:
		p.mu.Lock()
		p.current = in
		p.mu.Unlock()
		deadline := time.Now().Add(p.function.Limit)
		for name, value := range map[string]string{"Content-Type": "application/json",
			"Lambda-Runtime-Aws-Request-Id":       in.id,
			"Lambda-Runtime-Invoked-Function-Arn": p.function.ARN,
			"Lambda-Runtime-Deadline-Ms":          strconv.FormatInt(deadline.UnixMilli(), 10)} {
			w.Header().Set(name, value)
		}
		_, _ = w.Write(in.payload) // a process that does not read it has died
	case <-r.Context().Done():
	}
}

// end ends the current invocation with what the process sent. Another invocation's id is
// refused. So a process that answers late, after its time-out, ends nothing.
func (p *process) end(w http.ResponseWriter, r *http.Request, of func(body []byte) answer) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPayload))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || p.current.id != r.PathValue("id") {
		refuse(w, http.StatusBadRequest, "InvalidRequestID")
		return
	}

	current := p.current
	p.current = nil
	if err != nil {
		current.answer <- answer{err: failed("Function.ResponseSizeTooLarge",
			"the response has more than %d bytes", maxPayload)}
		refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge")
		return
	}

	current.answer <- of(body)
	accept(w)
}

// reported is the error that a runtime reports. It always has a type and a message, though
// the message may be empty.
func reported(r *http.Request, body []byte) error {
	e := messages.InvokeResponse_Error{}
	_ = json.Unmarshal(body, &e) // a runtime may send nothing, or something else
	if e.Type == "" {
		e.Type = r.Header.Get(errorType)
	}

	if e.Type == "" {
		e.Type = "Unhandled"
	}

	if e.Message == "" {
		e.Message = string(body)
	}
	return e
}

// accept answers as the runtime API does (202).
func accept(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status": "OK"}`)
}

// refuse answers with an error document, as the runtime API does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": code, "errorMessage": code})
}

// lineWriter passes whole lines on. Standard output and standard error of a process share
// one, so that their lines are not mixed.
type lineWriter struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte
}

// Write never fails: a program does not end because nobody reads what it prints.
func (w *lineWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, data...)
	if i := bytes.LastIndexByte(w.rest, '\n'); i >= 0 {
		_, _ = w.to.Write(w.rest[:i+1])
		w.rest = bytes.Clone(w.rest[i+1:])
	}
	return len(data), nil
}

// flush writes what has no line break yet, at the end of the process.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_, _ = w.to.Write(append(w.rest, '\n'))
		w.rest = nil
	}
}
