package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"archivist/localstack"
)

// sourcesPort is where the web server listens from which local content is fetched. It is that of a demo, too.
func sourcesPort(s *localstack.Stack) int { return s.Port + 14 }

// sourcesURL is the URL of that server, as the archive on this machine fetches from it.
func sourcesURL(s *localstack.Stack) string {
	return fmt.Sprintf("http://127.0.0.1:%d", sourcesPort(s))
}

// sources serves the sample, and the repositories in a folder, until it is ended. It is a process of its own, because
// content is fetched when make run has ended.
func sources(address, repositories string) error {
	handler, err := localstack.SourcesHandler(repositories)
	if err != nil {
		return err
	}
	return (&http.Server{
		Addr:              address,
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
	}).ListenAndServe()
}

// startSources starts the web server unless it is up: it answers with a manifest of the sample, which no other program
// has.
func startSources(ctx context.Context, s *localstack.Stack) error {
	return startServer(ctx, s, "sources", sourcesPort(s), "/manifests/maps.checkm?round=0", s.State("repositories"))
}

// startServer starts this program again, with a command that serves on a port of the stack and has one argument more,
// unless it is up: then a path answers. It outlives this process.
func startServer(ctx context.Context, s *localstack.Stack, name string, port int, path, argument string) error {
	address := fmt.Sprintf("127.0.0.1:%d", port)
	up := func() bool {
		resp, err := http.Get("http://" + address + path)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	if up() {
		return nil
	}

	program, err := os.Executable()
	if err != nil {
		return err
	}

	if err := s.Detach(name, os.Environ(), program, name, address, argument); err != nil {
		return err
	}

	// Five seconds.
	for range 100 {
		if up() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server of the %s did not start; its log is %s", name, s.State(name+".log"))
}
