// Package demo runs the whole of Archivist in this process, for trying it and for tests of what works with it: the
// API, the functions, the sample, and programs of the user as functions.
//
//	d, err := demo.Start(ctx, demo.Options{Port: 4566, Folder: ".", Out: os.Stdout})
//	defer d.Close()
package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"

	"archivist/localstack"
	"archivist/localstack/issuer"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/app/inprocess/runtimeapi"
)

// Options are those of the command.
type Options struct {
	Port  int  // of the API; local content is served on Port + 14, S3 on Port + 1. 0 = any that are free
	Empty bool // without the sample
	// Keep is the folder of its state; "" = in memory, and gone with it. It is made if it is not there.
	Keep      string
	Functions []localstack.UserFunction
	// Issuer: calls of the API need a token, and an issuer runs at Port + 15 that gives them out.
	Issuer bool
	// Accounts is the file of who can sign in there, as issuer.Read reads it; "" = issuer.Default.
	Accounts string
	// Origins are those of web pages whose scripts may call the API, and send files.
	Origins []string
	// Verbose: logs go to Out, too.
	Verbose bool
	Folder  string    // in and below which the command line finds the demo; "" = nowhere
	Out     io.Writer // gets mails, and what the demo says; nil = nowhere
}

// Demo is a demo that runs, until Close.
type Demo struct {
	localstack.Outputs
	Stopped <-chan struct{} // closed when somebody asks it to end
	Issuer  *issuer.Issuer  // nil without Options.Issuer

	options   Options
	out       *shared
	state     *state
	system    *inprocess.System
	issuer    inprocess.Issuer
	token     func(context.Context) (string, error) // of the demo itself; nil if none is needed
	functions *functions
	servers   []*http.Server
	serving   sync.WaitGroup
	published bool
}

// System is the system that runs, for tests that break something in it.
func (d *Demo) System() *inprocess.System { return d.system }

// functions are the programs that run as functions, by their names.
type functions struct {
	demo *Demo
	mu   sync.Mutex
	all  map[string]*userFunction
}

// userFunction is one of them: how it was asked for, its process, and the file of what it prints.
type userFunction struct {
	localstack.UserFunction
	// run calls the program by the Lambda runtime API, as on AWS.
	run *runtimeapi.Function
	// log has what it prints, standard output and errors.
	log *os.File
}

// shared lets several write whole texts: mails, logs and functions write at once, and a line must not be torn.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes one text.
func (s *shared) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(text)
}

// say says something to the user, in one piece.
func (d *Demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }
