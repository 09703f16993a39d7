package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"archivist/localstack"
)

// sourcesPort is where the web server listens from which local content is fetched.
func sourcesPort(s *localstack.Stack) int { return s.Port + 14 }

func sourcesURL(s *localstack.Stack) string {
	return fmt.Sprintf("http://127.0.0.1:%d", sourcesPort(s))
}

// sources serves the sample, the folders that links in a folder lead to, and the repositories in a folder.
func sources(address, links, repositories string) error {
	sample, err := localstack.SampleHandler()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/folders/", localstack.FolderHandler(links))
	mux.Handle("/", sample)
	repository, err := localstack.GitHandler(repositories)
	if err == nil { // without Git there is no sample of archives
		mux.Handle("/git/", http.StripPrefix("/git", repository))
	}
	return (&http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}

// startSources starts the web server, which outlives this process, unless it is up.
func startSources(ctx context.Context, s *localstack.Stack) error {
	up := func() bool {
		resp, err := http.Get(sourcesURL(s) + "/manifests/maps.checkm?round=0")
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
	if err := os.MkdirAll(s.State("folders"), 0o755); err != nil {
		return err
	}
	address := fmt.Sprintf("127.0.0.1:%d", sourcesPort(s))
	if err := s.Detach("sources", os.Environ(), program, "sources", address, s.State("folders"),
		s.State("repositories")); err != nil {
		return err
	}
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
	return fmt.Errorf("the web server for local content did not start; its log is %s", s.State("sources.log"))
}

// serve makes a folder of this machine available for submission and says how to submit it.
func serve(s *localstack.Stack, folder string) error {
	if folder == "" {
		return errors.New("no folder was named; use: make serve FOLDER=path")
	}
	o, err := s.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return errDown
	}
	if err != nil {
		return err
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return err
	}
	rows, err := localstack.FolderManifest(folder, "")
	if err != nil {
		return err
	}
	name := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(filepath.Base(folder), "-")
	link := s.State("folders", name)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(folder, link); err != nil {
		return err
	}
	fmt.Printf(`Serving %s (files: %d) until "make stop". Submit it:
  dist/archivist submit %s/folders/%s.checkm -c my-collection --local-id %s --what "A title" --watch
`, folder, len(rows), o.SampleURL, name, name)
	return nil
}
